#pragma once

#include <cstdint>
#include <span>

#include "elastic_rank/matrix.hpp"
#include "elastic_rank/scorer.hpp"

namespace elastic_rank {

/// Batched user code: scores n rows of dim adjacent floats into out.
using BatchScoreFn = void (*)(const float* rows, std::int64_t n, std::int64_t dim, float* out,
                              void* user);
/// Row-wise user code: the score of one row.
using RowScoreFn = float (*)(const float* row, std::int64_t dim, void* user);

/// User code behind a plain function pointer, called on [query part | item part] rows with no
/// interpreter and no lock. It must be reentrant, must not throw, and must score each row by
/// itself; NaN reports an error. How many rows a batched call gets is not promised.
class NativeScorer : public Scorer {
 public:
  /// @param item_features (items, f), rows contiguous; must outlive this, as must `user`.
  NativeScorer(BatchScoreFn fn, MatrixView<const float> item_features, void* user) noexcept
      : items_(item_features), batch_(fn), user_(user) {}
  NativeScorer(RowScoreFn fn, MatrixView<const float> item_features, void* user) noexcept
      : items_(item_features), row_(fn), user_(user) {}

  std::int64_t n_items() const noexcept override { return items_.rows; }
  bool accepts_query(std::int64_t) const noexcept override { return true; }
  Status score(const ScoreTask& task, Scratch& scratch) const noexcept override;

 private:
  void score_request(const float* query, std::int64_t query_width,
                     std::span<const std::int64_t> ids, MatrixView<float> rows,
                     float* scores) const noexcept;

  MatrixView<const float> items_;
  BatchScoreFn batch_ = nullptr;
  RowScoreFn row_ = nullptr;
  void* user_ = nullptr;
};

}  // namespace elastic_rank
