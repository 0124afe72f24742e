#include "elastic_rank/latency_sketch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

namespace elastic_rank {
namespace {

constexpr std::align_val_t kShardAlignment{64};

/// The ceil(q n)-th, counted from one.
std::uint64_t rank_of(double q, std::uint64_t total) noexcept {
  const double rank = std::ceil(q * static_cast<double>(total));
  if (!(rank > 1.0)) return 1;
  return rank < static_cast<double>(total) ? static_cast<std::uint64_t>(rank) : total;
}

// Cells summed before a compare: a walk is then bound by loads, not by a chain of branches.
constexpr std::int64_t kStride = 8;

template <class CountAt>
std::uint64_t stride_sum(std::int64_t from, const CountAt& count_at) noexcept {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < kStride; ++i) sum += count_at(from + i);
  return sum;
}

/// The cell in [first, last] where the rank falls. Walks from the nearer end: a p99 looks at the
/// top of the range only. @pre 1 <= rank <= total, and the cells hold at least `total`.
template <class CountAt>
std::int64_t find_cell(std::int64_t first, std::int64_t last, std::uint64_t rank,
                       std::uint64_t total, const CountAt& count_at) noexcept {
  if (rank > total / 2) {
    std::uint64_t above = total - rank;  // values that rank higher
    for (; last - first >= kStride; last -= kStride) {
      const std::uint64_t here = stride_sum(last - kStride + 1, count_at);
      if (here > above) break;
      above -= here;
    }
    for (; last > first; --last) {
      const std::uint64_t here = count_at(last);
      if (here > above) return last;
      above -= here;
    }
    return first;
  }
  std::uint64_t left = rank;
  for (; last - first >= kStride; first += kStride) {
    const std::uint64_t here = stride_sum(first, count_at);
    if (here >= left) break;
    left -= here;
  }
  for (; first < last; ++first) {
    const std::uint64_t here = count_at(first);
    if (here >= left) return first;
    left -= here;
  }
  return last;
}

}  // namespace

LatencySketch::LatencySketch(double relative_error)
    : layout_(relative_error), shared_(new_shard()) {
  if (shared_ == nullptr) throw std::bad_alloc();
}

LatencySketch::~LatencySketch() {
  // Words are trivially destructible: the memory is all there is to give back.
  for (Slot& slot : slots_) {
    ::operator delete(slot.words.load(std::memory_order_relaxed), kShardAlignment);
  }
  ::operator delete(shared_, kShardAlignment);
}

LatencySketch::Word* LatencySketch::new_shard() const noexcept {
  const std::size_t n = kHeaderWords + static_cast<std::size_t>(layout_.n_cells());
  void* memory = ::operator new(n * sizeof(Word), kShardAlignment, std::nothrow);
  if (memory == nullptr) return nullptr;
  Word* words = static_cast<Word*>(memory);
  for (std::size_t i = 0; i < n; ++i) new (words + i) Word(0);
  words[kMin].store(~std::uint64_t{0}, std::memory_order_relaxed);
  return words;
}

LatencySketch::Writer LatencySketch::writer() noexcept {
  const std::uintptr_t thread = this_thread();
  const std::size_t home = home_slot(thread);
  for (std::size_t step = 0; step < kShards; ++step) {
    Slot& slot = slots_[(home + step) % kShards];
    std::uintptr_t owner = slot.owner.load(std::memory_order_relaxed);
    if (owner == 0 &&
        slot.owner.compare_exchange_strong(owner, thread, std::memory_order_relaxed)) {
      Word* words = new_shard();
      // Release, partner of the acquire in `used()`: a reader sees the words set to zero.
      slot.words.store(words, std::memory_order_release);
      if (words != nullptr) return {words, true};
      slot.owner.store(0, std::memory_order_relaxed);
      break;
    }
    if (owner == thread) return {slot.words.load(std::memory_order_relaxed), true};
  }
  return {shared_, false};
}

void LatencySketch::add(Writer writer, Word& word, std::uint64_t n,
                        std::memory_order order) noexcept {
  if (writer.owned) {
    word.store(word.load(std::memory_order_relaxed) + n, order);
  } else {
    word.fetch_add(n, order);
  }
}

void LatencySketch::widen(Writer writer, std::uint64_t low, std::uint64_t high) noexcept {
  if (writer.owned) return widen_owned(writer.words, low, high);
  Word& least = writer.words[kMin];
  std::uint64_t seen = least.load(std::memory_order_relaxed);
  while (low < seen && !least.compare_exchange_weak(seen, low, std::memory_order_relaxed)) {
  }
  Word& most = writer.words[kMax];
  seen = most.load(std::memory_order_relaxed);
  while (high > seen && !most.compare_exchange_weak(seen, high, std::memory_order_relaxed)) {
  }
}

