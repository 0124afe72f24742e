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
/// output. A NaN passes through ReLU, so a NaN feature gives a NaN score.
///
/// The query half of layer one is computed once a request; hidden layers of a block of rows stay in
/// cache. A hidden output is one chain of multiply-adds in input order, from the bias on; the last
/// output is summed as `Dot` sums. So a score does not depend on its block.
///
/// Error against exact arithmetic, to first order: a layer of n inputs adds at most (n + 2) 2^-24
/// times its sum of |terms|, bias included, and passes on its inputs' errors times |weights|.
class Mlp : public Scorer {
 public:
  /// Copies and packs the weights.
  /// @param item_features (items, f), rows contiguous; must outlive this.
  /// @pre at least one layer; widths chain; the last layer has one output; layer one takes f or
  /// more inputs; weights and biases finite.
  Mlp(std::span<const DenseLayer> layers, MatrixView<const float> item_features);

  std::int64_t n_items() const noexcept override { return items_.rows; }
  bool accepts_query(std::int64_t width) const noexcept override {
    return query_fills(query_width_ + items_.cols, items_.cols, width);
  }
  Status score(const ScoreTask& task, Scratch& scratch) const noexcept override;

 private:
  /// One cache line of floats: a vector of them is aligned for the widest register.
  struct alignas(64) Line {
    float value[16];
  };
  struct Packed {
    std::int64_t in = 0;
    std::int64_t out_padded = 0;
    std::vector<Line> weight;  ///< in panels, zero-padded: see simd/mlp_kernels.hpp
    std::vector<Line> bias;
  };
  struct Pass;

  static Packed pack(MatrixView<const float> weight, std::span<const float> bias);
  Status score_linear(const ScoreTask& task) const noexcept;

  MatrixView<const float> items_;
  std::int64_t query_width_ = 0;  ///< 0: the model takes no query
  Packed query_half_;             ///< layer one's part for the query, with the bias
  std::vector<Packed> hidden_;    ///< layer one's part for the item, then the others but the last
  std::vector<float> output_weight_;  ///< the last layer's, query part first where it is layer one
  float output_bias_ = 0.0f;
  std::int64_t widest_ = 0;  ///< padded outputs of the widest hidden layer
};

}  // namespace elastic_rank
