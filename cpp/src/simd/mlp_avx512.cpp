#include <immintrin.h>

#include "mlp_kernels.hpp"

namespace elastic_rank::avx512 {
namespace {

// 6 rows x 4 registers: 24 sums, 4 weights, 1 broadcast. 24 chains cover the latency of two
// multiply-add units three times over, and a step needs fewer loads than multiply-adds. Twelve rows
// by two would need as many pointers, and compilers park what has no register in vector registers:
// every move back takes a slot from a multiply-add.
constexpr std::int64_t kRows = 6;
constexpr std::int64_t kLanes = 16;

template <int R, int V>
void tile(const DenseArgs& args, std::int64_t row, std::int64_t column) noexcept {
  const float* weight = args.weight + column * args.in;
  const float* x[R];
  __m512 sum[R][V];
#pragma GCC unroll 6
  for (int i = 0; i < R; ++i) {
    x[i] = args.rows[row + i];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      sum[i][v] = _mm512_loadu_ps(args.init[row + i] + column + v * kLanes);
    }
  }
  const std::int64_t in = args.in;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < in; ++k, weight += V * kLanes) {
    __m512 w[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) w[v] = _mm512_load_ps(weight + v * kLanes);
#pragma GCC unroll 6
    for (int i = 0; i < R; ++i) {
      const __m512 value = _mm512_set1_ps(x[i][k]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = _mm512_fmadd_ps(value, w[v], sum[i][v]);
    }
  }
  const __m512 floor = _mm512_set1_ps(args.floor);
#pragma GCC unroll 6
  for (int i = 0; i < R; ++i) {
    float* out = args.out + (row + i) * args.out_stride + column;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      // The second operand is what max gives when either is NaN: a NaN sum stays NaN.
      _mm512_storeu_ps(out + v * kLanes, _mm512_max_ps(floor, sum[i][v]));
    }
  }
}

/// The last rows in one tile of their own number, so that weights are read once for all of them.
template <int R, int V>
void last_tile(const DenseArgs& args, std::int64_t row, std::int64_t column) noexcept {
  if constexpr (R > 0) {
    if (args.n - row == R) {
      tile<R, V>(args, row, column);
    } else {
      last_tile<R - 1, V>(args, row, column);
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

template <int V>
void panel(const DenseArgs& args, std::int64_t column, bool fetch) noexcept {
  std::int64_t row = 0;
  for (; row + kRows <= args.n; row += kRows) {
    if (fetch) fetch_rows(args, row + kDenseAhead);
    tile<kRows, V>(args, row, column);
  }
  if (fetch) fetch_rows(args, row + kDenseAhead);
  last_tile<kRows - 1, V>(args, row, column);
}

}  // namespace

void dense_rows(const DenseArgs& args) noexcept {
  for (std::int64_t column = 0; column < args.out_padded; column += kDensePanel) {
    const bool fetch = column == 0;
    switch (args.out_padded - column) {
      case 1 * kLanes: panel<1>(args, column, fetch); break;
      case 2 * kLanes: panel<2>(args, column, fetch); break;
      case 3 * kLanes: panel<3>(args, column, fetch); break;
      default: panel<4>(args, column, fetch);
    }
  }
}

}  // namespace elastic_rank::avx512
