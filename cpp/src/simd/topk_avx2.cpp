#include <immintrin.h>

#include "simd/topk_select.hpp"

namespace elastic_rank {
namespace {

/// For each 8-bit mask the lanes that are set, in order: what compresses a register in one permute.
struct CompressTable {
  std::uint8_t lanes[256][8];
  constexpr CompressTable() noexcept : lanes() {
    for (unsigned mask = 0; mask < 256; ++mask) {
      unsigned kept = 0;
      for (unsigned lane = 0; lane < 8; ++lane) {
        if (mask >> lane & 1u) lanes[mask][kept++] = static_cast<std::uint8_t>(lane);
      }
    }
  }
};
constexpr CompressTable kCompress;

/// A window of minus ones that slides over 8 lanes: load at 8 - n for the first n.
constexpr std::int32_t kLaneWindow[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

__m256i load_lanes(const void* from) noexcept {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
void store_lanes(void* to, __m256i x) noexcept {
  _mm256_storeu_si256(static_cast<__m256i*>(to), x);
}
__m256i first_lanes(std::int64_t n) noexcept {
  return load_lanes(kLaneWindow + 8 - n);
}

__m256i compressing(unsigned mask) noexcept {
  return _mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kCompress.lanes[mask])));
}

unsigned bits32(__m256i mask) noexcept {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

struct Keys32 {
  using Key = std::int32_t;
  static constexpr std::int64_t kLanes = 8;

  static void min_max(const Key* keys, std::int64_t n, Key* low, Key* high) noexcept {
    __m256i least = load_lanes(keys), most = least;
    for (std::int64_t i = kLanes; i < n; i += kLanes) {
      least = _mm256_min_epi32(least, load_lanes(keys + i));
      most = _mm256_max_epi32(most, load_lanes(keys + i));
    }
    Key lows[kLanes], highs[kLanes];
    store_lanes(lows, least);
    store_lanes(highs, most);
    *low = lows[0];
    *high = highs[0];
    for (std::int64_t i = 1; i < kLanes; ++i) {
      *low = lows[i] < *low ? lows[i] : *low;
      *high = highs[i] > *high ? highs[i] : *high;
    }
  }

  /// @pre key > INT32_MIN, which holds for every key but bottom.
  static __m256i reaching(__m256i x, __m256i key_less_one) noexcept {
    return _mm256_cmpgt_epi32(x, key_less_one);
  }

  static std::int64_t count_reaching(const Key* keys, std::int64_t n, Key key) noexcept {
    const __m256i bound = _mm256_set1_epi32(key - 1);
    __m256i counts = _mm256_setzero_si256();
    for (std::int64_t i = 0; i < n; i += kLanes) {
      counts = _mm256_sub_epi32(counts, reaching(load_lanes(keys + i), bound));
    }
    std::int32_t lanes[kLanes];
    store_lanes(lanes, counts);
    std::int64_t count = 0;
    for (const std::int32_t lane : lanes) count += lane;
    return count;
  }

  static std::int64_t keep_reaching(Key* keys, std::uint32_t* places, std::int64_t n,
                                    Key key) noexcept {
    const __m256i bound = _mm256_set1_epi32(key - 1);
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < n; i += kLanes) {
      const __m256i x = load_lanes(keys + i);
      const __m256i at = load_lanes(places + i);
      const unsigned mask = bits32(reaching(x, bound));
      const __m256i order = compressing(mask);
      store_lanes(keys + kept, _mm256_permutevar8x32_epi32(x, order));
      store_lanes(places + kept, _mm256_permutevar8x32_epi32(at, order));
      kept += __builtin_popcount(mask);
    }
    return kept;
  }

  /// How many stand before each: those above it, and equals with a lower position.
  static void ranks(const Key* keys, std::int64_t n, std::uint32_t* ranks) noexcept {
    for (std::int64_t first = 0; first < n; first += kLanes) {
      const __m256i x = load_lanes(keys + first);
      const __m256i x_less_one = _mm256_sub_epi32(x, _mm256_set1_epi32(1));
      const std::int64_t end = first + kLanes < n ? first + kLanes : n;
      __m256i rank = _mm256_setzero_si256();
      for (std::int64_t j = 0; j < first; ++j) {
        rank = _mm256_sub_epi32(rank, reaching(_mm256_set1_epi32(keys[j]), x_less_one));
      }
      for (std::int64_t j = first; j < end; ++j) {
        const __m256i other = _mm256_set1_epi32(keys[j]);
        const __m256i equal_behind =
            _mm256_andnot_si256(first_lanes(j - first + 1), _mm256_cmpeq_epi32(other, x));
        rank = _mm256_sub_epi32(rank, _mm256_or_si256(_mm256_cmpgt_epi32(other, x), equal_behind));
      }
      for (std::int64_t j = end; j < n; ++j) {
        rank = _mm256_sub_epi32(rank, _mm256_cmpgt_epi32(_mm256_set1_epi32(keys[j]), x));
      }
      store_lanes(ranks + first, rank);
    }
  }

  static std::int64_t push(__m256i keys, unsigned taken, std::uint32_t place, Key* to_keys,
                           std::uint32_t* to_places) noexcept {
    const __m256i order = compressing(taken);
    store_lanes(to_keys, _mm256_permutevar8x32_epi32(keys, order));
    store_lanes(to_places, _mm256_add_epi32(order, _mm256_set1_epi32(static_cast<int>(place))));
    return __builtin_popcount(taken);
  }
};

struct F32 : Keys32 {
  using Value = float;
  using Vec = __m256;
  static constexpr float kLowestNumber = -__builtin_inff();
  static constexpr Key kLowestKey = kLowestKeyF32;

