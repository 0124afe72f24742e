#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "elastic_rank/latency_sketch.hpp"
#include "elastic_rank/latency_wire.hpp"

using namespace elastic_rank;

namespace {

std::vector<double> latencies(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> draw(-4.0, 1.0);
  std::vector<double> values(n);
  for (double& value : values) value = draw(random);
  return values;
}

std::vector<std::uint8_t> bytes_of(const LatencySketch& sketch) {
  Scratch scratch;
  std::span<const std::uint8_t> bytes;
  REQUIRE(encode_latency(sketch, &bytes, scratch) == Status::ok);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("every cell answers within the relative error of its own ends") {
  for (const double error : {0.0005, 0.01, 0.2}) {
    const LatencyLayout layout(error);
    std::int64_t cell = -1;
    for (double value = LatencyLayout::kMinSeconds; value < LatencyLayout::kMaxSeconds;
         value *= 1.0 + error / 7.0) {
      const std::int64_t now = layout.cell_of(std::bit_cast<std::uint64_t>(value));
      CHECK(now >= cell);
      cell = now;
      REQUIRE(std::abs(layout.middle(cell) - value) <= error * value);
    }
    CHECK(layout.cell_of(0) == LatencyLayout::kZeroCell);
    CHECK(layout.cell_of(1) == LatencyLayout::kUnderCell);
    CHECK(layout.cell_of(LatencyLayout::kHighBits) == layout.over_cell());
    CHECK(layout.n_cells() == layout.over_cell() + 1);
  }
}

TEST_CASE("quantiles match sorted values and both ways of asking agree") {
  const std::vector<double> values = latencies(4001, 1);
  LatencySketch sketch(0.01);
  for (const double value : values) CHECK(sketch.record(value));
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  Scratch scratch;
  LatencyCounts counts;
  REQUIRE(sketch.read(&counts, scratch) == Status::ok);
  CHECK(counts.total == values.size());
  for (const double q : {0.0, 1e-9, 0.1, 0.5, 0.9, 0.99, 0.9999, 1.0}) {
    const double rank = std::max(1.0, std::ceil(q * static_cast<double>(sorted.size())));
    const double exact = sorted[static_cast<std::size_t>(rank) - 1];
    CHECK(std::abs(sketch.quantile(q) - exact) <= 0.01 * exact);
    CHECK(sketch.quantile(q) == sketch.quantile(counts, q));
  }
}

TEST_CASE("refused values change nothing but their count") {
  LatencySketch sketch(0.01);
  CHECK(sketch.record(0.5));
  CHECK_FALSE(sketch.record(std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(sketch.record(std::numeric_limits<double>::infinity()));
  CHECK_FALSE(sketch.record(-1.0));
  CHECK(sketch.count() == 1);
  CHECK(sketch.refused() == 3);
  CHECK(sketch.min_s() == 0.5);
  CHECK(sketch.max_s() == 0.5);
}

TEST_CASE("more threads than shards record, read and merge at once") {
  constexpr int kThreads = 20;
  LatencySketch sketch(0.01);
  LatencySketch extra(0.01);
  extra.record(1.0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&sketch, &extra, t] {
      const std::vector<double> values = latencies(500, static_cast<unsigned>(t));
      for (const double value : values) sketch.record(value);
      sketch.record_many(std::span<const double>(values));
      Scratch scratch;
      LatencyCounts counts;
      CHECK(extra.read(&counts, scratch) == Status::ok);
      CHECK(sketch.merge(counts) == Status::ok);
      CHECK(sketch.read(&counts, scratch) == Status::ok);
      CHECK(counts.min_s <= sketch.quantile(0.5));
    });
  }
  for (std::thread& thread : threads) thread.join();

  LatencySketch alone(0.01);
  for (int t = 0; t < kThreads; ++t) {
    const std::vector<double> values = latencies(500, static_cast<unsigned>(t));
    alone.record_many(std::span<const double>(values));
    alone.record_many(std::span<const double>(values));
    alone.record(1.0);
  }
  CHECK(bytes_of(sketch) == bytes_of(alone));
}

TEST_CASE("wire form round-trips and any change of a byte is noticed") {
  LatencySketch sketch(0.01);
  const std::vector<double> values = latencies(200, 3);
  sketch.record_many(std::span<const double>(values));
  sketch.record(-1.0);
  const std::vector<std::uint8_t> bytes = bytes_of(sketch);

  Scratch scratch;
  double error = 0.0;
  LatencyCounts counts;
  REQUIRE(decode_latency(bytes, &error, &counts, scratch) == Status::ok);
  LatencySketch again(error);
  REQUIRE(again.merge(counts) == Status::ok);
  CHECK(bytes_of(again) == bytes);

  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::uint8_t> flipped = bytes;
    flipped[i] ^= 0x10;
    CHECK(decode_latency(flipped, &error, &counts, scratch) == Status::invalid_argument);
    CHECK(decode_latency(std::span(bytes).first(i), &error, &counts, scratch) ==
          Status::invalid_argument);
    scratch.reset();
  }
}
