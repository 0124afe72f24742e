#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "elastic_rank/dot.hpp"
#include "elastic_rank/isa.hpp"

using namespace elastic_rank;

namespace {

std::vector<float> normal(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<float> values(n);
  for (float& value : values) value = draw(random);
  return values;
}

struct LevelGuard {
  Isa before = active_isa();
  ~LevelGuard() { set_active_isa(before); }
};

}  // namespace

TEST_CASE("dot: within the stated error at each level, rows apart, offsets of a part of a batch") {
  const LevelGuard guard;
  constexpr std::int64_t kItems = 200, kWidth = 37, kStride = 41;
  const std::vector<float> table = normal(kItems * kStride, 1), query = normal(2 * kWidth, 2);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 150; ++i) ids.push_back(i < 60 ? i : (i * 71) % kItems);
  const std::vector<std::int64_t> offsets{1000, 1047, 1150};  // a part of a larger batch
  const Dot dot({table.data(), kItems, kWidth, kStride});
  for (int level = 0; level <= static_cast<int>(hardware_isa()); ++level) {
    CAPTURE(level);
    set_active_isa(static_cast<Isa>(level));
    std::vector<float> scores(ids.size(), -1.0f);
    Scratch scratch;
    REQUIRE(dot.score({{query.data(), 2, kWidth, kWidth}, ids, offsets, scores}, scratch) ==
            Status::ok);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const float* q = query.data() + (i < 47 ? 0 : kWidth);
      double exact = 0.0, terms = 0.0;
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const double term =
            static_cast<double>(q[c]) *
            static_cast<double>(table[static_cast<std::size_t>(ids[i] * kStride + c)]);
        exact += term;
        terms += std::abs(term);
      }
      const double error = std::abs(static_cast<double>(scores[i]) - exact);
      CHECK(error <= (kWidth / 8.0 + 6.0) * std::ldexp(terms, -24));
    }
  }
}

TEST_CASE("dot: nothing past the scores is written, whatever the tail") {
  const LevelGuard guard;
  const std::vector<float> table = normal(64 * 8, 3), query = normal(8, 4);
  const Dot dot({table.data(), 64, 8, 8});
  for (int level = 0; level <= static_cast<int>(hardware_isa()); ++level) {
    set_active_isa(static_cast<Isa>(level));
    for (std::int64_t n = 0; n <= 40; ++n) {
      std::vector<std::int64_t> ids;
      for (std::int64_t i = 0; i < n; ++i) ids.push_back((i * 5) % 64);
      const std::vector<std::int64_t> offsets{0, n};
      std::vector<float> scores(static_cast<std::size_t>(n) + 16, 123.0f);
      Scratch scratch;
      REQUIRE(dot.score({{query.data(), 1, 8, 8},
                         ids,
                         offsets,
                         std::span(scores).first(static_cast<std::size_t>(n))},
                        scratch) == Status::ok);
      for (std::size_t i = static_cast<std::size_t>(n); i < scores.size(); ++i) {
        CHECK(scores[i] == 123.0f);
      }
    }
  }
}

TEST_CASE("dot: what width accepts") {
  const Dot dot({nullptr, 0, 5, 5});
  CHECK(dot.accepts_query(5));
  CHECK_FALSE(dot.accepts_query(4));
  CHECK(dot.n_items() == 0);
}
