#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The scan floor: reads every element once and keeps a maximum, as fast as this machine's widest
// registers read. What selects must read, so no selection is faster.

namespace {

float scan_plain(const float* row, std::size_t n) {
  float most = row[0];
  for (std::size_t i = 0; i < n; ++i) most = row[i] > most ? row[i] : most;
  return most;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float scan_avx512(const float* row, std::size_t n) {
  __m512 a = _mm512_set1_ps(row[0]), b = a, c = a, d = a;
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    a = _mm512_max_ps(_mm512_loadu_ps(row + i), a);
    b = _mm512_max_ps(_mm512_loadu_ps(row + i + 16), b);
    c = _mm512_max_ps(_mm512_loadu_ps(row + i + 32), c);
    d = _mm512_max_ps(_mm512_loadu_ps(row + i + 48), d);
  }
  const float rest = i < n ? scan_plain(row + i, n - i) : row[0];
  const float most = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d)));
  return rest > most ? rest : most;
}

__attribute__((target("avx2"))) float scan_avx2(const float* row, std::size_t n) {
  __m256 a = _mm256_set1_ps(row[0]), b = a, c = a, d = a;
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    a = _mm256_max_ps(_mm256_loadu_ps(row + i), a);
    b = _mm256_max_ps(_mm256_loadu_ps(row + i + 8), b);
    c = _mm256_max_ps(_mm256_loadu_ps(row + i + 16), c);
    d = _mm256_max_ps(_mm256_loadu_ps(row + i + 24), d);
  }
  float lanes[8];
  _mm256_storeu_ps(lanes, _mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d)));
  const float rest = i < n ? scan_plain(row + i, n - i) : row[0];
  const float most = scan_plain(lanes, 8);
  return rest > most ? rest : most;
}
#endif

}  // namespace

extern "C" float scan(const float* row, std::size_t n) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return scan_avx512(row, n);
  if (__builtin_cpu_supports("avx2")) return scan_avx2(row, n);
#endif
  return scan_plain(row, n);
}
