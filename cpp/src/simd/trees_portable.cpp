#include "trees_kernels.hpp"

namespace elastic_rank::portable {
namespace {

// Eight rows step through one tree together: a step's loads depend on the step before, so one row
// alone waits some 14 cycles a level; eight overlap, and the end of the loop is guessed wrong once
// for all of them.
constexpr int kLockstep = 8;

bool goes_right(const TreeWalkNode& node, float x) noexcept {
  const bool missing = x != x;
  const bool default_right = (node.feature & TreeWalkNode::kDefaultRight) != 0;
  return (x > node.threshold) | (missing & default_right);
}

bool goes_right(const TreeWalkForest& forest, const TreeWalkNode& node, float x) noexcept {
  if (node.categories == 0) return goes_right(node, x);
  if (x != x) return (node.feature & TreeWalkNode::kDefaultRight) != 0;
  const TreeCategories& set = forest.categories[node.categories - 1];
  if (!(x >= 0.0F) || !(x < static_cast<float>(set.n_bits))) return true;
  const auto category = static_cast<std::uint32_t>(x);
  return ((forest.category_words[set.word + category / 32] >> (category % 32)) & 1U) == 0;
}

template <bool kCategorical>
void walk_tree(const TreeWalkForest& forest, std::uint32_t root, const float* const* rows,
               double* sums) noexcept {
  std::uint32_t at[kLockstep];
  for (std::uint32_t& node : at) node = root;
  std::uint32_t moved = 1;
  while (moved != 0) {
    moved = 0;
    for (int i = 0; i < kLockstep; ++i) {
      const TreeWalkNode& node = forest.nodes[at[i]];
      const float x = rows[i][node.feature & ~TreeWalkNode::kDefaultRight];
      const bool right = kCategorical ? goes_right(forest, node, x) : goes_right(node, x);
      const std::uint32_t next = node.left + static_cast<std::uint32_t>(right);
      moved |= next ^ at[i];
      at[i] = next;
    }
  }
  for (int i = 0; i < kLockstep; ++i) sums[i] += forest.values[at[i]];
}

}  // namespace

void walk_trees(const TreeWalkForest& forest, const float* const* rows, std::int64_t n,
                double* sums) noexcept {
  const std::int64_t whole = n - n % kLockstep;
  const float* tail_rows[kLockstep];
  double tail_sums[kLockstep] = {};
  for (int i = 0; i < kLockstep && whole < n; ++i) {
    tail_rows[i] = rows[whole + (i < n - whole ? i : 0)];
    tail_sums[i] = whole + i < n ? sums[whole + i] : 0.0;
  }
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    const auto walk = forest.has_categories[tree] ? walk_tree<true> : walk_tree<false>;
    for (std::int64_t i = 0; i < whole; i += kLockstep) {
      walk(forest, forest.roots[tree], rows + i, sums + i);
    }
    if (whole < n) walk(forest, forest.roots[tree], tail_rows, tail_sums);
  }
  for (std::int64_t i = whole; i < n; ++i) sums[i] = tail_sums[i - whole];
}

}  // namespace elastic_rank::portable
