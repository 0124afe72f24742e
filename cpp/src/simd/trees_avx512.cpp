#include <immintrin.h>

#include "trees_kernels.hpp"

namespace elastic_rank::avx512 {
namespace {

// One column of 16 rows.
inline __m512 load_column(const float* const* rows, std::int64_t column) noexcept {
  const __m512i offset = _mm512_set1_epi64(column * 4);
  const __m512i low = _mm512_add_epi64(_mm512_loadu_si512(rows), offset);
  const __m512i high = _mm512_add_epi64(_mm512_loadu_si512(rows + 8), offset);
  const __m256 x0 = _mm512_i64gather_ps(low, nullptr, 1);
  const __m256 x1 = _mm512_i64gather_ps(high, nullptr, 1);
  return _mm512_insertf32x8(_mm512_castps256_ps512(x0), x1, 1);
}

inline void strike(std::uint32_t* words, std::uint32_t tree, __mmask16 lanes,
                   std::uint64_t keep) noexcept {
  std::uint32_t* at = words + static_cast<std::size_t>(tree) * kTreeLanes;
  const __m512i word = _mm512_load_si512(at);
  const __m512i bits = _mm512_set1_epi32(static_cast<int>(keep));
  _mm512_store_si512(at, _mm512_mask_and_epi32(word, lanes, word, bits));
}

inline void strike(std::uint64_t* words, std::uint32_t tree, __mmask16 lanes,
                   std::uint64_t keep) noexcept {
  std::uint64_t* at = words + static_cast<std::size_t>(tree) * kTreeLanes;
  const __m512i bits = _mm512_set1_epi64(static_cast<long long>(keep));
  const __m512i low = _mm512_load_si512(at);
  const __m512i high = _mm512_load_si512(at + 8);
  _mm512_store_si512(at, _mm512_mask_and_epi64(low, static_cast<__mmask8>(lanes), low, bits));
  _mm512_store_si512(at + 8,
                     _mm512_mask_and_epi64(high, static_cast<__mmask8>(lanes >> 8), high, bits));
}

// Lanes that a categorical split sends right, missing ones left out.
inline __mmask16 unlisted(const std::uint32_t* category_words, TreeCategories set, __m512 x,
                          __mmask16 missing) noexcept {
  const __m512 n_bits = _mm512_set1_ps(static_cast<float>(set.n_bits));
  const __mmask16 inside = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GE_OQ) &
                           _mm512_cmp_ps_mask(x, n_bits, _CMP_LT_OQ);
  const __m512i category = _mm512_maskz_cvttps_epi32(inside, x);
  const __m512i word = _mm512_mask_i32gather_epi32(
      _mm512_setzero_si512(), inside, _mm512_srli_epi32(category, 5), category_words + set.word, 4);
  const __m512i bit =
      _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(category, _mm512_set1_epi32(31)));
  const __mmask16 listed = _mm512_mask_test_epi32_mask(inside, word, bit);
  return static_cast<__mmask16>(~listed & ~missing);
}

template <class Word>
void strike_leaves(const TreeBitForest& forest, const float* const* rows, Word* words) noexcept {
  constexpr std::uint32_t kTree = ~TreeBitNode::kDefaultRight;
  for (std::int64_t f = 0; f < forest.n_features; ++f) {
    const TreeBitFeature& feature = forest.features[f];
    const __m512 x = load_column(rows, feature.column);
    const __mmask16 missing = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    if (missing == 0) [[likely]] {
      for (const TreeBitNode* node = forest.nodes + feature.first;; ++node) {
        const __mmask16 right = _mm512_cmp_ps_mask(x, _mm512_set1_ps(node->threshold), _CMP_GT_OQ);
        if (right == 0) break;  // thresholds rise: no later split is false for any row
        strike(words, node->tree & kTree, right, node->keep);
      }
    } else {
      for (std::int64_t i = feature.first; i < feature.last; ++i) {
        const TreeBitNode& node = forest.nodes[i];
        __mmask16 right = _mm512_cmp_ps_mask(x, _mm512_set1_ps(node.threshold), _CMP_GT_OQ);
        if (node.tree & TreeBitNode::kDefaultRight) right |= missing;
        strike(words, node.tree & kTree, right, node.keep);
      }
    }
    for (std::int64_t i = feature.first_categorical; i < feature.last_categorical; ++i) {
      const TreeBitCategorical& node = forest.categorical[i];
      __mmask16 right = unlisted(forest.category_words, node.categories, x, missing);
      if (node.tree & TreeBitNode::kDefaultRight) right |= missing;
      strike(words, node.tree & kTree, right, node.keep);
    }
  }
}