  static Vec load(const float* from) noexcept { return _mm256_loadu_ps(from); }
  static Vec load_first(const float* from, std::int64_t n) noexcept {
    const __m256i lanes = first_lanes(n);
    return _mm256_blendv_ps(_mm256_set1_ps(__builtin_nanf("")), _mm256_maskload_ps(from, lanes),
                            _mm256_castsi256_ps(lanes));
  }
  static Vec from_key(Key key) noexcept {
    return _mm256_castsi256_ps(_mm256_set1_epi32(ordered(key)));
  }
  static __m256i to_key(Vec x) noexcept {
    // Adding +0 makes -0 into +0 and nothing else.
    const __m256i bits = _mm256_castps_si256(_mm256_add_ps(x, _mm256_setzero_ps()));
    const __m256i flip = _mm256_srli_epi32(_mm256_srai_epi32(bits, 31), 1);
    return _mm256_xor_si256(bits, flip);
  }
  /// The second operand where the first is NaN: an accumulator stays a number.
  static Vec max(Vec x, Vec number) noexcept { return _mm256_max_ps(x, number); }
  static unsigned reaches(Vec x, Vec bound) noexcept {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, bound, _CMP_GE_OQ)));
  }

  static void chunk_maxima(const float* row, std::int64_t n, float* maxima) noexcept {
    const Vec lowest = _mm256_set1_ps(kLowestNumber);
    Vec a = lowest, b = lowest, c = lowest, d = lowest;
    for (std::int64_t i = 0; i < n; i += 4 * kLanes) {
      a = max(load(row + i), a);
      b = max(load(row + i + kLanes), b);
      c = max(load(row + i + 2 * kLanes), c);
      d = max(load(row + i + 3 * kLanes), d);
    }
    _mm256_storeu_ps(maxima, max(a, c));
    _mm256_storeu_ps(maxima + kLanes, max(b, d));
  }
  static void fold_to_keys(const float* maxima, std::int64_t n, Key* keys,
                           std::int64_t groups) noexcept {
    for (std::int64_t g = 0; g < groups; g += kLanes) {
      Vec most = load(maxima + g);
      for (std::int64_t i = g + groups; i < n; i += groups) most = max(load(maxima + i), most);
      store_lanes(keys + g, to_key(most));
    }
  }
  static std::int64_t any_reaches(const float* maxima, Key key) noexcept {
    const Vec bound = from_key(key);
    return (reaches(load(maxima), bound) | reaches(load(maxima + kLanes), bound)) != 0;
  }
  static std::int64_t append(Vec x, Vec bound, std::uint32_t place, Key* keys,
                             std::uint32_t* places) noexcept {
    return push(to_key(x), reaches(x, bound), place, keys, places);
  }
};

struct I32 : Keys32 {
  using Value = std::int32_t;
  using Vec = __m256i;
  static constexpr Value kLowestNumber = INT32_MIN + 1;
  static constexpr Key kLowestKey = kLowestNumber;

