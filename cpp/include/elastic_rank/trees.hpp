#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "elastic_rank/matrix.hpp"
#include "elastic_rank/scorer.hpp"

namespace elastic_rank {

enum class TreeNodeKind : std::uint8_t { leaf = 0, numerical = 1, categorical = 2 };

/// Trees as parallel arrays, one entry a node; each tree begins at its root. A numerical node sends
/// a row left iff `x <= threshold`; strict and double thresholds are rounded to this form by the
/// caller, exactly, because a float32 `x` has a neighbour below every threshold. A categorical node
/// sends it left iff `x` truncates to a listed category. NaN goes where `default_left` says.
struct TreeArrays {
  std::span<const std::int64_t> offsets;           ///< (trees + 1) into the arrays below
  std::span<const std::uint8_t> kind;              ///< TreeNodeKind
  std::span<const std::int32_t> feature;           ///< column of the row; read for splits
  std::span<const float> threshold;                ///< read for numerical splits; not NaN
  std::span<const std::int32_t> left;              ///< counted within the tree; read for splits
  std::span<const std::int32_t> right;             ///< counted within the tree; read for splits
  std::span<const std::uint8_t> default_left;      ///< read for splits
  std::span<const double> value;                   ///< read for leaves; finite
  std::span<const std::int64_t> category_offsets;  ///< (nodes + 1), or empty: none categorical
  std::span<const std::uint32_t> categories;       ///< of node i: [offsets[i], offsets[i + 1])
};

/// What turns the sum of leaves into the score.
enum class TreeLink : std::uint8_t {
  identity = 0,
  sigmoid = 1,                     ///< 1 / (1 + exp(-parameter * x))
  exponential = 2,                 ///< exp(x)
  exponential_standard_ratio = 3,  ///< exp2(-x / parameter)
  logarithm_one_plus_exp = 4,      ///< log(1 + exp(x))
  signed_square = 5,               ///< x * |x|
  hinge = 6,                       ///< x > 0
};

/// score = link(sum of leaves / divisor + base_score).
struct TreeOutput {
  double divisor = 1.0;
  double base_score = 0.0;
  TreeLink link = TreeLink::identity;
  double link_parameter = 1.0;
};

/// Categories lie below this: float32 holds no larger range of integers exactly.
inline constexpr std::uint32_t kMaxCategory = 1U << 24;

/// What is wrong with a set of trees, or null: lengths, children out of range, a node that two
/// parents share, features outside [0, width), NaN thresholds, leaves that are not finite.
const char* fault_of(const TreeArrays& trees, std::int64_t width);

/// A tree ensemble over [query part | item part] rows. Leaves are summed in double, in tree order:
/// a score is the same bits in any block, chunk or thread and on every instruction-set level.
///
/// Trees of up to 64 leaves are evaluated feature by feature over 16 rows at once (each false split
/// strikes the leaves of its left subtree off a bit word; the lowest bit that is left names the
/// leaf), larger ones by walking a flattened tree with 8 rows in lockstep.
class Trees : public Scorer {
 public:
  /// Copies and lays out the trees.
  /// @param width columns that a row has: `fault_of(trees, width)` is null.
  /// @param item_features (items, f), rows contiguous, f <= width; must outlive this.
  Trees(const TreeArrays& trees, const TreeOutput& output, std::int64_t width,
        MatrixView<const float> item_features);
  ~Trees() override;

  std::int64_t n_items() const noexcept override { return items_.rows; }
  bool accepts_query(std::int64_t width) const noexcept override {
    return query_fills(width_, items_.cols, width);
  }
  Status score(const ScoreTask& task, Scratch& scratch) const noexcept override;

 private:
  struct Forest;

  MatrixView<const float> items_;
  std::int64_t width_ = 0;
  TreeOutput output_;
  std::unique_ptr<const Forest> forest_;
};

}  // namespace elastic_rank
