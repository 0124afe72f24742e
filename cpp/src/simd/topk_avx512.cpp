#include <immintrin.h>

#include "simd/topk_select.hpp"

namespace elastic_rank {
namespace {

// Compression goes to a register and is stored whole: with a memory destination the instruction is
// microcoded on some processors and then costs more than a hundred cycles.

// The conversion is spelt out: GCC 12 spills a mask as two bytes and, where it counts the bits of
// the spilt copy, reads four. Seen under the thread sanitizer, whose calls force such spills.
std::int64_t count_lanes16(__mmask16 lanes) noexcept {
  return __builtin_popcount(_cvtmask16_u32(lanes));
}
std::int64_t count_lanes8(__mmask8 lanes) noexcept {
  return __builtin_popcount(_cvtmask8_u32(lanes));
}

struct Keys32 {
  using Key = std::int32_t;
  static constexpr std::int64_t kLanes = 16;

  static void min_max(const Key* keys, std::int64_t n, Key* low, Key* high) noexcept {
    __m512i least = _mm512_loadu_si512(keys), most = least;
    for (std::int64_t i = kLanes; i < n; i += kLanes) {
      const __m512i x = _mm512_loadu_si512(keys + i);
      least = _mm512_min_epi32(least, x);
      most = _mm512_max_epi32(most, x);
    }
    *low = _mm512_reduce_min_epi32(least);
    *high = _mm512_reduce_max_epi32(most);
  }

  static std::int64_t count_reaching(const Key* keys, std::int64_t n, Key key) noexcept {
    const __m512i bound = _mm512_set1_epi32(key);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; i += kLanes) {
      const __mmask16 reach = _mm512_cmpge_epi32_mask(_mm512_loadu_si512(keys + i), bound);
      count += count_lanes16(reach);
    }
    return count;
  }

  static std::int64_t keep_reaching(Key* keys, std::uint32_t* places, std::int64_t n,
                                    Key key) noexcept {
    const __m512i bound = _mm512_set1_epi32(key);
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < n; i += kLanes) {
      const __m512i x = _mm512_loadu_si512(keys + i);
      const __m512i at = _mm512_loadu_si512(places + i);
      const __mmask16 reach = _mm512_cmpge_epi32_mask(x, bound);
      _mm512_storeu_si512(keys + kept, _mm512_maskz_compress_epi32(reach, x));
      _mm512_storeu_si512(places + kept, _mm512_maskz_compress_epi32(reach, at));
      kept += count_lanes16(reach);
    }
    return kept;
  }

  /// How many stand before each: those above it, and equals with a lower position.
  static void ranks(const Key* keys, std::int64_t n, std::uint32_t* ranks) noexcept {
    const __m512i minus_one = _mm512_set1_epi32(-1);
    for (std::int64_t first = 0; first < n; first += kLanes) {
      const __m512i x = _mm512_loadu_si512(keys + first);
      const std::int64_t end = first + kLanes < n ? first + kLanes : n;
      __m512i rank = _mm512_setzero_si512();
      const auto add = [&rank, minus_one](__mmask16 before) {
        rank = _mm512_mask_sub_epi32(rank, before, rank, minus_one);
      };
      for (std::int64_t j = 0; j < first; ++j) {
        add(_mm512_cmpge_epi32_mask(_mm512_set1_epi32(keys[j]), x));
      }
      for (std::int64_t j = first; j < end; ++j) {
        const __m512i other = _mm512_set1_epi32(keys[j]);
        const auto behind = static_cast<__mmask16>(0xfffeu << (j - first));
        add(static_cast<__mmask16>(_mm512_cmpgt_epi32_mask(other, x) |
                                   _mm512_mask_cmpeq_epi32_mask(behind, other, x)));
      }
      for (std::int64_t j = end; j < n; ++j) {
        add(_mm512_cmpgt_epi32_mask(_mm512_set1_epi32(keys[j]), x));
      }
      const auto lanes = static_cast<__mmask16>((1u << (end - first)) - 1);
      _mm512_mask_storeu_epi32(ranks + first, lanes, rank);
    }
  }