  static Vec load(const Value* from) noexcept { return load_lanes(from); }
  static Vec load_first(const Value* from, std::int64_t n) noexcept {
    const __m256i lanes = first_lanes(n);
    return _mm256_blendv_epi8(_mm256_set1_epi32(INT32_MIN), _mm256_maskload_epi32(from, lanes),
                              lanes);
  }
  static Vec from_key(Key key) noexcept { return _mm256_set1_epi32(key); }
  static Vec max(Vec x, Vec y) noexcept { return _mm256_max_epi32(x, y); }
  /// Not below the bound: no bound less one here, since a bound is made once a block.
  static unsigned reaches(Vec x, Vec bound) noexcept {
    return ~bits32(_mm256_cmpgt_epi32(bound, x)) & 0xffu;
  }

  static void chunk_maxima(const Value* row, std::int64_t n, Value* maxima) noexcept {
    Vec a = load(row), b = load(row + kLanes), c = load(row + 2 * kLanes),
        d = load(row + 3 * kLanes);
    for (std::int64_t i = 4 * kLanes; i < n; i += 4 * kLanes) {
      a = max(load(row + i), a);
      b = max(load(row + i + kLanes), b);
      c = max(load(row + i + 2 * kLanes), c);
      d = max(load(row + i + 3 * kLanes), d);
    }
    store_lanes(maxima, max(a, c));
    store_lanes(maxima + kLanes, max(b, d));
  }
  static void fold_to_keys(const Value* maxima, std::int64_t n, Key* keys,
                           std::int64_t groups) noexcept {
    for (std::int64_t g = 0; g < groups; g += kLanes) {
      Vec most = load(maxima + g);
      for (std::int64_t i = g + groups; i < n; i += groups) most = max(load(maxima + i), most);
      store_lanes(keys + g, most);
    }
  }
  static std::int64_t any_reaches(const Value* maxima, Key key) noexcept {
    const Vec bound = from_key(key);
    return (reaches(load(maxima), bound) | reaches(load(maxima + kLanes), bound)) != 0;
  }
  static std::int64_t append(Vec x, Vec bound, std::uint32_t place, Key* keys,
                             std::uint32_t* places) noexcept {
    return push(x, reaches(x, bound), place, keys, places);
  }
};

/// Four lanes: compressed by stores that overlap, each kept or overwritten by the next.
struct F64 {
  using Value = double;
  using Key = std::int64_t;
  using Vec = __m256d;
  static constexpr std::int64_t kLanes = 4;
  static constexpr double kLowestNumber = -__builtin_inf();
  static constexpr Key kLowestKey = kLowestKeyF64;