void LatencySketch::refuse(Writer writer, std::uint64_t n) noexcept {
  add(writer, writer.words[kRefused], n, std::memory_order_relaxed);
}

bool LatencySketch::record_rare(double seconds) noexcept {
  const Writer to = writer();
  if (!(seconds >= 0.0) || std::isinf(seconds)) {  // the first test is false for NaN
    refuse(to, 1);
    return false;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(
      std::min(seconds, LatencyLayout::kMaxSeconds) + 0.0);  // -0 becomes +0
  widen(to, bits, bits);
  add(to, cell(to.words, layout_.cell_of(bits)), 1, std::memory_order_relaxed);
  add(to, to.words[kTotal], 1, std::memory_order_release);
  return true;
}

template <bool kOwned, class T>
void LatencySketch::record_into(Word* words, std::span<const T> seconds) noexcept {
  const Writer to{words, kOwned};
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  std::uint64_t counted = 0;
  std::uint64_t refused = 0;
  for (const T given : seconds) {
    const double value = static_cast<double>(given);
    auto bits = std::bit_cast<std::uint64_t>(value);
    std::int64_t index;
    if (LatencyLayout::in_range(bits)) [[likely]] {
      index = layout_.bucket_of(bits);
    } else if (!(value >= 0.0) || std::isinf(value)) {
      ++refused;
      continue;
    } else {
      bits = std::bit_cast<std::uint64_t>(std::min(value, LatencyLayout::kMaxSeconds) + 0.0);
      index = layout_.cell_of(bits);
    }
    low = std::min(low, bits);
    high = std::max(high, bits);
    ++counted;
    add(to, cell(words, index), 1, std::memory_order_relaxed);
  }
  // Extremes and cells first, the total last: the order that `count_owned` explains.
  if (counted > 0) widen(to, low, high);
  if (refused > 0) refuse(to, refused);
  add(to, words[kTotal], counted, std::memory_order_release);
}

template <class T>
void LatencySketch::record_span(std::span<const T> seconds) noexcept {
  const Writer to = writer();
  if (to.owned) {
    record_into<true>(to.words, seconds);
  } else {
    record_into<false>(to.words, seconds);
  }
}

void LatencySketch::record_many(std::span<const double> seconds) noexcept {
  record_span(seconds);
}
void LatencySketch::record_many(std::span<const float> seconds) noexcept {
  record_span(seconds);
}

LatencySketch::Used LatencySketch::used() const noexcept {
  Used found;
  const auto look = [&found](Word* words) {
    if (words == nullptr) return;
    found.refused += words[kRefused].load(std::memory_order_relaxed);
    // Acquire, partner of the release by which a record ends; the extremes are read after it.
    const std::uint64_t total = words[kTotal].load(std::memory_order_acquire);
    if (total == 0) return;
    found.words[found.n++] = words;
    found.total += total;
    found.min_bits = std::min(found.min_bits, words[kMin].load(std::memory_order_relaxed));
    found.max_bits = std::max(found.max_bits, words[kMax].load(std::memory_order_relaxed));
  };
  look(shared_);
  for (const Slot& slot : slots_) look(slot.words.load(std::memory_order_acquire));
  return found;
}

std::uint64_t LatencySketch::count() const noexcept {
  return used().total;
}
std::uint64_t LatencySketch::refused() const noexcept {
  return used().refused;
}

double LatencySketch::min_s() const noexcept {
  const Used from = used();
  return from.n == 0 ? std::numeric_limits<double>::quiet_NaN()
                     : std::bit_cast<double>(from.min_bits);
}

double LatencySketch::max_s() const noexcept {
  const Used from = used();
  return from.n == 0 ? std::numeric_limits<double>::quiet_NaN()
                     : std::bit_cast<double>(from.max_bits);
}

double LatencySketch::quantile(double q) const noexcept {
  const Used from = used();
  if (from.n == 0) return std::numeric_limits<double>::quiet_NaN();
  const double low = std::bit_cast<double>(from.min_bits);
  const double high = std::bit_cast<double>(from.max_bits);
  if (q <= 0.0) return low;
  if (q >= 1.0) return high;
  const std::int64_t first = layout_.cell_of(from.min_bits);
  const std::int64_t last = layout_.cell_of(from.max_bits);
  const std::uint64_t rank = rank_of(q, from.total);
  const auto in_one = [words = from.words[0]](std::int64_t cell_index) noexcept {
    return cell(words, cell_index).load(std::memory_order_relaxed);
  };
  const auto in_all = [&from](std::int64_t cell_index) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < from.n; ++i) {
      sum += cell(from.words[i], cell_index).load(std::memory_order_relaxed);
    }
    return sum;
  };
  const std::int64_t index = from.n == 1 ? find_cell(first, last, rank, from.total, in_one)
                                         : find_cell(first, last, rank, from.total, in_all);
  return std::clamp(layout_.middle(index), low, high);
}

