#include "simd/topk_select.hpp"

namespace elastic_rank {
namespace {

// Plain loops over 16 elements, which compilers turn into the baseline's registers, and appends
// that store always and advance by a comparison, so that no branch depends on data.

template <class V, class K>
struct Lanes {
  using Value = V;
  using Key = K;
  static constexpr std::int64_t kLanes = 16;
  struct Vec {
    Value lane[kLanes];
  };

  static void min_max(const Key* keys, std::int64_t n, Key* low, Key* high) noexcept {
    Key least = keys[0], most = keys[0];
    for (std::int64_t i = 1; i < n; ++i) {
      least = keys[i] < least ? keys[i] : least;
      most = keys[i] > most ? keys[i] : most;
    }
    *low = least;
    *high = most;
  }
  static std::int64_t count_reaching(const Key* keys, std::int64_t n, Key key) noexcept {
    Key count = 0;  // as wide as the keys, so that both fit one register shape
    for (std::int64_t i = 0; i < n; ++i) count += keys[i] >= key;
    return count;
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
  /// How many stand before each: those above it, and equals with a lower position.
  static void ranks(const Key* keys, std::int64_t n, std::uint32_t* ranks) noexcept {
    for (std::int64_t i = 0; i < n; ++i) {
      const Key key = keys[i];
      Key rank = 0;
      for (std::int64_t j = 0; j < i; ++j) rank += keys[j] >= key;
      for (std::int64_t j = i + 1; j < n; ++j) rank += keys[j] > key;
      ranks[i] = static_cast<std::uint32_t>(rank);
    }
  }

  static Vec load(const Value* from) noexcept {
    Vec x;
    for (std::int64_t i = 0; i < kLanes; ++i) x.lane[i] = from[i];
    return x;
  }
  /// `x` where it is the larger; an accumulator stays a number, since NaN is larger than nothing.
  static Value max(Value x, Value number) noexcept { return x > number ? x : number; }

  static void chunk_maxima(const Value* row, std::int64_t n, Value lowest, Value* maxima) noexcept {
    Vec most;
    for (Value& lane : most.lane) lane = lowest;
    for (std::int64_t i = 0; i < n; i += kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) most.lane[j] = max(row[i + j], most.lane[j]);
    }
    for (std::int64_t j = 0; j < kLanes; ++j) maxima[j] = most.lane[j];
  }
  static bool any_reaches(const Value* maxima, Value bound) noexcept {
    int any = 0;
    for (std::int64_t j = 0; j < kLanes; ++j) any |= maxima[j] >= bound;
    return any != 0;
  }
};

constexpr std::int32_t bits_of(float x) noexcept {
  return __builtin_bit_cast(std::int32_t, x);
}
constexpr std::int64_t bits_of(double x) noexcept {
  return __builtin_bit_cast(std::int64_t, x);
}

template <class V, class K>
struct Floats : Lanes<V, K> {
  using typename Lanes<V, K>::Vec;
  static constexpr V kLowestNumber = -static_cast<V>(__builtin_inff());
  static constexpr K kLowestKey = ordered(bits_of(kLowestNumber));

  static Vec load_first(const V* from, std::int64_t n) noexcept {
    Vec x;
    for (std::int64_t i = 0; i < Lanes<V, K>::kLanes; ++i) {
      x.lane[i] = i < n ? from[i] : static_cast<V>(__builtin_nanf(""));
    }
    return x;
  }
  /// Adding +0 makes -0 into +0 and nothing else.
  static K to_key(V x) noexcept { return ordered(bits_of(x + V{0})); }
  static V value_of(K key) noexcept { return __builtin_bit_cast(V, ordered(key)); }
};

template <class V, class K>
struct Integers : Lanes<V, K> {
  using typename Lanes<V, K>::Vec;
  static constexpr V kLowestNumber = KeyTraits<K>::kMin + 1;
  static constexpr K kLowestKey = kLowestNumber;

  static Vec load_first(const V* from, std::int64_t n) noexcept {
    Vec x;
    for (std::int64_t i = 0; i < Lanes<V, K>::kLanes; ++i) {
      x.lane[i] = i < n ? from[i] : KeyTraits<K>::kMin;
    }
    return x;
  }
  static K to_key(V x) noexcept { return x; }
  static V value_of(K key) noexcept { return key; }
};

/// What needs both the lanes and the keys of a type.
template <class Base>
struct Portable : Base {
  using Value = typename Base::Value;
  using Key = typename Base::Key;
  // The bound is one value here: a register of copies would only be spilt.
  using Bound = Value;

  static Bound from_key(Key key) noexcept { return Base::value_of(key); }
  static void chunk_maxima(const Value* row, std::int64_t n, Value* maxima) noexcept {
    Base::chunk_maxima(row, n, Base::kLowestNumber, maxima);
  }
  static void fold_to_keys(const Value* maxima, std::int64_t n, Key* keys,
                           std::int64_t groups) noexcept {
    for (std::int64_t g = 0; g < groups; ++g) keys[g] = Base::to_key(maxima[g]);
    for (std::int64_t i = groups; i < n; i += groups) {
      const std::int64_t end = n - i < groups ? n - i : groups;
      for (std::int64_t g = 0; g < end; ++g) {
        const Key key = Base::to_key(maxima[i + g]);
        keys[g] = key > keys[g] ? key : keys[g];
      }
    }
  }
  static std::int64_t any_reaches(const Value* maxima, Key key) noexcept {
    return Base::any_reaches(maxima, Base::value_of(key));
  }
  static std::int64_t append(const typename Base::Vec& x, Bound bound, std::uint32_t place,
                             Key* keys, std::uint32_t* places) noexcept {
    std::int64_t count = 0;
    for (std::uint32_t j = 0; j < Base::kLanes; ++j) {
      keys[count] = Base::to_key(x.lane[j]);
      places[count] = place + j;
      count += x.lane[j] >= bound;
    }
    return count;
  }
};

std::int64_t select_f32(const topk_kernels::RowF32& task) noexcept {
  return Selection<Portable<Floats<float, std::int32_t>>>(task).run();
}
std::int64_t select_i32(const topk_kernels::RowI32& task) noexcept {
  return Selection<Portable<Integers<std::int32_t, std::int32_t>>>(task).run();
}
std::int64_t select_f64(const topk_kernels::RowF64& task) noexcept {
  return Selection<Portable<Floats<double, std::int64_t>>>(task).run();
}

void widen_f16(const std::uint16_t* from, std::int64_t n, float* to) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t half = from[i];
    // A normal half moved into place is too small by 2^112, a denormal one likewise: one exact
    // multiplication corrects both. Infinity and NaN then take the top exponent.
    const std::uint32_t magnitude = (half & 0x7fffu) << 13;
    const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
    const std::uint32_t top = (half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
    const std::uint32_t sign = (half & 0x8000u) << 16;
    to[i] = __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, scaled) | top | sign);
  }
}

void widen_bf16(const std::uint16_t* from, std::int64_t n, float* to) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(from[i]) << 16);
  }
}

}  // namespace

namespace portable {
const topk_kernels::Kernels kTopK = {select_f32, select_i32, select_f64, widen_f16, widen_bf16};
}  // namespace portable
}  // namespace elastic_rank