  static void min_max(const Key* keys, std::int64_t n, Key* low, Key* high) noexcept {
    *low = *high = keys[0];
    for (std::int64_t i = 1; i < n; ++i) {
      *low = keys[i] < *low ? keys[i] : *low;
      *high = keys[i] > *high ? keys[i] : *high;
    }
  }
  static std::int64_t count_reaching(const Key* keys, std::int64_t n, Key key) noexcept {
    const __m256i bound = _mm256_set1_epi64x(key - 1);
    __m256i counts = _mm256_setzero_si256();
    for (std::int64_t i = 0; i < n; i += kLanes) {
      counts = _mm256_sub_epi64(counts, _mm256_cmpgt_epi64(load_lanes(keys + i), bound));
    }
    std::int64_t lanes[kLanes];
    store_lanes(lanes, counts);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
  }
  static std::int64_t keep_reaching(Key* keys, std::uint32_t* places, std::int64_t n,
                                    Key key) noexcept {
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const bool reaches = keys[i] >= key;
      keys[kept] = keys[i];
      places[kept] = places[i];
      kept += reaches;
    }
    return kept;
  }
  static void ranks(const Key* keys, std::int64_t n, std::uint32_t* ranks) noexcept {
    for (std::int64_t first = 0; first < n; first += kLanes) {
      const __m256i x = load_lanes(keys + first);
      const __m256i x_less_one = _mm256_sub_epi64(x, _mm256_set1_epi64x(1));
      const std::int64_t end = first + kLanes < n ? first + kLanes : n;
      __m256i rank = _mm256_setzero_si256();
      for (std::int64_t j = 0; j < first; ++j) {
        rank = _mm256_sub_epi64(rank, _mm256_cmpgt_epi64(_mm256_set1_epi64x(keys[j]), x_less_one));
      }
      for (std::int64_t j = first; j < end; ++j) {
        const __m256i other = _mm256_set1_epi64x(keys[j]);
        const __m256i equal_behind =
            _mm256_andnot_si256(first_lanes(2 * (j - first + 1)), _mm256_cmpeq_epi64(other, x));
        rank = _mm256_sub_epi64(rank, _mm256_or_si256(_mm256_cmpgt_epi64(other, x), equal_behind));
      }
      for (std::int64_t j = end; j < n; ++j) {
        rank = _mm256_sub_epi64(rank, _mm256_cmpgt_epi64(_mm256_set1_epi64x(keys[j]), x));
      }
      std::int64_t lanes[kLanes];
      store_lanes(lanes, rank);
      for (std::int64_t i = 0; i < kLanes; ++i) {
        ranks[first + i] = static_cast<std::uint32_t>(lanes[i]);
      }
    }
  }

  static Vec load(const double* from) noexcept { return _mm256_loadu_pd(from); }
  static Vec load_first(const double* from, std::int64_t n) noexcept {
    const __m256i lanes = first_lanes(2 * n);
    return _mm256_blendv_pd(_mm256_set1_pd(__builtin_nan("")), _mm256_maskload_pd(from, lanes),
                            _mm256_castsi256_pd(lanes));
  }
  static Vec from_key(Key key) noexcept {
    return _mm256_castsi256_pd(_mm256_set1_epi64x(ordered(key)));
  }
  static __m256i to_key(Vec x) noexcept {
    const __m256i bits = _mm256_castpd_si256(_mm256_add_pd(x, _mm256_setzero_pd()));
    const __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), bits);
    return _mm256_xor_si256(bits, _mm256_srli_epi64(sign, 1));
  }
  static Vec max(Vec x, Vec number) noexcept { return _mm256_max_pd(x, number); }
  static unsigned reaches(Vec x, Vec bound) noexcept {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(x, bound, _CMP_GE_OQ)));
  }

  static void chunk_maxima(const double* row, std::int64_t n, double* maxima) noexcept {
    const Vec lowest = _mm256_set1_pd(kLowestNumber);
    Vec a = lowest, b = lowest, c = lowest, d = lowest;
    for (std::int64_t i = 0; i < n; i += 4 * kLanes) {
      a = max(load(row + i), a);
      b = max(load(row + i + kLanes), b);
      c = max(load(row + i + 2 * kLanes), c);
      d = max(load(row + i + 3 * kLanes), d);
    }
    _mm256_storeu_pd(maxima, a);
    _mm256_storeu_pd(maxima + kLanes, b);
    _mm256_storeu_pd(maxima + 2 * kLanes, c);
    _mm256_storeu_pd(maxima + 3 * kLanes, d);
  }
  static void fold_to_keys(const double* maxima, std::int64_t n, Key* keys,
                           std::int64_t groups) noexcept {
    for (std::int64_t g = 0; g < groups; g += kLanes) {
      Vec most = load(maxima + g);
      for (std::int64_t i = g + groups; i < n; i += groups) most = max(load(maxima + i), most);
      store_lanes(keys + g, to_key(most));
    }
  }
  static std::int64_t any_reaches(const double* maxima, Key key) noexcept {
    const Vec bound = from_key(key);
    unsigned any = 0;
    for (std::int64_t i = 0; i < kGroupsPerChunk; i += kLanes) {
      any |= reaches(load(maxima + i), bound);
    }
    return any != 0;
  }
  static std::int64_t append(Vec x, Vec bound, std::uint32_t place, Key* keys,
                             std::uint32_t* places) noexcept {
    const unsigned taken = reaches(x, bound);
    Key lanes[kLanes];
    store_lanes(lanes, to_key(x));
    std::int64_t count = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      keys[count] = lanes[lane];
      places[count] = place + lane;
      count += taken >> lane & 1u;
    }
    return count;
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
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  for (; i < n; ++i) to[i] = _cvtsh_ss(from[i]);
}

void widen_bf16(const std::uint16_t* from, std::int64_t n, float* to) noexcept {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    store_lanes(to + i, _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
  for (; i < n; ++i) to[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(from[i]) << 16);
}

}  // namespace

namespace avx2 {
const topk_kernels::Kernels kTopK = {select_f32, select_i32, select_f64, widen_f16, widen_bf16};
}  // namespace avx2
}  // namespace elastic_rank
