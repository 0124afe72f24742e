#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>

#include "elastic_rank/latency_layout.hpp"
#include "elastic_rank/scratch.hpp"
#include "elastic_rank/status.hpp"

namespace elastic_rank {

/// What a sketch held at one reading: counts summed over its shards. Lives in a caller's scratch.
struct LatencyCounts {
  std::span<std::uint64_t> cells;  ///< cells [first, first + cells.size()) of the sketch
  std::int64_t first = 0;          ///< both ends of `cells` are occupied, unless it is empty
  std::uint64_t total = 0;         ///< the sum of `cells`
  std::uint64_t refused = 0;
  double min_s = 0.0;  ///< exact; lies in the first cell
  double max_s = 0.0;  ///< exact; lies in the last cell
};

/// Latency quantiles with a stated relative error, from buckets whose bounds are fixed once and for
/// all (`LatencyLayout`), so that merging is adding integers: exact, commutative, associative.
///
/// Range [2^-30 s, 2^17 s), about 1 ns to 36 hours. Below: counted apart (zero in a cell of its
/// own) and off by less than 1 ns. Above: clamped to 2^17 s. Both are counted. NaN, infinite and
/// negative values are refused and counted.
///
/// Each recording thread owns a shard that only it writes, so a record is a plain load and store
/// and takes no bus lock. Past `kShards` threads the rest share one with atomic adds. The first
/// record of a thread allocates its shard (8 bytes a cell); no later one allocates.
///
/// Thread-safe throughout: records, readings and merges may overlap. A reading sees every record
/// that happened before it, and its quantiles lie inside its own [min, max].
class LatencySketch {
 public:
  /// Most values a sketch holds: sums of two such counts do not wrap.
  static constexpr std::uint64_t kMostCount = (std::uint64_t{1} << 63) - 1;

  /// @pre LatencyLayout::valid_error(relative_error).
  explicit LatencySketch(double relative_error);
  LatencySketch(const LatencySketch&) = delete;
  LatencySketch& operator=(const LatencySketch&) = delete;
  ~LatencySketch();

  const LatencyLayout& layout() const noexcept { return layout_; }

  /// @return false when the value was refused; then nothing but `refused` changed.
  bool record(double seconds) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(seconds);
    Word* own = own_shard();
    if (own == nullptr || !LatencyLayout::in_range(bits)) [[unlikely]] {
      return record_rare(seconds);
    }
    count_owned(own, layout_.bucket_of(bits), bits);
    return true;
  }

  /// Records each value; refused ones are counted and skipped.
  void record_many(std::span<const double> seconds) noexcept;
  void record_many(std::span<const float> seconds) noexcept;

  /// The ceil(q n)-th smallest value within the relative error; NaN when empty.
  /// @pre 0 <= q <= 1.
  double quantile(double q) const noexcept;
  double quantile(const LatencyCounts& counts, double q) const noexcept;

  std::uint64_t count() const noexcept;
  std::uint64_t refused() const noexcept;
  double min_s() const noexcept;  ///< exact; NaN when empty
  double max_s() const noexcept;  ///< exact; NaN when empty
  /// From the buckets, hence within the relative error and independent of the order of records.
  double sum_s(const LatencyCounts& counts) const noexcept;
  std::uint64_t underflow(const LatencyCounts& counts) const noexcept;
  std::uint64_t overflow(const LatencyCounts& counts) const noexcept;

  /// Sums the shards. Valid until the scratch is rewound.
  Status read(LatencyCounts* counts, Scratch& scratch) const noexcept;

  /// Adds a reading of a sketch with the same buckets.
  /// @return invalid_argument when the counts would pass `kMostCount`; then nothing was added.
  Status merge(const LatencyCounts& counts) noexcept;

 private:
  using Word = std::atomic<std::uint64_t>;

  // A shard is one array of words: a header of one cache line, then the cells.
  enum Header : std::size_t { kTotal = 0, kRefused = 1, kMin = 2, kMax = 3, kHeaderWords = 8 };
  static constexpr int kSlotBits = 4;
  static constexpr std::size_t kShards = std::size_t{1} << kSlotBits;

  struct Slot {
    std::atomic<std::uintptr_t> owner{0};  // thread identity; set once, never given back
    std::atomic<Word*> words{nullptr};
  };

  /// Unique among living threads. A new thread may inherit a dead one's number, and with it the
  /// shard: there is still one writer at a time.
  static std::uintptr_t this_thread() noexcept {
#if __has_builtin(__builtin_thread_pointer)
    return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#else
    static thread_local char address;
    return reinterpret_cast<std::uintptr_t>(&address);
#endif
  }

  static std::size_t home_slot(std::uintptr_t thread) noexcept {
    return static_cast<std::size_t>((std::uint64_t{thread} * 0x9E3779B97F4A7C15U) >>
                                    (64 - kSlotBits));
  }

  /// The calling thread's shard if it sits in its home slot, else null.
  Word* own_shard() const noexcept {
    const std::uintptr_t thread = this_thread();
    const Slot& slot = slots_[home_slot(thread)];
    // Relaxed: a thread reads here what it wrote itself, or a value that is not its own number.
    if (slot.owner.load(std::memory_order_relaxed) != thread) return nullptr;
    return slot.words.load(std::memory_order_relaxed);
  }

  static Word& cell(Word* words, std::int64_t index) noexcept {
    return words[kHeaderWords + static_cast<std::size_t>(index)];
  }

  static void count_owned(Word* words, std::int64_t index, std::uint64_t bits) noexcept {
    widen_owned(words, bits, bits);
    Word& counter = cell(words, index);
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    // Release, partner of the acquire in `total()`: whoever sees this count sees its cell and the
    // extremes that cover it.
    words[kTotal].store(words[kTotal].load(std::memory_order_relaxed) + 1,
                        std::memory_order_release);
  }

  static void widen_owned(Word* words, std::uint64_t low, std::uint64_t high) noexcept {
    if (low < words[kMin].load(std::memory_order_relaxed)) {
      words[kMin].store(low, std::memory_order_relaxed);
    }
    if (high > words[kMax].load(std::memory_order_relaxed)) {
      words[kMax].store(high, std::memory_order_relaxed);
    }
  }

  /// Where this thread writes: its own shard, or the shared one when no slot is left.
  struct Writer {
    Word* words;
    bool owned;
  };
  /// The shards that hold anything, at one instant.
  struct Used {
    std::array<Word*, kShards + 1> words;
    std::size_t n = 0;
    std::uint64_t total = 0;
    std::uint64_t refused = 0;
    std::uint64_t min_bits = ~std::uint64_t{0};
    std::uint64_t max_bits = 0;
  };

  bool record_rare(double seconds) noexcept;
  Writer writer() noexcept;
  Word* new_shard() const noexcept;
  static void add(Writer writer, Word& word, std::uint64_t n, std::memory_order order) noexcept;
  static void widen(Writer writer, std::uint64_t low, std::uint64_t high) noexcept;
  void refuse(Writer writer, std::uint64_t n) noexcept;
  template <class T>
  void record_span(std::span<const T> seconds) noexcept;
  template <bool kOwned, class T>
  void record_into(Word* words, std::span<const T> seconds) noexcept;
  Used used() const noexcept;

  LatencyLayout layout_;
  std::array<Slot, kShards> slots_{};
  Word* shared_;
};

}  // namespace elastic_rank