  static std::int64_t push(__m512i keys, __mmask16 taken, std::uint32_t place, Key* to_keys,
                           std::uint32_t* to_places) noexcept {
    const __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i places = _mm512_add_epi32(iota, _mm512_set1_epi32(static_cast<int>(place)));
    _mm512_storeu_si512(to_keys, _mm512_maskz_compress_epi32(taken, keys));
    _mm512_storeu_si512(to_places, _mm512_maskz_compress_epi32(taken, places));
    return count_lanes16(taken);
  }
};

struct F32 : Keys32 {
  using Value = float;
  using Vec = __m512;
  static constexpr float kLowestNumber = -__builtin_inff();
  static constexpr Key kLowestKey = kLowestKeyF32;

  static Vec load(const float* from) noexcept { return _mm512_loadu_ps(from); }
  static Vec load_first(const float* from, std::int64_t n) noexcept {
    const auto lanes = static_cast<__mmask16>((1u << n) - 1);
    return _mm512_mask_loadu_ps(_mm512_set1_ps(__builtin_nanf("")), lanes, from);
  }
  static Vec from_key(Key key) noexcept {
    return _mm512_castsi512_ps(_mm512_set1_epi32(ordered(key)));
  }
  static __m512i to_key(Vec x) noexcept {
    // Adding +0 makes -0 into +0 and nothing else.
    const __m512i bits = _mm512_castps_si512(_mm512_add_ps(x, _mm512_setzero_ps()));
    const __m512i flip =
        _mm512_and_si512(_mm512_srai_epi32(bits, 31), _mm512_set1_epi32(INT32_MAX));
    return _mm512_xor_si512(bits, flip);
  }
  /// The second operand where the first is NaN: an accumulator stays a number.
  static Vec max(Vec x, Vec number) noexcept { return _mm512_max_ps(x, number); }

  static void chunk_maxima(const float* row, std::int64_t n, float* maxima) noexcept {
    const Vec lowest = _mm512_set1_ps(kLowestNumber);
    Vec a = lowest, b = lowest, c = lowest, d = lowest;
    for (std::int64_t i = 0; i < n; i += 4 * kLanes) {
      a = max(load(row + i), a);
      b = max(load(row + i + kLanes), b);
      c = max(load(row + i + 2 * kLanes), c);
      d = max(load(row + i + 3 * kLanes), d);
    }
    _mm512_storeu_ps(maxima, max(max(a, b), max(c, d)));
  }
  static void fold_to_keys(const float* maxima, std::int64_t n, Key* keys,
                           std::int64_t groups) noexcept {
    for (std::int64_t g = 0; g < groups; g += kLanes) {
      Vec most = load(maxima + g);
      for (std::int64_t i = g + groups; i < n; i += groups) most = max(load(maxima + i), most);
      _mm512_storeu_si512(keys + g, to_key(most));
    }
  }
  static std::int64_t any_reaches(const float* maxima, Key key) noexcept {
    return _mm512_cmp_ps_mask(load(maxima), from_key(key), _CMP_GE_OQ) != 0;
  }
  static std::int64_t append(Vec x, Vec bound, std::uint32_t place, Key* keys,
                             std::uint32_t* places) noexcept {
    return push(to_key(x), _mm512_cmp_ps_mask(x, bound, _CMP_GE_OQ), place, keys, places);
  }
};

struct I32 : Keys32 {
  using Value = std::int32_t;
  using Vec = __m512i;
  static constexpr Value kLowestNumber = INT32_MIN + 1;
  static constexpr Key kLowestKey = kLowestNumber;

  static Vec load(const Value* from) noexcept { return _mm512_loadu_si512(from); }
  static Vec load_first(const Value* from, std::int64_t n) noexcept {
    const auto lanes = static_cast<__mmask16>((1u << n) - 1);
    return _mm512_mask_loadu_epi32(_mm512_set1_epi32(INT32_MIN), lanes, from);
  }
  static Vec from_key(Key key) noexcept { return _mm512_set1_epi32(key); }

