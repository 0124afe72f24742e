#include <immintrin.h>

#include "dot_kernels.hpp"

namespace elastic_rank::avx2 {
namespace {

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kLanes = 8;
// A wide row's later lines are left to the hardware's stream detection.
constexpr std::int64_t kMaxAheadBytes = 512;

/// Lane i of the result is the sum of the 8 lanes of sum[i], each in the same tree.
inline __m256 add_lanes(const __m256 (&sum)[kRows]) noexcept {
  __m256 quad[2];
  for (int g = 0; g < 2; ++g) {
    const __m256 a = _mm256_hadd_ps(sum[g * 4], sum[g * 4 + 1]);
    const __m256 b = _mm256_hadd_ps(sum[g * 4 + 2], sum[g * 4 + 3]);
    quad[g] = _mm256_hadd_ps(a, b);
  }
  return _mm256_add_ps(_mm256_permute2f128_ps(quad[0], quad[1], 0x20),
                       _mm256_permute2f128_ps(quad[0], quad[1], 0x31));
}

inline __m256i lanes_below(std::int64_t n) noexcept {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline __m256 dot_block(const float* query, std::int64_t width,
                        const float* const (&row)[kRows]) noexcept {
  __m256 sum[kRows];
  for (std::int64_t i = 0; i < kRows; ++i) sum[i] = _mm256_setzero_ps();
  std::int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    const __m256 q = _mm256_loadu_ps(query + c);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kRows; ++i) {
      sum[i] = _mm256_fmadd_ps(q, _mm256_loadu_ps(row[i] + c), sum[i]);
    }
  }
  if (c < width) {
    const __m256i lanes = lanes_below(width - c);
    const __m256 q = _mm256_maskload_ps(query + c, lanes);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kRows; ++i) {
      sum[i] = _mm256_fmadd_ps(q, _mm256_maskload_ps(row[i] + c, lanes), sum[i]);
    }
  }
  const __m256 total = add_lanes(sum);
  const __m256 nan = _mm256_cmp_ps(total, total, _CMP_UNORD_Q);
  return _mm256_blendv_ps(total, _mm256_set1_ps(__builtin_nanf("")), nan);
}

/// Whether 8 ids follow one another: the hardware fetches such rows ahead better than we do.
inline bool is_run(const std::int64_t* ids) noexcept {
  std::int64_t other = 0;
  for (std::int64_t i = 1; i < kRows; ++i) other |= ids[i] ^ (ids[0] + i);
  return other == 0;
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
    const __m256 scores = dot_block(args.query, args.width, row);
    _mm256_maskstore_ps(args.scores + begin, lanes_below(count), scores);
  }
}

}  // namespace elastic_rank::avx2