// Doubles of a table of 32 that sits in four registers, by index.
inline __m512d look_up(const __m512d (&table)[4], __m512i index) noexcept {
  const __m512d low = _mm512_permutex2var_pd(table[0], index, table[1]);
  const __m512d high = _mm512_permutex2var_pd(table[2], index, table[3]);
  return _mm512_mask_blend_pd(_mm512_test_epi64_mask(index, _mm512_set1_epi64(16)), low, high);
}

}  // namespace

void score_bits32(const TreeBitForest& forest, const float* const* rows, std::uint32_t* words,
                  double* sums) noexcept {
  const __m512i all = _mm512_set1_epi32(-1);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    _mm512_store_si512(words + tree * kTreeLanes, all);
  }
  strike_leaves(forest, rows, words);
  __m512d sum0 = _mm512_loadu_pd(sums);
  __m512d sum1 = _mm512_loadu_pd(sums + 8);
  for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
    const __m512i word = _mm512_load_si512(words + tree * kTreeLanes);
    const __m512i lowest = _mm512_and_si512(word, _mm512_sub_epi32(_mm512_setzero_si512(), word));
    // The exponent of a power of two is its bit's number.
    const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepu32_ps(lowest)), 23);
    const __m512i leaf = _mm512_sub_epi32(exponent, _mm512_set1_epi32(127));
    const double* values = forest.leaves + tree * 32;
    const __m512d table[4] = {_mm512_loadu_pd(values), _mm512_loadu_pd(values + 8),
                              _mm512_loadu_pd(values + 16), _mm512_loadu_pd(values + 24)};
    const __m512i leaf0 = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(leaf));
    const __m512i leaf1 = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(leaf, 1));
    sum0 = _mm512_add_pd(sum0, look_up(table, leaf0));
    sum1 = _mm512_add_pd(sum1, look_up(table, leaf1));
  }
  _mm512_storeu_pd(sums, sum0);
  _mm512_storeu_pd(sums + 8, sum1);
}

void score_bits64(const TreeBitForest& forest, const float* const* rows, std::uint64_t* words,
                  double* sums) noexcept {
  const __m512i all = _mm512_set1_epi64(-1);
  for (std::int64_t i = 0; i < forest.n_trees * kTreeLanes; i += 8) {
    _mm512_store_si512(words + i, all);
  }
  strike_leaves(forest, rows, words);
  for (int half = 0; half < kTreeLanes; half += 8) {
    __m512d sum = _mm512_loadu_pd(sums + half);
    for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
      const __m512i word = _mm512_load_si512(words + tree * kTreeLanes + half);
      const __m512i lowest = _mm512_and_si512(word, _mm512_sub_epi64(_mm512_setzero_si512(), word));
      const __m512i exponent =
          _mm512_srli_epi64(_mm512_castpd_si512(_mm512_cvtepu64_pd(lowest)), 52);
      const __m512i leaf = _mm512_sub_epi64(exponent, _mm512_set1_epi64(1023));
      sum = _mm512_add_pd(sum, _mm512_i64gather_pd(leaf, forest.leaves + tree * 64, 8));
    }
    _mm512_storeu_pd(sums + half, sum);
  }
}

}  // namespace elastic_rank::avx512
