#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "elastic_rank/matrix.hpp"
#include "elastic_rank/scorer.hpp"

namespace elastic_rank {

/// One dense layer as the caller holds it: weight (in, out), bias (out).
struct DenseLayer {
  MatrixView<const float> weight;
  std::span<const float> bias;
};

/// A small multi-layer perceptron over [query part | item part] rows: ReLU between layers, one
/// output. The query half of layer one is computed once a request; hidden layers of a block of
/// rows stay in cache. Every output is one chain of fused multiply-adds in input order, so a score
/// does not depend on its block.
class Mlp : public Scorer {
 public:
  /// Copies and packs the weights.
  /// @param item_features (items, f), rows contiguous; must outlive this.
  /// @pre widths chain; the last layer has one output; layer one is f or more wide.
  Mlp(std::span<const DenseLayer> layers, MatrixView<const float> item_features);

  std::int64_t n_items() const noexcept override { return items_.rows; }
  bool accepts_query(std::int64_t width) const noexcept override {
    return query_fills(in_width_, items_.cols, width);
  }
  Status score(const ScoreTask& task, Scratch& scratch) const noexcept override;

 private:
  struct Packed {
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t out_padded = 0;
    std::vector<float> weight;  ///< in panels of the widest register, zero-padded
    std::vector<float> bias;
  };

  MatrixView<const float> items_;
  std::int64_t in_width_ = 0;
  std::vector<Packed> layers_;
};

}  // namespace elastic_rank
