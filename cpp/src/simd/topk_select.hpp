#pragma once

#include <cstdint>

#include "simd/topk_kernels.hpp"

/// The selection of one row, written once over a register type L and compiled by each unit into a
/// copy of its own (anonymous namespace). Every step is exact, so all levels give the same bits.
///
/// 1. One pass keeps the maxima of strided groups. The k-th largest of a set of group maxima is a
///    lower bound of the k-th largest element, whatever the data: k groups hold one that large.
/// 2. Chunks whose maxima reach the bound are read again and their elements at or above it kept:
/// for
///    random data about 1.2 k of n, at the price of a second look at few chunks.
/// 3. Survivors are cut to exactly k and sorted. They stand in position order, so that keeping the
///    first of equals, and a stable sort, is all that ties need.
namespace elastic_rank {
namespace {

using topk_kernels::kBlock;
using topk_kernels::kGroupsPerChunk;

/// Chunks whose maxima are looked at in one go. Small, because a bound raised by an overflow
/// (masses of equal values) is seen only by the next batch.
constexpr std::int64_t kBatch = 64;
/// Up to this many are sorted by counting: quadratic, without a branch that depends on data.
constexpr std::int64_t kRankSortLimit = 192;

template <class Key>
struct KeyTraits;
template <>
struct KeyTraits<std::int32_t> {
  using Unsigned = std::uint32_t;
  static constexpr std::int32_t kMin = INT32_MIN;
  static constexpr std::int32_t kMax = INT32_MAX;
};
template <>
struct KeyTraits<std::int64_t> {
  using Unsigned = std::uint64_t;
  static constexpr std::int64_t kMin = INT64_MIN;
  static constexpr std::int64_t kMax = INT64_MAX;
};

/// A key and how many of those looked at reach it.
template <class Key>
struct Bound {
  Key key;
  std::int64_t reach;
};

/// A key that at least k and at most k + slack of `keys` reach, or, where equal keys forbid that,
/// the k-th largest itself. Bisection over the key space: as many steps as the range has bits at
/// most, each a vector count over keys that lie in the first-level cache.
/// @param floor no real key lies below it; padding may.
/// @pre n is a multiple of 16; at least k >= 1 real keys.
template <class L>
Bound<typename L::Key> kth_key(const typename L::Key* keys, std::int64_t n, std::int64_t k,
                               std::int64_t slack, typename L::Key floor) noexcept {
  using Key = typename L::Key;
  using Unsigned = typename KeyTraits<Key>::Unsigned;
  Key low, high;
  L::min_max(keys, n, &low, &high);
  if (high <= floor) return {floor, n};
  std::int64_t reach = L::count_reaching(keys, n, high);
  if (reach >= k) return {high, reach};
  if (low < floor) low = floor;
  reach = n;
  while (static_cast<Unsigned>(high) - static_cast<Unsigned>(low) > 1) {
    const auto half = (static_cast<Unsigned>(high) - static_cast<Unsigned>(low)) / 2;
    const Key middle = static_cast<Key>(static_cast<Unsigned>(low) + half);
    const std::int64_t count = L::count_reaching(keys, n, middle);
    if (count >= k) {
      low = middle;
      reach = count;
      if (count <= k + slack) break;
    } else {
      high = middle;
    }
  }
  return {low, reach};
}

/// A survivor on its way through the radix passes: distance from the largest key, and its place.
template <class Key>
struct Item;
template <>
struct Item<std::int32_t> {
  std::uint32_t distance;
  std::uint32_t place;
};
template <>
struct Item<std::int64_t> {
  std::uint64_t distance;
  std::uint64_t place;
};

/// One stable counting pass by eight bits of the distance.
template <class Key>
void radix_pass(const Item<Key>* from, std::int64_t n, int shift, std::uint32_t* counts,
                Item<Key>* to) noexcept {
  std::uint32_t sum = 0;
  for (int digit = 0; digit < 256; ++digit) {
    const std::uint32_t count = counts[digit];
    counts[digit] = sum;
    sum += count;
  }
  for (std::int64_t i = 0; i < n; ++i) to[counts[(from[i].distance >> shift) & 255]++] = from[i];
}

/// Stable insertion sort of what is nearly in order; gives up, leaving a permutation that is still
/// stable, when it takes more than four moves an item.
template <class Key>
bool insertion_sort(Item<Key>* items, std::int64_t n) noexcept {
  std::int64_t moves = 4 * n;
  for (std::int64_t i = 1; i < n; ++i) {
    const Item<Key> item = items[i];
    std::int64_t j = i;
    for (; j > 0 && items[j - 1].distance > item.distance; --j) items[j] = items[j - 1];
    items[j] = item;
    moves -= i - j;
    if (moves < 0) return false;
  }
  return true;
}

/// Stable radix sort, largest key first. Two passes over the 16 leading bits in which the keys
/// differ leave few neighbours out of order; where they leave many (keys bunched far below an
/// outlier), all digits are visited, least significant first.
template <class Key>
void radix_sort(const Key* keys, const std::uint32_t* places, std::int64_t n, std::uint64_t* memory,
                std::int64_t* positions) noexcept {
  using Unsigned = typename KeyTraits<Key>::Unsigned;
  Key low = keys[0], high = keys[0];
  for (std::int64_t i = 1; i < n; ++i) {
    low = keys[i] < low ? keys[i] : low;
    high = keys[i] > high ? keys[i] : high;
  }
  const std::uint64_t span = static_cast<Unsigned>(high) - static_cast<Unsigned>(low);
  int bits = 0;
  while (bits < 64 && (span >> bits) != 0) ++bits;
  const int shift = bits > 16 ? bits - 16 : 0;

  auto* items = reinterpret_cast<Item<Key>*>(memory);
  auto* spare = items + n;
  std::uint32_t lesser[256] = {}, greater[256] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const Unsigned distance = static_cast<Unsigned>(high) - static_cast<Unsigned>(keys[i]);
    items[i] = {distance, places[i]};
    ++lesser[(distance >> shift) & 255];
    ++greater[(distance >> shift >> 8) & 255];
  }
  radix_pass(items, n, shift, lesser, spare);
  radix_pass(spare, n, shift + 8, greater, items);
  if (shift != 0 && !insertion_sort(items, n)) {
    for (int digit = 0; digit < bits; digit += 8) {
      std::uint32_t counts[256] = {};
      for (std::int64_t i = 0; i < n; ++i) ++counts[(items[i].distance >> digit) & 255];
      radix_pass(items, n, digit, counts, spare);
      auto* const swap = items;
      items = spare;
      spare = swap;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) positions[i] = static_cast<std::int64_t>(items[i].place);
}

template <class L>
class Selection {
 public:
  using Value = typename L::Value;
  using Key = typename L::Key;
  using Task = topk_kernels::RowTask<Value, Key>;

