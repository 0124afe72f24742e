#include <immintrin.h>

#include "dot_kernels.hpp"

namespace elastic_rank::avx512 {
namespace {

constexpr std::int64_t kRows = 16;
constexpr std::int64_t kLanes = 16;
// Query columns held in registers at once: 4 beside 16 sums.
constexpr std::int64_t kPanel = 4;
// A wide row's later lines are left to the hardware's stream detection.
constexpr std::int64_t kMaxAheadBytes = 512;

/// Lane i of the result is the sum of the 16 lanes of sum[i], each in the same tree.
inline __m512 add_lanes(const __m512 (&sum)[kRows]) noexcept {
  __m512 quad[4];
  for (int g = 0; g < 4; ++g) {
    const __m512 lo01 = _mm512_unpacklo_ps(sum[g * 4], sum[g * 4 + 1]);
    const __m512 hi01 = _mm512_unpackhi_ps(sum[g * 4], sum[g * 4 + 1]);
    const __m512 lo23 = _mm512_unpacklo_ps(sum[g * 4 + 2], sum[g * 4 + 3]);
    const __m512 hi23 = _mm512_unpackhi_ps(sum[g * 4 + 2], sum[g * 4 + 3]);
    const __m512d a = _mm512_castps_pd(_mm512_add_ps(lo01, hi01));
    const __m512d b = _mm512_castps_pd(_mm512_add_ps(lo23, hi23));
    quad[g] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                            _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  // quad[g], 128-bit part p: row 4g + lane, summed over columns 4p..4p+3. Now add the parts.
  const __m512 a = _mm512_add_ps(_mm512_shuffle_f32x4(quad[0], quad[1], 0x44),
                                 _mm512_shuffle_f32x4(quad[0], quad[1], 0xEE));
  const __m512 b = _mm512_add_ps(_mm512_shuffle_f32x4(quad[2], quad[3], 0x44),
                                 _mm512_shuffle_f32x4(quad[2], quad[3], 0xEE));
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
}

inline __m512 dot_block(const float* query, std::int64_t width,
                        const float* const (&row)[kRows]) noexcept {
  __m512 sum[kRows];
  for (std::int64_t i = 0; i < kRows; ++i) sum[i] = _mm512_setzero_ps();
  std::int64_t c = 0;
  for (; c + kPanel * kLanes <= width; c += kPanel * kLanes) {
    __m512 q[kPanel];
    for (std::int64_t p = 0; p < kPanel; ++p) q[p] = _mm512_loadu_ps(query + c + p * kLanes);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t p = 0; p < kPanel; ++p) {
        sum[i] = _mm512_fmadd_ps(q[p], _mm512_loadu_ps(row[i] + c + p * kLanes), sum[i]);
      }
    }
  }
  for (; c < width; c += kLanes) {
    const std::int64_t left = width - c;
    const __mmask16 lanes =
        left >= kLanes ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << left) - 1);
    const __m512 q = _mm512_maskz_loadu_ps(lanes, query + c);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
      sum[i] = _mm512_fmadd_ps(q, _mm512_maskz_loadu_ps(lanes, row[i] + c), sum[i]);
    }
  }
  const __m512 total = add_lanes(sum);
  const __mmask16 nan = _mm512_cmp_ps_mask(total, total, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(total, nan, _mm512_set1_ps(__builtin_nanf("")));
}

/// Whether 16 ids follow one another: the hardware fetches such rows ahead better than we do.
inline bool is_run(const std::int64_t* ids) noexcept {
  const __m512i step = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i first = _mm512_add_epi64(_mm512_set1_epi64(ids[0]), step);
  const __m512i second = _mm512_add_epi64(first, _mm512_set1_epi64(8));
  return (_mm512_cmpneq_epi64_mask(first, _mm512_loadu_si512(ids)) |
          _mm512_cmpneq_epi64_mask(second, _mm512_loadu_si512(ids + 8))) == 0;
}

inline void fetch_ahead(const DotArgs& args, std::int64_t begin, std::int64_t end) noexcept {
  if (end - begin == kRows && is_run(args.ids + begin)) return;
  const std::int64_t row_bytes = args.width * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t bytes = row_bytes < kMaxAheadBytes ? row_bytes : kMaxAheadBytes;
  for (std::int64_t i = begin; i < end; ++i) {
    const char* row = reinterpret_cast<const char*>(args.table + args.ids[i] * args.row_stride);
    // The last byte too: a row seldom starts on a line.
    for (std::int64_t at = 0; at < bytes; at += 64) _mm_prefetch(row + at, _MM_HINT_T0);
    _mm_prefetch(row + bytes - 1, _MM_HINT_T0);
  }
}

inline std::int64_t smaller(std::int64_t a, std::int64_t b) noexcept {
  return a < b ? a : b;
}

}  // namespace

void dot_rows(const DotArgs& args) noexcept {
  if (args.width == 0) {  // no row may be touched, for a table without columns may have no memory
    for (std::int64_t i = 0; i < args.n; ++i) args.scores[i] = 0.0f;
    return;
  }
  const std::int64_t known = args.n + args.n_ahead;
  if (args.ids) fetch_ahead(args, args.n_fetched, smaller(kDotAhead, known));
  for (std::int64_t begin = 0; begin < args.n; begin += kRows) {
    const std::int64_t count = smaller(kRows, args.n - begin);
    if (args.ids) {
      const std::int64_t ahead = smaller(begin + kDotAhead, known);
      fetch_ahead(args, ahead, smaller(ahead + kRows, known));
    }
    const float* row[kRows];
    for (std::int64_t i = 0; i < kRows; ++i) {
      // Places past the end score the block's first row again, so every row has the same code.
      const std::int64_t at = begin + (i < count ? i : 0);
      row[i] = args.table + (args.ids ? args.ids[at] : at) * args.row_stride;
    }
    const __m512 scores = dot_block(args.query, args.width, row);
    const __mmask16 written = static_cast<__mmask16>((1u << count) - 1);
    _mm512_mask_storeu_ps(args.scores + begin, written, scores);
  }
}

}  // namespace elastic_rank::avx512
