#include "elastic_rank/trees.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "elastic_rank/isa.hpp"
#include "simd/trees_kernels.hpp"

namespace elastic_rank {
namespace {

// Rows of one pass over all trees: enough to pay for bringing a large tree into the first-level
// cache, few enough for their features to stay in the second.
constexpr std::int64_t kBlockRows = 64;

// A bit kernel costs the same for 1 row as for 16, and as much as walking about this many.
constexpr std::int64_t kFewestLanes = 4;

constexpr std::size_t index(std::int64_t i) noexcept {
  return static_cast<std::size_t>(i);
}

double linked(const TreeOutput& output, double x) noexcept {
  switch (output.link) {
    case TreeLink::identity: return x;
    case TreeLink::sigmoid: return 1.0 / (1.0 + std::exp(-output.link_parameter * x));
    case TreeLink::exponential: return std::exp(x);
    case TreeLink::exponential_standard_ratio: return std::exp2(-x / output.link_parameter);
    // log1p(exp(x)) would overflow where the answer is x itself.
    case TreeLink::logarithm_one_plus_exp:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case TreeLink::signed_square: return std::copysign(x * x, x);
    case TreeLink::hinge: return x > 0 ? 1.0 : 0.0;
  }
  return x;
}

TreeNodeKind kind_of(const TreeArrays& trees, std::size_t node) noexcept {
  return static_cast<TreeNodeKind>(trees.kind[node]);
}

bool same_length(const TreeArrays& trees, std::size_t n) noexcept {
  return trees.kind.size() == n && trees.feature.size() == n && trees.threshold.size() == n &&
         trees.left.size() == n && trees.right.size() == n && trees.default_left.size() == n &&
         trees.value.size() == n &&
         (trees.category_offsets.empty() || trees.category_offsets.size() == n + 1);
}

bool monotone(std::span<const std::int64_t> offsets, std::int64_t total, bool strict) noexcept {
  if (offsets.front() != 0 || offsets.back() != total) return false;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1] + (strict ? 1 : 0)) return false;
  }
  return true;
}

const char* fault_of_split(const TreeArrays& trees, std::size_t node, std::int64_t width) noexcept {
  if (trees.feature[node] < 0 || trees.feature[node] >= width) return "a feature outside the row";
  if (kind_of(trees, node) == TreeNodeKind::numerical) {
    return trees.threshold[node] == trees.threshold[node] ? nullptr : "a threshold that is NaN";
  }
  if (trees.category_offsets.empty()) return "a categorical split without category lists";
  for (std::int64_t i = trees.category_offsets[node]; i < trees.category_offsets[node + 1]; ++i) {
    if (trees.categories[index(i)] >= kMaxCategory) return "a category of 2^24 or more";
  }
  return nullptr;
}

const char* fault_of_tree(const TreeArrays& trees, std::int64_t first, std::int64_t end,
                          std::int64_t width, std::vector<std::uint8_t>& has_parent) {
  has_parent.assign(index(end - first), 0);
  has_parent[0] = 1;  // the root may be nobody's child
  for (std::int64_t i = first; i < end; ++i) {
    const std::size_t node = index(i);
    if (trees.kind[node] > 2) return "an unknown kind of node";
    if (kind_of(trees, node) == TreeNodeKind::leaf) {
      if (!std::isfinite(trees.value[node])) return "a leaf that is not finite";
      continue;
    }
    if (const char* fault = fault_of_split(trees, node, width)) return fault;
    for (const std::int32_t child : {trees.left[node], trees.right[node]}) {
      if (child < 0 || child >= end - first) return "a child outside its tree";
      // With one parent each, and the root without, what hangs on the root cannot run in a circle.
      if (has_parent[index(child)]++ != 0) return "a node that has two parents";
    }
  }
  return nullptr;
}

}  // namespace