  explicit Selection(const Task& task) noexcept : task_(task) {}

  std::int64_t run() noexcept {
    const std::int64_t chunks = task_.chunk == 0 ? 0 : task_.n / task_.chunk;
    if (chunks != 0) {
      raise_bound(chunks);
      take_chunks(chunks);
    }
    take(chunks * task_.chunk, task_.n);
    if (count_ > task_.k) keep_best();
    if (task_.sort) {
      sort();
    } else {
      for (std::int64_t i = 0; i < count_; ++i) task_.positions[i] = task_.places[i];
    }
    return count_ == task_.k ? count_ : add_bottoms();
  }

 private:
  void raise_bound(std::int64_t chunks) noexcept {
    for (std::int64_t c = 0; c < chunks; ++c) {
      L::chunk_maxima(task_.row + c * task_.chunk, task_.chunk, task_.maxima + c * kGroupsPerChunk);
    }
    // Folded with a stride, so that a run of large values spreads over the groups.
    L::fold_to_keys(task_.maxima, chunks * kGroupsPerChunk, task_.group_keys, task_.groups);
    const Key key =
        kth_key<L>(task_.group_keys, task_.groups, task_.k, task_.k / 16, L::kLowestKey).key;
    if (key > bound_) bound_ = key;
    floor_ = bound_;
  }

  void take_chunks(std::int64_t chunks) noexcept {
    std::int64_t hits[kBatch];
    for (std::int64_t first = 0; first < chunks && !closed_; first += kBatch) {
      const std::int64_t end = first + kBatch < chunks ? first + kBatch : chunks;
      std::int64_t n_hits = 0;
      for (std::int64_t c = first; c < end; ++c) {
        hits[n_hits] = c;
        n_hits += L::any_reaches(task_.maxima + c * kGroupsPerChunk, bound_);
      }
      for (std::int64_t h = 0; h < n_hits; ++h) {
        take(hits[h] * task_.chunk, (hits[h] + 1) * task_.chunk);
      }
    }
  }

