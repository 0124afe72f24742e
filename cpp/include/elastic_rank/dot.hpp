#pragma once

#include <cstdint>

#include "elastic_rank/matrix.hpp"
#include "elastic_rank/scorer.hpp"

namespace elastic_rank {

/// query . row over a float32 table. The sum's order is fixed per instruction-set level.
/// Error against exact arithmetic: at most (q / 8 + 6) 2^-24 times the sum of |terms|.
/// Cost: memory bound; rows are fetched ahead by id, unless ids follow one another.
class Dot : public Scorer {
 public:
  /// @param table (items, q), rows contiguous; must outlive this.
  explicit Dot(MatrixView<const float> table) noexcept : table_(table) {}

  std::int64_t n_items() const noexcept override { return table_.rows; }
  bool accepts_query(std::int64_t width) const noexcept override { return width == table_.cols; }
  Status score(const ScoreTask& task, Scratch& scratch) const noexcept override;

 private:
  MatrixView<const float> table_;
};

}  // namespace elastic_rank
