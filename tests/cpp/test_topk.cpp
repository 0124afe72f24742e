#include "elastic_rank/topk.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "elastic_rank/isa.hpp"

using namespace elastic_rank;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Runs a check at each level this machine has, and puts the level back.
template <class Check>
void at_each_level(Check check) {
  const Isa before = active_isa();
  for (int i = 0; i <= static_cast<int>(hardware_isa()); ++i) {
    CAPTURE(i);
    set_active_isa(static_cast<Isa>(i));
    check();
  }
  set_active_isa(before);
}

struct Selected {
  std::vector<std::uint8_t> values;
  std::vector<std::int64_t> indices;
  std::vector<std::int32_t> counts;
  TopKOutput output;

  Selected(const TopKInput& input, std::int64_t k_max)
      : values(static_cast<std::size_t>(input.rows * k_max * size_of(input.dtype)), 0xcd),
        indices(static_cast<std::size_t>(input.rows * k_max), -77),
        counts(static_cast<std::size_t>(input.rows), -77),
        output{values.data(), indices.data(), counts.data(), k_max} {}

  bool operator==(const Selected& other) const {
    return values == other.values && indices == other.indices && counts == other.counts;
  }
};

template <class T>
TopKInput rows_of(const std::vector<T>& scores, DType dtype, std::int64_t rows, std::int64_t k) {
  TopKInput input;
  input.scores = scores.data();
  input.dtype = dtype;
  input.rows = rows;
  input.cols = rows == 0 ? 0 : static_cast<std::int64_t>(scores.size()) / rows;
  input.col_stride = sizeof(T);
  input.row_stride = input.cols * input.col_stride;
  input.k_all = k;
  return input;
}

void check_against_reference(const TopKInput& input, std::int64_t k_max) {
  Scratch scratch[2];
  Workers workers(2);
  for (const bool sort : {true, false}) {
    Selected want(input, k_max);
    REQUIRE(topk_reference(input, want.output, sort, scratch[0]) == Status::ok);
    at_each_level([&] {
      Selected got(input, k_max), shared(input, k_max);
      REQUIRE(topk(input, got.output, sort, nullptr, scratch) == Status::ok);
      CHECK(got == want);
      REQUIRE(topk(input, shared.output, sort, &workers, scratch) == Status::ok);
      CHECK(shared == want);
    });
  }
}

std::vector<std::int64_t> row_positions(const std::vector<float>& row, std::int64_t k) {
  Scratch scratch;
  std::vector<std::int64_t> positions(row.size());
  std::int64_t count = -1;
  REQUIRE(topk_row(row, k, true, positions.data(), nullptr, &count, scratch) == Status::ok);
  positions.resize(static_cast<std::size_t>(count));
  return positions;
}

}  // namespace

TEST_CASE("topk: the order, by hand") {
  at_each_level([] {
    CHECK(row_positions({1, 3, 2, 3}, 3) == std::vector<std::int64_t>{1, 3, 2});
    CHECK(row_positions({kNan, -kInf, kInf, -kNan, 0.0f, -0.0f}, 9) ==
          std::vector<std::int64_t>{2, 4, 5, 1, 0, 3});
    CHECK(row_positions({0.0f, 1e-45f, -1e-45f, 3e-45f}, 4) ==
          std::vector<std::int64_t>{3, 1, 0, 2});
    CHECK(row_positions({}, 3).empty());
    CHECK(row_positions({1, 2}, 0).empty());
    CHECK(row_positions({1, 2}, std::numeric_limits<std::int32_t>::max()).size() == 2);
  });
}

TEST_CASE("topk: every level, type and thread count equals the plain reference") {
  std::mt19937_64 random(1);
  for (const std::int64_t n : {1, 7, 16, 65, 300, 1000, 4097}) {
    for (const std::int64_t k : {std::int64_t{1}, n / 20 + 1, n / 3 + 1, n, n + 2}) {
      CAPTURE(n);
      CAPTURE(k);
      const auto size = static_cast<std::size_t>(3 * n);
      std::vector<float> floats(size);
      std::vector<double> doubles(size);
      std::vector<std::int32_t> integers(size);
      std::vector<std::uint16_t> halves(size);
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint64_t bits = random();
        // A third each: any bit pattern, few values, a rising run.
        const auto kind = static_cast<std::int64_t>(i) / n;
        floats[i] = kind == 0   ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                    : kind == 1 ? static_cast<float>(bits % 4) - 1.5f
                                : static_cast<float>(i);
        doubles[i] = kind == 0 ? std::bit_cast<double>(bits) : static_cast<double>(floats[i]);
        integers[i] = kind == 0   ? static_cast<std::int32_t>(bits)
                      : kind == 1 ? std::numeric_limits<std::int32_t>::min() +
                                        static_cast<std::int32_t>(bits % 2)
                                  : static_cast<std::int32_t>(i);
        halves[i] = static_cast<std::uint16_t>(bits);
      }
      check_against_reference(rows_of(floats, DType::float32, 3, k), k);
      check_against_reference(rows_of(doubles, DType::float64, 3, k), k);
      check_against_reference(rows_of(integers, DType::int32, 3, k), k);
      check_against_reference(rows_of(halves, DType::float16, 3, k), k);
      check_against_reference(rows_of(halves, DType::bfloat16, 3, k), k);
    }
  }
}