  /// Appends the elements of [begin, end) at or above the bound.
  void take(std::int64_t begin, std::int64_t end) noexcept {
    while (begin < end && !closed_) {
      if (count_ > task_.capacity - kBlock) {
        make_room();
        continue;
      }
      const std::int64_t stop = begin + kBlock < end ? begin + kBlock : end;
      const auto bound = L::from_key(bound_);
      Key* keys = task_.keys + count_;
      std::uint32_t* places = task_.places + count_;
      for (; begin + L::kLanes <= stop; begin += L::kLanes) {
        const std::int64_t taken = L::append(L::load(task_.row + begin), bound,
                                             static_cast<std::uint32_t>(begin), keys, places);
        keys += taken;
        places += taken;
      }
      if (begin < stop) {
        keys += L::append(L::load_first(task_.row + begin, stop - begin), bound,
                          static_cast<std::uint32_t>(begin), keys, places);
        begin = stop;
      }
      count_ = keys - task_.keys;
    }
  }

  /// The survivors do not fit: masses of equal or of rising values. Keeps the best k; whatever
  /// comes later stands behind them, so it must exceed the least of them, not equal it.
  void make_room() noexcept {
    const Key least = keep_best();
    if (least == KeyTraits<Key>::kMax) {
      closed_ = true;
    } else {
      bound_ = static_cast<Key>(least + 1);
    }
  }

  /// Cuts the survivors to the best k, still in position order; returns the least of these.
  Key keep_best() noexcept {
    const std::int64_t padded = (count_ + kGroupsPerChunk - 1) / kGroupsPerChunk * kGroupsPerChunk;
    // Bottom reaches no key that is asked for.
    for (std::int64_t i = count_; i < padded; ++i) task_.keys[i] = KeyTraits<Key>::kMin;
    const Bound<Key> kth = kth_key<L>(task_.keys, padded, task_.k, 0, floor_);
    count_ = L::keep_reaching(task_.keys, task_.places, padded, kth.key);
    if (count_ > task_.k) drop_last_equals(kth.key);
    return kth.key;
  }

  /// Of the keys equal to `least`, keeps as many as fit, first come first.
  void drop_last_equals(Key least) noexcept {
    std::int64_t above = 0;
    for (std::int64_t i = 0; i < count_; ++i) above += task_.keys[i] > least;
    std::int64_t room = task_.k - above;
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      const bool equal = task_.keys[i] == least;
      const bool keep = !equal || room > 0;
      task_.keys[kept] = task_.keys[i];
      task_.places[kept] = task_.places[i];
      room -= equal;
      kept += keep;
    }
    count_ = kept;
  }

  void sort() noexcept {
    if (count_ == 0) return;
    if (count_ > kRankSortLimit) {
      radix_sort<Key>(task_.keys, task_.places, count_, task_.items, task_.positions);
      return;
    }
    for (std::int64_t i = count_; i % L::kLanes != 0; ++i) task_.keys[i] = KeyTraits<Key>::kMin;
    std::uint32_t ranks[kRankSortLimit];
    L::ranks(task_.keys, count_, ranks);
    for (std::int64_t i = 0; i < count_; ++i) task_.positions[ranks[i]] = task_.places[i];
  }

  static bool is_bottom(Value value) noexcept { return !(value >= L::kLowestNumber); }

  /// Fewer numbers than k: every number is in, and bottoms follow in position order.
  std::int64_t add_bottoms() noexcept {
    std::int64_t missing = task_.k - count_;
    std::int64_t written = task_.sort ? count_ : 0;
    for (std::int64_t i = 0; i < task_.n; ++i) {
      const bool bottom = is_bottom(task_.row[i]);
      const bool wanted =
          bottom ? missing > 0 && (!task_.eligible || task_.eligible[i] != 0) : !task_.sort;
      if (!wanted) continue;
      task_.positions[written++] = i;
      missing -= bottom;
      if (task_.sort && missing == 0) break;
    }
    return written;
  }

  const Task& task_;
  Key bound_ = L::kLowestKey;  ///< what an element must reach to be kept
  Key floor_ = L::kLowestKey;  ///< the first bound: no survivor lies below it
  std::int64_t count_ = 0;
  bool closed_ = false;
};

/// Float bits to their ordered key and back: the same step, since it keeps the sign.
constexpr std::int32_t ordered(std::int32_t bits) noexcept {
  return bits ^ ((bits >> 31) & INT32_MAX);
}
constexpr std::int64_t ordered(std::int64_t bits) noexcept {
  return bits ^ ((bits >> 63) & INT64_MAX);
}

constexpr std::int32_t kInfinityBitsF32 = 0x7f800000;
constexpr std::int64_t kInfinityBitsF64 = 0x7ff0000000000000;
constexpr std::int32_t kLowestKeyF32 = ordered(static_cast<std::int32_t>(0xff800000u));
constexpr std::int64_t kLowestKeyF64 = ordered(static_cast<std::int64_t>(0xfff0000000000000u));

}  // namespace
}  // namespace elastic_rank
