#include "elastic_rank/native_scorer.hpp"

#include <algorithm>
#include <limits>

namespace elastic_rank {
namespace {

// Rows handed over at once take about this much: they are still in the first-level cache when the
// function reads them, and a call costs little beside what it does.
constexpr std::int64_t kBlockFloats = 8192;
constexpr std::int64_t kMostRows = 512;

}  // namespace

void NativeScorer::score_request(const float* query, std::int64_t query_width,
                                 std::span<const std::int64_t> ids, MatrixView<float> rows,
                                 float* scores) const noexcept {
  const auto n = static_cast<std::int64_t>(ids.size());
  // The query part is the same in every row of the request: written once, then items pass by.
  const std::int64_t used = std::min(rows.rows, n);
  for (std::int64_t i = 0; i < used; ++i) std::copy_n(query, query_width, rows.row(i));
  for (std::int64_t begin = 0; begin < n; begin += rows.rows) {
    const std::int64_t count = std::min(rows.rows, n - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(items_.row(ids[static_cast<std::size_t>(begin + i)]), items_.cols,
                  rows.row(i) + query_width);
    }
    if (batch_ != nullptr) {
      // A function that returns early, as a numba one that raised does, leaves NaN and not what the
      // memory held before.
      std::fill_n(scores + begin, count, std::numeric_limits<float>::quiet_NaN());
      batch_(rows.data, count, rows.cols, scores + begin, user_);
      continue;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      scores[begin + i] = row_(rows.row(i), rows.cols, user_);
    }
  }
}

Status NativeScorer::score(const ScoreTask& task, Scratch& scratch) const noexcept {
  const ScratchScope scope(scratch);
  const std::int64_t dim = task.query.cols + items_.cols;
  const std::int64_t n_rows =
      std::clamp<std::int64_t>(kBlockFloats / std::max<std::int64_t>(dim, 1), 1, kMostRows);
  // One float more: a model of no columns still gets a pointer.
  const std::span<float> memory = scratch.take<float>(n_rows * dim + 1);
  if (memory.empty()) return Status::out_of_memory;
  const MatrixView<float> rows{memory.data(), n_rows, dim, dim};
  for (std::int64_t r = 0; r < task.query.rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(r);
    const std::int64_t begin = task.offsets[at] - task.offsets[0];
    const std::int64_t end = task.offsets[at + 1] - task.offsets[0];
    if (begin == end) continue;
    score_request(
        task.query.row(r), task.query.cols,
        task.ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
        rows, task.scores.data() + begin);
  }
  return Status::ok;
}

}  // namespace elastic_rank