double LatencySketch::quantile(const LatencyCounts& counts, double q) const noexcept {
  if (counts.total == 0) return std::numeric_limits<double>::quiet_NaN();
  if (q <= 0.0) return counts.min_s;
  if (q >= 1.0) return counts.max_s;
  const auto count_at = [&counts](std::int64_t index) noexcept {
    return counts.cells[static_cast<std::size_t>(index - counts.first)];
  };
  const std::int64_t last = counts.first + static_cast<std::int64_t>(counts.cells.size()) - 1;
  const std::int64_t index =
      find_cell(counts.first, last, rank_of(q, counts.total), counts.total, count_at);
  return std::clamp(layout_.middle(index), counts.min_s, counts.max_s);
}

double LatencySketch::sum_s(const LatencyCounts& counts) const noexcept {
  double sum = 0.0;
  for (std::size_t i = 0; i < counts.cells.size(); ++i) {
    const double value = layout_.middle(counts.first + static_cast<std::int64_t>(i));
    sum += static_cast<double>(counts.cells[i]) * std::clamp(value, counts.min_s, counts.max_s);
  }
  return sum;
}

std::uint64_t LatencySketch::underflow(const LatencyCounts& counts) const noexcept {
  const std::int64_t at = LatencyLayout::kUnderCell - counts.first;
  const bool held = at >= 0 && at < static_cast<std::int64_t>(counts.cells.size());
  return held ? counts.cells[static_cast<std::size_t>(at)] : 0;
}

std::uint64_t LatencySketch::overflow(const LatencyCounts& counts) const noexcept {
  const std::int64_t at = layout_.over_cell() - counts.first;
  const bool held = at >= 0 && at < static_cast<std::int64_t>(counts.cells.size());
  return held ? counts.cells[static_cast<std::size_t>(at)] : 0;
}

Status LatencySketch::read(LatencyCounts* counts, Scratch& scratch) const noexcept {
  const Used from = used();
  *counts = {};
  counts->refused = from.refused;
  if (from.n == 0) return Status::ok;
  std::int64_t first = layout_.cell_of(from.min_bits);
  std::int64_t last = layout_.cell_of(from.max_bits);
  const std::span<std::uint64_t> cells = scratch.take<std::uint64_t>(last - first + 1);
  if (cells.empty()) return Status::out_of_memory;
  std::fill(cells.begin(), cells.end(), 0);
  for (std::size_t i = 0; i < from.n; ++i) {
    Word* begin = &cell(from.words[i], first);
    for (std::size_t j = 0; j < cells.size(); ++j) {
      cells[j] += begin[j].load(std::memory_order_relaxed);
    }
  }
  // A record under way may have moved an extreme and not yet its cell: the ends are drawn in to
  // cells that are occupied, so that what is read always agrees with itself.
  std::size_t skip = 0;
  while (cells[skip] == 0) ++skip;
  std::size_t end = cells.size();
  while (cells[end - 1] == 0) --end;
  counts->cells = cells.subspan(skip, end - skip);
  for (const std::uint64_t n : counts->cells) counts->total += n;
  last = first + static_cast<std::int64_t>(end) - 1;
  first += static_cast<std::int64_t>(skip);
  counts->first = first;
  const double low = std::bit_cast<double>(from.min_bits);
  const double high = std::bit_cast<double>(from.max_bits);
  counts->min_s = layout_.cell_of(from.min_bits) == first ? low : layout_.middle(first);
  counts->max_s = layout_.cell_of(from.max_bits) == last ? high : layout_.middle(last);
  if (counts->min_s > counts->max_s) counts->min_s = counts->max_s;
  return Status::ok;
}

Status LatencySketch::merge(const LatencyCounts& counts) noexcept {
  const Used have = used();
  if (counts.total > kMostCount - std::min(have.total, kMostCount) ||
      counts.refused > kMostCount - std::min(have.refused, kMostCount)) {
    return Status::invalid_argument;
  }
  const Writer to = writer();
  if (counts.refused > 0) refuse(to, counts.refused);
  if (counts.total == 0) return Status::ok;
  widen(to, std::bit_cast<std::uint64_t>(counts.min_s), std::bit_cast<std::uint64_t>(counts.max_s));
  Word* begin = &cell(to.words, counts.first);
  for (std::size_t i = 0; i < counts.cells.size(); ++i) {
    // An owned add of nothing costs less than a branch that cannot be foreseen; an atomic one not.
    if (!to.owned && counts.cells[i] == 0) continue;
    add(to, begin[i], counts.cells[i], std::memory_order_relaxed);
  }
  add(to, to.words[kTotal], counts.total, std::memory_order_release);
  return Status::ok;
}

}  // namespace elastic_rank