const char* fault_of(const TreeArrays& trees, std::int64_t width) {
  constexpr std::int64_t kMostNodes = std::numeric_limits<std::int32_t>::max() / 2;
  const auto nodes = static_cast<std::int64_t>(trees.kind.size());
  if (trees.offsets.size() < 2) return "no tree";
  if (!same_length(trees, trees.kind.size())) return "arrays of different lengths";
  if (nodes > kMostNodes || width < 1 || width > kMostNodes)
    return "more than 2^30 nodes or columns";
  if (!monotone(trees.offsets, nodes, true))
    return "tree offsets that do not rise to the node count";
  if (!trees.category_offsets.empty() &&
      !monotone(trees.category_offsets, static_cast<std::int64_t>(trees.categories.size()),
                false)) {
    return "category offsets that do not rise to the category count";
  }
  std::vector<std::uint8_t> has_parent;
  for (std::size_t t = 0; t + 1 < trees.offsets.size(); ++t) {
    const char* fault =
        fault_of_tree(trees, trees.offsets[t], trees.offsets[t + 1], width, has_parent);
    if (fault != nullptr) return fault;
  }
  return nullptr;
}

/// The trees in the forms that kernels read; unreachable nodes are left out.
struct Trees::Forest {
  explicit Forest(const TreeArrays& trees);

  bool has_bits() const noexcept { return word_bits != 0; }
  TreeWalkForest walk_view() const noexcept;
  TreeBitForest bit_view() const noexcept;

  std::int64_t n_trees = 0;
  std::vector<std::uint32_t> category_words;
  std::vector<TreeCategories> categories;
  std::vector<TreeWalkNode> walk_nodes;
  std::vector<double> walk_values;
  std::vector<std::uint32_t> walk_roots;
  std::vector<std::uint8_t> walk_has_categories;
  int word_bits = 0;  ///< 32 or 64: the bit form exists; 0: some tree has more leaves
  std::vector<TreeBitFeature> bit_features;
  std::vector<TreeBitNode> bit_nodes;
  std::vector<TreeBitCategorical> bit_categorical;
  std::vector<double> bit_leaves;

 private:
  void add_tree(const TreeArrays& trees, std::int64_t first);
  std::uint32_t add_categories(const TreeArrays& trees, std::size_t node);
  void add_bits();
  struct FoundSplit {
    std::uint32_t node = 0;
    std::uint32_t tree = 0;
    std::uint64_t keep = 0;
  };
  void add_feature(std::vector<FoundSplit>& splits, std::uint32_t column);
};

Trees::Forest::Forest(const TreeArrays& trees)
    : n_trees(static_cast<std::int64_t>(trees.offsets.size()) - 1) {
  for (std::int64_t t = 0; t < n_trees; ++t) add_tree(trees, trees.offsets[index(t)]);
  add_bits();
}

std::uint32_t Trees::Forest::add_categories(const TreeArrays& trees, std::size_t node) {
  const std::int64_t begin = trees.category_offsets[node];
  const auto listed =
      trees.categories.subspan(index(begin), index(trees.category_offsets[node + 1] - begin));
  TreeCategories set{static_cast<std::uint32_t>(category_words.size()), 0};
  for (const std::uint32_t c : listed) set.n_bits = std::max(set.n_bits, c + 1);
  category_words.resize(category_words.size() + (set.n_bits + 31) / 32);
  for (const std::uint32_t c : listed) category_words[set.word + c / 32] |= 1U << (c % 32);
  categories.push_back(set);
  return static_cast<std::uint32_t>(categories.size());
}

/// Breadth first: the levels that every row visits lie together.
void Trees::Forest::add_tree(const TreeArrays& trees, std::int64_t first) {
  const std::size_t root = walk_nodes.size();
  std::vector<std::size_t> sources{index(first)};  // of walk node root + i
  bool has_categories = false;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t from = sources[i];
    TreeWalkNode node;
    double value = 0.0;
    if (kind_of(trees, from) == TreeNodeKind::leaf) {
      node.threshold = std::numeric_limits<float>::infinity();
      node.left = static_cast<std::uint32_t>(root + i);
      value = trees.value[from];
    } else {
      node.threshold = trees.threshold[from];
      node.feature = static_cast<std::uint32_t>(trees.feature[from]) |
                     (trees.default_left[from] ? 0 : TreeWalkNode::kDefaultRight);
      node.left = static_cast<std::uint32_t>(root + sources.size());
      sources.push_back(index(first + trees.left[from]));
      sources.push_back(index(first + trees.right[from]));
      if (kind_of(trees, from) == TreeNodeKind::categorical) {
        node.categories = add_categories(trees, from);
        has_categories = true;
      }
    }
    walk_nodes.push_back(node);
    walk_values.push_back(value);
  }
  walk_roots.push_back(static_cast<std::uint32_t>(root));
  walk_has_categories.push_back(has_categories);
}

