#pragma once

#include <cstddef>
#include <cstdint>

/// Declarations shared by the tree kernels. Plain data only: units are compiled with wide flags.
namespace elastic_rank {

/// Categories of one split: category c is in it iff c < n_bits and its bit is set.
struct TreeCategories {
  std::uint32_t word = 0;  ///< first word in the array of bits
  std::uint32_t n_bits = 0;
};

/// 16 bytes, siblings adjacent: a step is one node load, one feature load, one add. A leaf points
/// at itself with a threshold of +inf, so rows that have arrived may go on stepping.
struct TreeWalkNode {
  static constexpr std::uint32_t kDefaultRight = 1U << 31;

  float threshold = 0.0F;
  std::uint32_t feature = 0;     ///< with kDefaultRight
  std::uint32_t left = 0;        ///< the right child follows it
  std::uint32_t categories = 0;  ///< 1 + index of its TreeCategories; 0: numerical
};

struct TreeWalkForest {
  const TreeWalkNode* nodes = nullptr;
  const double* values = nullptr;  ///< one a node, read at leaves
  const std::uint32_t* roots = nullptr;
  const std::uint8_t* has_categories = nullptr;  ///< one a tree
  const TreeCategories* categories = nullptr;
  const std::uint32_t* category_words = nullptr;
  std::int64_t n_trees = 0;
};

/// A split seen from its feature. `keep` has zeros at the leaves of its left subtree.
struct TreeBitNode {
  static constexpr std::uint32_t kDefaultRight = 1U << 31;

  float threshold = 0.0F;
  std::uint32_t tree = 0;  ///< with kDefaultRight
  std::uint64_t keep = 0;
};

struct TreeBitCategorical {
  TreeCategories categories;
  std::uint32_t tree = 0;  ///< with TreeBitNode::kDefaultRight
  std::uint64_t keep = 0;
};

/// One feature's splits: numerical ones by rising threshold, closed by a sentinel of +inf that no
/// row exceeds, so the loop over them needs no bound.
struct TreeBitFeature {
  std::int64_t column = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;  ///< the sentinel
  std::int64_t first_categorical = 0;
  std::int64_t last_categorical = 0;
};

struct TreeBitForest {
  const TreeBitFeature* features = nullptr;
  std::int64_t n_features = 0;
  const TreeBitNode* nodes = nullptr;
  const TreeBitCategorical* categorical = nullptr;
  const std::uint32_t* category_words = nullptr;
  const double* leaves = nullptr;  ///< tree by tree, left to right, padded to the word's bits
  std::int64_t n_trees = 0;
};

/// Rows of one call of a bit kernel. Callers with fewer repeat a row.
inline constexpr int kTreeLanes = 16;

namespace portable {
/// Adds each tree's leaf to sums[0..n), tree after tree.
void walk_trees(const TreeWalkForest& forest, const float* const* rows, std::int64_t n,
                double* sums) noexcept;
}  // namespace portable

// Both add each tree's leaf to sums[0..kTreeLanes), tree after tree.
// words: room for n_trees * kTreeLanes words of 32 or 64 bits, 64-byte aligned.
namespace avx2 {
void score_bits32(const TreeBitForest& forest, const float* const* rows, std::uint32_t* words,
                  double* sums) noexcept;
void score_bits64(const TreeBitForest& forest, const float* const* rows, std::uint64_t* words,
                  double* sums) noexcept;
}  // namespace avx2

namespace avx512 {
void score_bits32(const TreeBitForest& forest, const float* const* rows, std::uint32_t* words,
                  double* sums) noexcept;
void score_bits64(const TreeBitForest& forest, const float* const* rows, std::uint64_t* words,
                  double* sums) noexcept;
}  // namespace avx512

}  // namespace elastic_rank