  static void chunk_maxima(const Value* row, std::int64_t n, Value* maxima) noexcept {
    Vec a = load(row), b = load(row + kLanes), c = load(row + 2 * kLanes),
        d = load(row + 3 * kLanes);
    for (std::int64_t i = 4 * kLanes; i < n; i += 4 * kLanes) {
      a = _mm512_max_epi32(load(row + i), a);
      b = _mm512_max_epi32(load(row + i + kLanes), b);
      c = _mm512_max_epi32(load(row + i + 2 * kLanes), c);
      d = _mm512_max_epi32(load(row + i + 3 * kLanes), d);
    }
    _mm512_storeu_si512(maxima, _mm512_max_epi32(_mm512_max_epi32(a, b), _mm512_max_epi32(c, d)));
  }
  static void fold_to_keys(const Value* maxima, std::int64_t n, Key* keys,
                           std::int64_t groups) noexcept {
    for (std::int64_t g = 0; g < groups; g += kLanes) {
      Vec most = load(maxima + g);
      for (std::int64_t i = g + groups; i < n; i += groups) {
        most = _mm512_max_epi32(load(maxima + i), most);
      }
      _mm512_storeu_si512(keys + g, most);
    }
  }
  static std::int64_t any_reaches(const Value* maxima, Key key) noexcept {
    return _mm512_cmpge_epi32_mask(load(maxima), from_key(key)) != 0;
  }
  static std::int64_t append(Vec x, Vec bound, std::uint32_t place, Key* keys,
                             std::uint32_t* places) noexcept {
    return push(x, _mm512_cmpge_epi32_mask(x, bound), place, keys, places);
  }
};

struct F64 {
  using Value = double;
  using Key = std::int64_t;
  using Vec = __m512d;
  static constexpr std::int64_t kLanes = 8;
  static constexpr double kLowestNumber = -__builtin_inf();
  static constexpr Key kLowestKey = kLowestKeyF64;