/// One feature's splits in kernel order.
void Trees::Forest::add_feature(std::vector<FoundSplit>& splits, std::uint32_t column) {
  std::stable_sort(splits.begin(), splits.end(), [this](const auto& a, const auto& b) {
    return walk_nodes[a.node].threshold < walk_nodes[b.node].threshold;
  });
  TreeBitFeature feature;
  feature.column = column;
  feature.first = static_cast<std::int64_t>(bit_nodes.size());
  feature.first_categorical = static_cast<std::int64_t>(bit_categorical.size());
  for (const FoundSplit& split : splits) {
    const TreeWalkNode& node = walk_nodes[split.node];
    const std::uint32_t tree = split.tree | (node.feature & TreeWalkNode::kDefaultRight);
    if (node.categories != 0) {
      bit_categorical.push_back({categories[node.categories - 1], tree, split.keep});
    } else {
      bit_nodes.push_back({node.threshold, tree, split.keep});
    }
  }
  feature.last = static_cast<std::int64_t>(bit_nodes.size());
  feature.last_categorical = static_cast<std::int64_t>(bit_categorical.size());
  bit_nodes.push_back({std::numeric_limits<float>::infinity(), 0, ~std::uint64_t{0}});
  bit_features.push_back(feature);
}

void Trees::Forest::add_bits() {
  const std::size_t n_nodes = walk_nodes.size();
  const auto is_leaf = [this](std::size_t node) { return walk_nodes[node].left == node; };
  // A breadth-first order puts children behind parents: backwards, both children are known.
  std::vector<std::uint32_t> leaves(n_nodes, 1);
  std::uint32_t most_leaves = 1;
  for (std::size_t i = n_nodes; i-- > 0;) {
    if (!is_leaf(i)) leaves[i] = leaves[walk_nodes[i].left] + leaves[walk_nodes[i].left + 1];
    most_leaves = std::max(most_leaves, leaves[i]);
  }
  if (most_leaves > 64) return;
  word_bits = most_leaves > 32 ? 64 : 32;
  bit_leaves.resize(index(n_trees * word_bits));

  std::vector<std::pair<std::uint32_t, FoundSplit>> found;  // column, split
  std::vector<std::uint32_t> leftmost(n_nodes, 0);          // a node's first leaf
  for (std::size_t t = 0; t < index(n_trees); ++t) {
    const std::size_t end = t + 1 < index(n_trees) ? walk_roots[t + 1] : n_nodes;
    for (std::size_t i = walk_roots[t]; i < end; ++i) {
      const TreeWalkNode& node = walk_nodes[i];
      if (is_leaf(i)) {
        bit_leaves[t * index(word_bits) + leftmost[i]] = walk_values[i];
        continue;
      }
      const std::uint32_t in_left = leaves[node.left];
      leftmost[node.left] = leftmost[i];
      leftmost[node.left + 1] = leftmost[i] + in_left;
      const std::uint64_t left_leaves = ((std::uint64_t{1} << in_left) - 1) << leftmost[i];
      found.push_back(
          {node.feature & ~TreeWalkNode::kDefaultRight,
           {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(t), ~left_leaves}});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < found.size();) {
    const std::uint32_t column = found[i].first;
    std::vector<FoundSplit> splits;
    for (; i < found.size() && found[i].first == column; ++i) splits.push_back(found[i].second);
    add_feature(splits, column);
  }
}

TreeWalkForest Trees::Forest::walk_view() const noexcept {
  return {walk_nodes.data(),
          walk_values.data(),
          walk_roots.data(),
          walk_has_categories.data(),
          categories.data(),
          category_words.data(),
          n_trees};
}

TreeBitForest Trees::Forest::bit_view() const noexcept {
  return {bit_features.data(),
          static_cast<std::int64_t>(bit_features.size()),
          bit_nodes.data(),
          bit_categorical.data(),
          category_words.data(),
          bit_leaves.data(),
          n_trees};
}

namespace {

/// How one call scores blocks of rows.
class BlockScorer {
 public:
  BlockScorer(TreeWalkForest walk, TreeBitForest bits, int word_bits, void* words) noexcept
      : walk_(walk), bits_(bits), word_bits_(word_bits), words_(words) {}

  /// sums[0..n) = sums of leaves. `rows` and `sums` have room for a multiple of kTreeLanes.
  void sum(const float** rows, std::int64_t n, double* sums) const noexcept {
    std::fill_n(sums, n, 0.0);
    std::int64_t done = 0;
    while (word_bits_ != 0 && n - done >= kFewestLanes) {
      const std::int64_t lanes = std::min<std::int64_t>(kTreeLanes, n - done);
      for (std::int64_t i = lanes; i < kTreeLanes; ++i) {
        rows[done + i] = rows[done];
        sums[done + i] = 0.0;
      }
      sum_lanes(rows + done, sums + done);
      done += lanes;
    }
    if (done < n) portable::walk_trees(walk_, rows + done, n - done, sums + done);
  }

 private:
  void sum_lanes(const float* const* rows, double* sums) const noexcept {
    const bool wide = isa_ == Isa::avx512;
    if (word_bits_ == 32) {
      auto* words = static_cast<std::uint32_t*>(words_);
      (wide ? avx512::score_bits32 : avx2::score_bits32)(bits_, rows, words, sums);
    } else {
      auto* words = static_cast<std::uint64_t*>(words_);
      (wide ? avx512::score_bits64 : avx2::score_bits64)(bits_, rows, words, sums);
    }
  }

  TreeWalkForest walk_;
  TreeBitForest bits_;
  int word_bits_;
  void* words_;
  Isa isa_ = active_isa();
};

}  // namespace

Trees::Trees(const TreeArrays& trees, const TreeOutput& output, std::int64_t width,
             MatrixView<const float> item_features)
    : items_(item_features),
      width_(width),
      output_(output),
      forest_(std::make_unique<const Forest>(trees)) {}

Trees::~Trees() = default;

Status Trees::score(const ScoreTask& task, Scratch& scratch) const noexcept {
  const ScratchScope scope(scratch);
  // Portable bit words would be slower than walking: 16 rows a step need the registers.
  const int word_bits = active_isa() == Isa::portable ? 0 : forest_->word_bits;
  std::span<std::byte> words;
  if (word_bits != 0) {
    words = scratch.take<std::byte>(forest_->n_trees * kTreeLanes * word_bits / 8);
    if (words.empty()) return Status::out_of_memory;
  }
  const std::int64_t query_width = width_ - items_.cols;
  std::span<float> joined;  // [query | item] rows of a block
  if (query_width > 0) {
    joined = scratch.take<float>(kBlockRows * width_);
    if (joined.empty()) return Status::out_of_memory;
  }
  const BlockScorer scorer(forest_->walk_view(), forest_->bit_view(), word_bits, words.data());

  std::array<const float*, kBlockRows> rows;
  std::array<double, kBlockRows> sums;
  const auto total = static_cast<std::int64_t>(task.ids.size());
  std::size_t request = 0;
  for (std::int64_t begin = 0; begin < total; begin += kBlockRows) {
    const std::int64_t n = std::min(kBlockRows, total - begin);
    for (std::int64_t i = 0; i < n; ++i) {
      const float* item = items_.row(task.ids[index(begin + i)]);
      rows[index(i)] = item;
      if (query_width == 0) continue;
      while (task.offsets[request + 1] - task.offsets[0] <= begin + i) ++request;
      float* row = joined.data() + i * width_;
      std::copy_n(task.query.row(static_cast<std::int64_t>(request)), query_width, row);
      std::copy_n(item, items_.cols, row + query_width);
      rows[index(i)] = row;
    }
    scorer.sum(rows.data(), n, sums.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const double raw = sums[index(i)] / output_.divisor + output_.base_score;
      task.scores[index(begin + i)] = static_cast<float>(linked(output_, raw));
    }
  }
  return Status::ok;
}

}  // namespace elastic_rank
