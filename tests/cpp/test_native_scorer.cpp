#include <doctest/doctest.h>

#include <vector>

#include "elastic_rank/native_scorer.hpp"

using namespace elastic_rank;

namespace {

struct Seen {
  std::int64_t calls = 0;
  std::int64_t rows = 0;
};

// Small whole numbers: the sum is exact in any order.
float weigh(const float* row, std::int64_t dim, void* user) {
  ++static_cast<Seen*>(user)->calls;
  float total = 0.0f;
  for (std::int64_t c = 0; c < dim; ++c) total += static_cast<float>(c + 1) * row[c];
  return total;
}

void weigh_all(const float* rows, std::int64_t n, std::int64_t dim, float* out, void* user) {
  Seen row_calls;
  for (std::int64_t i = 0; i < n; ++i) out[i] = weigh(rows + i * dim, dim, &row_calls);
  ++static_cast<Seen*>(user)->calls;
  static_cast<Seen*>(user)->rows += n;
}

constexpr std::int64_t kItems = 50, kItem = 7, kStride = 8;

std::vector<float> whole_numbers(std::int64_t n) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>((i * 13) % 17 - 8));
  return values;
}

void check_scores(const NativeScorer& scorer, std::int64_t query_width) {
  const std::vector<float> items = whole_numbers(kItems * kStride);
  const std::vector<float> query = whole_numbers(3 * query_width);
  const std::vector<std::int64_t> offsets{500, 2500, 2500, 2531};
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 2031; ++i) ids.push_back((i * 29) % kItems);
  std::vector<float> scores(ids.size());
  Scratch scratch;
  REQUIRE(scorer.score({{query.data(), 3, query_width, query_width}, ids, offsets, scores},
                       scratch) == Status::ok);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const float* q = query.data() + (i < 2000 ? 0 : 2 * query_width);
    std::vector<float> row(q, q + query_width);
    const float* item = items.data() + ids[i] * kStride;
    row.insert(row.end(), item, item + kItem);
    Seen seen;
    CHECK(scores[i] == weigh(row.data(), static_cast<std::int64_t>(row.size()), &seen));
  }
}

}  // namespace

TEST_CASE("native scorer: rows are query, then item, in both signatures") {
  const std::vector<float> items = whole_numbers(kItems * kStride);
  const MatrixView<const float> view{items.data(), kItems, kItem, kStride};
  for (const std::int64_t query_width : {0, 3}) {
    Seen rows, batches;
    check_scores(NativeScorer(&weigh, view, &rows), query_width);
    check_scores(NativeScorer(&weigh_all, view, &batches), query_width);
    CHECK(rows.calls == 2031);
    CHECK(batches.rows == 2031);
    CHECK(batches.calls < 20);
  }
}

TEST_CASE("native scorer: rows wider than a block still pass, one by one") {
  constexpr std::int64_t kWide = 20000;
  const std::vector<float> items(2 * kWide, 0.0f);
  Seen seen;
  const NativeScorer scorer(&weigh_all, {items.data(), 2, kWide, kWide}, &seen);
  const std::vector<std::int64_t> ids{1, 0, 1}, offsets{0, 3};
  std::vector<float> scores(3, 1.0f);
  Scratch scratch;
  REQUIRE(scorer.score({{nullptr, 1, 0, 0}, ids, offsets, scores}, scratch) == Status::ok);
  CHECK(seen.calls == 3);
  CHECK(scores == std::vector<float>{0.0f, 0.0f, 0.0f});
}