TEST_CASE("topk: masks, strides, ragged rows and a k each") {
  std::mt19937 random(2);
  std::vector<float> scores(6000);
  std::vector<std::uint8_t> mask(6000);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = random() % 50 == 0 ? kNan : static_cast<float>(random() % 1000);
    mask[i] = random() % 3 == 0 ? 0 : static_cast<std::uint8_t>(1 + random() % 255);
  }
  TopKInput input = rows_of(scores, DType::float32, 4, 40);
  input.mask = mask.data() + 5999;  // read backwards, every second byte of each row's part
  input.cols = 700;
  input.mask_row_stride = -1500;
  input.mask_col_stride = -2;
  check_against_reference(input, 40);
  input.row_stride = 0;
  input.col_stride = 8;
  check_against_reference(input, 40);

  const std::vector<std::int64_t> offsets = {0, 3000, 3000, 3001, 3600, 6000};
  const std::vector<std::int64_t> k = {7, 5, 3, 0, 90};
  TopKInput ragged = rows_of(scores, DType::float32, 5, 0);
  ragged.offsets = offsets.data();
  ragged.k = k.data();
  check_against_reference(ragged, 90);
  ragged.mask = mask.data();
  ragged.mask_col_stride = 1;
  check_against_reference(ragged, 90);
}

TEST_CASE("topk: keys bunched below an outlier take every digit") {
  std::mt19937 random(3);
  std::vector<float> floats(20'000);
  std::vector<double> doubles(20'000);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    floats[i] = 1.0f + 1e-6f * static_cast<float>(random() % 1000);
    doubles[i] = 1.0 + 1e-15 * static_cast<double>(random() % 1000);
  }
  floats[11'111] = 3e38f;
  doubles[11'111] = 1e300;
  for (const std::int64_t k : {250, 2000, 15'000}) {
    check_against_reference(rows_of(floats, DType::float32, 1, k), k);
    check_against_reference(rows_of(doubles, DType::float64, 1, k), k);
  }
}

TEST_CASE("topk: rising and equal scores overflow the survivors and stay exact") {
  std::vector<float> rising(30'000), equal(30'000, 2.5f), most(30'000, kInf);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<float>(i / 3);
  std::vector<std::int32_t> highest(30'000, std::numeric_limits<std::int32_t>::max());
  for (const std::int64_t k : {1, 10, 200, 3000}) {
    check_against_reference(rows_of(rising, DType::float32, 1, k), k);
    check_against_reference(rows_of(equal, DType::float32, 1, k), k);
    check_against_reference(rows_of(most, DType::float32, 1, k), k);
    check_against_reference(rows_of(highest, DType::int32, 1, k), k);
  }
}

TEST_CASE("topk: offsets beyond 2^32 elements") {
  // Addresses are reserved, not memory: only the pages of two short rows are ever touched.
  constexpr std::int64_t kFirst = (std::int64_t{1} << 32) + 5;
  constexpr std::size_t kBytes = (std::size_t{1} << 34) + (1 << 20);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* scores = static_cast<float*>(memory);
  const float row[] = {1, 4, 2, 4};
  std::memcpy(scores + kFirst, row, sizeof row);
  const std::int64_t offsets[] = {kFirst, kFirst + 4, kFirst + 4, kFirst + 6};
  TopKInput input;
  input.scores = scores;
  input.rows = 3;
  input.col_stride = sizeof(float);
  input.offsets = offsets;
  input.k_all = 2;
  Selected got(input, 2);
  Scratch scratch;
  REQUIRE(topk(input, got.output, true, nullptr, {&scratch, 1}) == Status::ok);
  CHECK(got.indices == std::vector<std::int64_t>{1, 3, -1, -1, 0, 1});
  CHECK(got.counts == std::vector<std::int32_t>{2, 0, 2});
  ::munmap(memory, kBytes);
}

TEST_CASE("topk: steady state keeps its memory") {
  std::mt19937 random(4);
  std::vector<float> scores(50'000);
  for (float& score : scores) score = static_cast<float>(random());
  const TopKInput input = rows_of(scores, DType::float32, 5, 100);
  Selected got(input, 100);
  Scratch scratch;
  REQUIRE(topk(input, got.output, true, nullptr, {&scratch, 1}) == Status::ok);
  const std::size_t held = scratch.capacity();
  for (int i = 0; i < 20; ++i) {
    REQUIRE(topk(input, got.output, true, nullptr, {&scratch, 1}) == Status::ok);
  }
  CHECK(scratch.capacity() == held);
}

TEST_CASE("topk: no scratch is an invalid argument") {
  const std::vector<float> row = {1, 2};
  const TopKInput input = rows_of(row, DType::float32, 1, 1);
  Selected got(input, 1);
  CHECK(topk(input, got.output, true, nullptr, {}) == Status::invalid_argument);
  CHECK(got.counts[0] == -77);
}

#if defined(__SSE2__)
TEST_CASE("topk: a thread that takes denormals for zero gets the same answer, and keeps its mode") {
  const unsigned before = _mm_getcsr();
  constexpr unsigned kFlush = 0x8040;  // flush to zero, denormals are zero
  std::vector<float> row(400);
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 7 % 400));
  }
  at_each_level([&] {
    const auto want = row_positions(row, 5);
    CHECK(want[0] == 57);  // 57 * 7 % 400 = 399, the largest
    _mm_setcsr(before | kFlush);
    const auto got = row_positions(row, 5);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    CHECK(got == want);
    CHECK((after & kFlush) == kFlush);
  });
}
#endif
