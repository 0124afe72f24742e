#include <immintrin.h>

#include "trees_kernels.hpp"

namespace elastic_rank::avx2 {
namespace {

inline __m256 load_column(const float* const* rows, std::int64_t column) noexcept {
  return _mm256_setr_ps(rows[0][column], rows[1][column], rows[2][column], rows[3][column],
                        rows[4][column], rows[5][column], rows[6][column], rows[7][column]);
}

// Lanes as all-ones or all-zeros, 8 rows a register.
struct Lanes {
  __m256 low;
  __m256 high;
};

inline bool any(const Lanes& lanes) noexcept {
  return _mm256_movemask_ps(_mm256_or_ps(lanes.low, lanes.high)) != 0;
}

inline Lanes either(const Lanes& a, const Lanes& b) noexcept {
  return {_mm256_or_ps(a.low, b.low), _mm256_or_ps(a.high, b.high)};
}

inline Lanes above(const Lanes& x, float threshold) noexcept {
  const __m256 t = _mm256_set1_ps(threshold);
  return {_mm256_cmp_ps(x.low, t, _CMP_GT_OQ), _mm256_cmp_ps(x.high, t, _CMP_GT_OQ)};
}

inline void strike(std::uint32_t* at, __m256 lanes, __m256i drop) noexcept {
  const __m256i struck = _mm256_and_si256(_mm256_castps_si256(lanes), drop);
  auto* word = reinterpret_cast<__m256i*>(at);
  _mm256_store_si256(word, _mm256_andnot_si256(struck, _mm256_load_si256(word)));
}

inline void strike(std::uint64_t* at, __m256 lanes, __m256i drop) noexcept {
  const __m256i wide = _mm256_castps_si256(lanes);
  const __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(wide));
  const __m256i high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(wide, 1));
  auto* word = reinterpret_cast<__m256i*>(at);
  _mm256_store_si256(word,
                     _mm256_andnot_si256(_mm256_and_si256(low, drop), _mm256_load_si256(word)));
  _mm256_store_si256(
      word + 1, _mm256_andnot_si256(_mm256_and_si256(high, drop), _mm256_load_si256(word + 1)));
}

inline __m256i broadcast(std::uint32_t*, std::uint64_t keep) noexcept {
  return _mm256_set1_epi32(static_cast<int>(~keep));
}

inline __m256i broadcast(std::uint64_t*, std::uint64_t keep) noexcept {
  return _mm256_set1_epi64x(static_cast<long long>(~keep));
}

template <class Word>
inline void strike(Word* words, std::uint32_t tree, const Lanes& lanes,
                   std::uint64_t keep) noexcept {
  Word* at = words + static_cast<std::size_t>(tree) * kTreeLanes;
  const __m256i drop = broadcast(at, keep);
  strike(at, lanes.low, drop);
  strike(at + 8, lanes.high, drop);
}

// Lanes that a categorical split sends right, missing ones left out.
inline __m256 unlisted(const std::uint32_t* category_words, TreeCategories set, __m256 x) noexcept {
  const __m256 n_bits = _mm256_set1_ps(static_cast<float>(set.n_bits));
  const __m256 inside = _mm256_and_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GE_OQ),
                                      _mm256_cmp_ps(x, n_bits, _CMP_LT_OQ));
  const __m256i category = _mm256_cvttps_epi32(_mm256_and_ps(x, inside));
  const __m256i word = _mm256_mask_i32gather_epi32(
      _mm256_setzero_si256(), reinterpret_cast<const int*>(category_words + set.word),
      _mm256_srli_epi32(category, 5), _mm256_castps_si256(inside), 4);
  const __m256i bit =
      _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_and_si256(category, _mm256_set1_epi32(31)));
  const __m256i clear = _mm256_cmpeq_epi32(_mm256_and_si256(word, bit), _mm256_setzero_si256());
  return _mm256_and_ps(_mm256_castsi256_ps(clear), _mm256_cmp_ps(x, x, _CMP_ORD_Q));
}

template <class Word>
void strike_leaves(const TreeBitForest& forest, const float* const* rows, Word* words) noexcept {
  constexpr std::uint32_t kTree = ~TreeBitNode::kDefaultRight;
  for (std::int64_t f = 0; f < forest.n_features; ++f) {
    const TreeBitFeature& feature = forest.features[f];
    const Lanes x = {load_column(rows, feature.column), load_column(rows + 8, feature.column)};
    const Lanes missing = {_mm256_cmp_ps(x.low, x.low, _CMP_UNORD_Q),
                           _mm256_cmp_ps(x.high, x.high, _CMP_UNORD_Q)};
    if (!any(missing)) [[likely]] {
      for (const TreeBitNode* node = forest.nodes + feature.first;; ++node) {
        const Lanes right = above(x, node->threshold);
        if (!any(right)) break;  // thresholds rise: no later split is false for any row
        strike(words, node->tree & kTree, right, node->keep);
      }
    } else {
      for (std::int64_t i = feature.first; i < feature.last; ++i) {
        const TreeBitNode& node = forest.nodes[i];
        Lanes right = above(x, node.threshold);
        if (node.tree & TreeBitNode::kDefaultRight) right = either(right, missing);
        strike(words, node.tree & kTree, right, node.keep);
      }
    }
    for (std::int64_t i = feature.first_categorical; i < feature.last_categorical; ++i) {
      const TreeBitCategorical& node = forest.categorical[i];
      Lanes right = {unlisted(forest.category_words, node.categories, x.low),
                     unlisted(forest.category_words, node.categories, x.high)};
      if (node.tree & TreeBitNode::kDefaultRight) right = either(right, missing);
      strike(words, node.tree & kTree, right, node.keep);
    }
  }
}

template <class Word>
void score_bits(const TreeBitForest& forest, const float* const* rows, Word* words,
                double* sums) noexcept {
  constexpr int kBits = 8 * sizeof(Word);
  for (std::int64_t i = 0; i < forest.n_trees * kTreeLanes; ++i) words[i] = ~Word{0};
  strike_leaves(forest, rows, words);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    const double* values = forest.leaves + tree * kBits;
    const Word* word = words + tree * kTreeLanes;
    // Four-wide gathers are no faster than these loads.
    for (int i = 0; i < kTreeLanes; ++i) sums[i] += values[__builtin_ctzll(word[i])];
  }
}

}  // namespace

void score_bits32(const TreeBitForest& forest, const float* const* rows, std::uint32_t* words,
                  double* sums) noexcept {
  score_bits(forest, rows, words, sums);
}

void score_bits64(const TreeBitForest& forest, const float* const* rows, std::uint64_t* words,
                  double* sums) noexcept {
  score_bits(forest, rows, words, sums);
}

}  // namespace elastic_rank::avx2