  static void min_max(const Key* keys, std::int64_t n, Key* low, Key* high) noexcept {
    __m512i least = _mm512_loadu_si512(keys), most = least;
    for (std::int64_t i = kLanes; i < n; i += kLanes) {
      const __m512i x = _mm512_loadu_si512(keys + i);
      least = _mm512_min_epi64(least, x);
      most = _mm512_max_epi64(most, x);
    }
    *low = _mm512_reduce_min_epi64(least);
    *high = _mm512_reduce_max_epi64(most);
  }
  static std::int64_t count_reaching(const Key* keys, std::int64_t n, Key key) noexcept {
    const __m512i bound = _mm512_set1_epi64(key);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; i += kLanes) {
      const __mmask8 reach = _mm512_cmpge_epi64_mask(_mm512_loadu_si512(keys + i), bound);
      count += count_lanes8(reach);
    }
    return count;
  }
  static std::int64_t keep_reaching(Key* keys, std::uint32_t* places, std::int64_t n,
                                    Key key) noexcept {
    const __m512i bound = _mm512_set1_epi64(key);
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < n; i += kLanes) {
      const __m512i x = _mm512_loadu_si512(keys + i);
      const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places + i));
      const __mmask8 reach = _mm512_cmpge_epi64_mask(x, bound);
      _mm512_storeu_si512(keys + kept, _mm512_maskz_compress_epi64(reach, x));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(places + kept),
                          _mm256_maskz_compress_epi32(reach, at));
      kept += count_lanes8(reach);
    }
    return kept;
  }
  static void ranks(const Key* keys, std::int64_t n, std::uint32_t* ranks) noexcept {
    const __m512i minus_one = _mm512_set1_epi64(-1);
    for (std::int64_t first = 0; first < n; first += kLanes) {
      const __m512i x = _mm512_loadu_si512(keys + first);
      const std::int64_t end = first + kLanes < n ? first + kLanes : n;
      __m512i rank = _mm512_setzero_si512();
      const auto add = [&rank, minus_one](__mmask8 before) {
        rank = _mm512_mask_sub_epi64(rank, before, rank, minus_one);
      };
      for (std::int64_t j = 0; j < first; ++j) {
        add(_mm512_cmpge_epi64_mask(_mm512_set1_epi64(keys[j]), x));
      }
      for (std::int64_t j = first; j < end; ++j) {
        const __m512i other = _mm512_set1_epi64(keys[j]);
        const auto behind = static_cast<__mmask8>(0xfeu << (j - first));
        add(static_cast<__mmask8>(_mm512_cmpgt_epi64_mask(other, x) |
                                  _mm512_mask_cmpeq_epi64_mask(behind, other, x)));
      }
      for (std::int64_t j = end; j < n; ++j) {
        add(_mm512_cmpgt_epi64_mask(_mm512_set1_epi64(keys[j]), x));
      }
      const auto lanes = static_cast<__mmask8>((1u << (end - first)) - 1);
      _mm256_mask_storeu_epi32(ranks + first, lanes, _mm512_cvtepi64_epi32(rank));
    }
  }

  static Vec load(const double* from) noexcept { return _mm512_loadu_pd(from); }
  static Vec load_first(const double* from, std::int64_t n) noexcept {
    const auto lanes = static_cast<__mmask8>((1u << n) - 1);
    return _mm512_mask_loadu_pd(_mm512_set1_pd(__builtin_nan("")), lanes, from);
  }
  static Vec from_key(Key key) noexcept {
    return _mm512_castsi512_pd(_mm512_set1_epi64(ordered(key)));
  }
  static __m512i to_key(Vec x) noexcept {
    const __m512i bits = _mm512_castpd_si512(_mm512_add_pd(x, _mm512_setzero_pd()));
    const __m512i flip =
        _mm512_and_si512(_mm512_srai_epi64(bits, 63), _mm512_set1_epi64(INT64_MAX));
    return _mm512_xor_si512(bits, flip);
  }
  static Vec max(Vec x, Vec number) noexcept { return _mm512_max_pd(x, number); }

  static void chunk_maxima(const double* row, std::int64_t n, double* maxima) noexcept {
    const Vec lowest = _mm512_set1_pd(kLowestNumber);
    Vec a = lowest, b = lowest, c = lowest, d = lowest;
    for (std::int64_t i = 0; i < n; i += 4 * kLanes) {
      a = max(load(row + i), a);
      b = max(load(row + i + kLanes), b);
      c = max(load(row + i + 2 * kLanes), c);
      d = max(load(row + i + 3 * kLanes), d);
    }
    _mm512_storeu_pd(maxima, max(a, c));
    _mm512_storeu_pd(maxima + kLanes, max(b, d));
  }
  static void fold_to_keys(const double* maxima, std::int64_t n, Key* keys,
                           std::int64_t groups) noexcept {
    for (std::int64_t g = 0; g < groups; g += kLanes) {
      Vec most = load(maxima + g);
      for (std::int64_t i = g + groups; i < n; i += groups) most = max(load(maxima + i), most);
      _mm512_storeu_si512(keys + g, to_key(most));
    }
  }
  static std::int64_t any_reaches(const double* maxima, Key key) noexcept {
    const Vec bound = from_key(key);
    return (_mm512_cmp_pd_mask(load(maxima), bound, _CMP_GE_OQ) |
            _mm512_cmp_pd_mask(load(maxima + kLanes), bound, _CMP_GE_OQ)) != 0;
  }
  static std::int64_t append(Vec x, Vec bound, std::uint32_t place, Key* keys,
                             std::uint32_t* places) noexcept {
    const __mmask8 taken = _mm512_cmp_pd_mask(x, bound, _CMP_GE_OQ);
    const __m256i at = _mm256_add_epi32(_mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0),
                                        _mm256_set1_epi32(static_cast<int>(place)));
    _mm512_storeu_si512(keys, _mm512_maskz_compress_epi64(taken, to_key(x)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(places), _mm256_maskz_compress_epi32(taken, at));
    return count_lanes8(taken);
  }
};

std::int64_t select_f32(const topk_kernels::RowF32& task) noexcept {
  return Selection<F32>(task).run();
}
std::int64_t select_i32(const topk_kernels::RowI32& task) noexcept {
  return Selection<I32>(task).run();
}
std::int64_t select_f64(const topk_kernels::RowF64& task) noexcept {
  return Selection<F64>(task).run();
}

void widen_f16(const std::uint16_t* from, std::int64_t n, float* to) noexcept {
  for (std::int64_t i = 0; i < n; i += 16) {
    const auto lanes = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
    const __m256i half = _mm256_maskz_loadu_epi16(lanes, from + i);
    _mm512_mask_storeu_ps(to + i, lanes, _mm512_cvtph_ps(half));
  }
}

void widen_bf16(const std::uint16_t* from, std::int64_t n, float* to) noexcept {
  for (std::int64_t i = 0; i < n; i += 16) {
    const auto lanes = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from + i));
    _mm512_mask_storeu_epi32(to + i, lanes, _mm512_slli_epi32(wide, 16));
  }
}

}  // namespace

namespace avx512 {
const topk_kernels::Kernels kTopK = {select_f32, select_i32, select_f64, widen_f16, widen_bf16};
}  // namespace avx512
}  // namespace elastic_rank
