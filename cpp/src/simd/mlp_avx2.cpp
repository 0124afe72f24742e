#include <immintrin.h>

#include "mlp_kernels.hpp"

namespace elastic_rank::avx2 {
namespace {

// 6 rows x 2 registers: 12 sums, 2 weights, 1 broadcast of the 16 registers.
constexpr std::int64_t kRows = 6;
constexpr std::int64_t kLanes = 8;

/// 16 columns of a panel whose rows of weights lie `weight_stride` floats apart.
template <int R>
void tile(const DenseArgs& args, std::int64_t row, std::int64_t column, const float* weight,
          std::int64_t weight_stride) noexcept {
  const float* x[R];
  __m256 sum[R][2];
#pragma GCC unroll 6
  for (int i = 0; i < R; ++i) {
    x[i] = args.rows[row + i];
    const float* init = args.init[row + i] + column;
    sum[i][0] = _mm256_loadu_ps(init);
    sum[i][1] = _mm256_loadu_ps(init + kLanes);
  }
  const std::int64_t in = args.in;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < in; ++k, weight += weight_stride) {
    const __m256 w0 = _mm256_load_ps(weight);
    const __m256 w1 = _mm256_load_ps(weight + kLanes);
#pragma GCC unroll 6
    for (int i = 0; i < R; ++i) {
      const __m256 value = _mm256_broadcast_ss(x[i] + k);
      sum[i][0] = _mm256_fmadd_ps(value, w0, sum[i][0]);
      sum[i][1] = _mm256_fmadd_ps(value, w1, sum[i][1]);
    }
  }
  const __m256 floor = _mm256_set1_ps(args.floor);
#pragma GCC unroll 6
  for (int i = 0; i < R; ++i) {
    float* out = args.out + (row + i) * args.out_stride + column;
    // The second operand is what max gives when either is NaN: a NaN sum stays NaN.
    _mm256_storeu_ps(out, _mm256_max_ps(floor, sum[i][0]));
    _mm256_storeu_ps(out + kLanes, _mm256_max_ps(floor, sum[i][1]));
  }
}

template <int R>
void last_tile(const DenseArgs& args, std::int64_t row, std::int64_t column, const float* weight,
               std::int64_t weight_stride) noexcept {
  if constexpr (R > 0) {
    if (args.n - row == R) {
      tile<R>(args, row, column, weight, weight_stride);
    } else {
      last_tile<R - 1>(args, row, column, weight, weight_stride);
    }
  }
}

inline void fetch_rows(const DenseArgs& args, std::int64_t begin) noexcept {
  const std::int64_t known = args.n + args.n_ahead;
  const std::int64_t end = begin + kRows < known ? begin + kRows : known;
  const std::int64_t bytes = args.in * static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t i = begin; i < end; ++i) {
    const char* x = reinterpret_cast<const char*>(args.rows[i]);
    for (std::int64_t at = 0; at < bytes; at += 64) _mm_prefetch(x + at, _MM_HINT_T0);
    // The last byte too: a row seldom starts on a line.
    if (bytes > 0) _mm_prefetch(x + bytes - 1, _MM_HINT_T0);
  }
}

void unit(const DenseArgs& args, std::int64_t column) noexcept {
  const std::int64_t first = column - column % kDensePanel;
  const std::int64_t width = args.out_padded - first;
  const std::int64_t stride = width < kDensePanel ? width : kDensePanel;
  const float* weight = args.weight + first * args.in + (column - first);
  std::int64_t row = 0;
  for (; row + kRows <= args.n; row += kRows) {
    if (column == 0) fetch_rows(args, row + kDenseAhead);
    tile<kRows>(args, row, column, weight, stride);
  }
  if (column == 0) fetch_rows(args, row + kDenseAhead);
  last_tile<kRows - 1>(args, row, column, weight, stride);
}

}  // namespace

void dense_rows(const DenseArgs& args) noexcept {
  for (std::int64_t column = 0; column < args.out_padded; column += kDenseUnit) {
    unit(args, column);
  }
}

}  // namespace elastic_rank::avx2
