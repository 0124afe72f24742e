#include "elastic_rank/latency_wire.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

namespace elastic_rank {
namespace {

constexpr std::array<std::uint8_t, 5> kMagic = {'E', 'R', 'L', 'S', kLatencyWireVersion};
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kMostVarintBytes = 10;
// Magic, relative error, two varints, two extremes, checksum.
constexpr std::size_t kMostFixedBytes = 5 + 8 + 2 * kMostVarintBytes + 2 * 8 + kChecksumBytes;

std::uint32_t fnv1a(std::span<const std::uint8_t> bytes) noexcept {
  std::uint32_t hash = 2166136261U;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 16777619U;
  return hash;
}

class Writer {
 public:
  explicit Writer(std::span<std::uint8_t> room) noexcept : room_(room) {}
  void byte(std::uint8_t value) noexcept { room_[size_++] = value; }
  void fixed(std::uint64_t value, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; ++i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void real(double value) noexcept { fixed(std::bit_cast<std::uint64_t>(value), 8); }
  void varint(std::uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  std::span<const std::uint8_t> written() const noexcept { return room_.first(size_); }

 private:
  std::span<std::uint8_t> room_;
  std::size_t size_ = 0;
};

/// Reads fields; after the first one that is short or malformed, `good()` is false for good and
/// every field is 0.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) noexcept : bytes_(bytes) {}
  bool good() const noexcept { return good_; }
  bool at_end() const noexcept { return good_ && at_ == bytes_.size(); }

  std::uint8_t byte() noexcept {
    if (at_ == bytes_.size()) good_ = false;
    return good_ ? bytes_[at_++] : std::uint8_t{0};
  }
  double real() noexcept {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return std::bit_cast<double>(value);
  }
  std::uint64_t varint() noexcept {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t part = byte();
      const std::uint64_t payload = part & 0x7FU;
      value |= payload << shift;
      if (part < 0x80) {
        const bool shortest = part != 0 || shift == 0;
        const bool fits = shift < 63 || payload <= 1;
        if (!shortest || !fits) good_ = false;
        return good_ ? value : 0;
      }
    }
    good_ = false;
    return 0;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

bool checksum_agrees(std::span<const std::uint8_t> bytes) noexcept {
  const std::size_t body = bytes.size() - kChecksumBytes;
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < kChecksumBytes; ++i) {
    stored |= std::uint32_t{bytes[body + i]} << (8 * i);
  }
  return stored == fnv1a(bytes.first(body));
}

/// Reads the pairs twice: once to learn the ends, so that the scratch holds the occupied part only.
bool read_pairs(Reader reader, std::uint64_t pairs, std::uint64_t n_cells, LatencyCounts* counts,
                std::span<std::uint64_t> cells, std::int64_t* last) noexcept {
  std::uint64_t cell = 0;
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::uint64_t step = reader.varint();
    if (step >= n_cells) return false;
    cell = i == 0 ? step : cell + step + 1;
    const std::uint64_t count = reader.varint();
    if (!reader.good() || cell >= n_cells || count == 0) return false;
    if (count > LatencySketch::kMostCount - total) return false;
    total += count;
    if (i == 0) counts->first = static_cast<std::int64_t>(cell);
    if (!cells.empty()) cells[cell - static_cast<std::uint64_t>(counts->first)] = count;
  }
  *last = static_cast<std::int64_t>(cell);
  counts->total = total;
  return reader.at_end();
}

Status read_body(Reader& reader, std::uint64_t pairs, const LatencyLayout& layout,
                 LatencyCounts* counts, Scratch& scratch) noexcept {
  const double low = reader.real();
  const double high = reader.real();
  const auto n_cells = static_cast<std::uint64_t>(layout.n_cells());
  std::int64_t last = 0;
  if (!reader.good() || pairs > n_cells) return Status::invalid_argument;
  if (!read_pairs(reader, pairs, n_cells, counts, {}, &last)) return Status::invalid_argument;
  if (!(low >= 0.0 && low <= high && high <= LatencyLayout::kMaxSeconds) || std::signbit(low) ||
      std::signbit(high) || layout.cell_of(std::bit_cast<std::uint64_t>(low)) != counts->first ||
      layout.cell_of(std::bit_cast<std::uint64_t>(high)) != last) {
    return Status::invalid_argument;
  }
  const std::span<std::uint64_t> cells = scratch.take<std::uint64_t>(last - counts->first + 1);
  if (cells.empty()) return Status::out_of_memory;
  std::fill(cells.begin(), cells.end(), 0);
  if (!read_pairs(reader, pairs, n_cells, counts, cells, &last)) return Status::invalid_argument;
  counts->cells = cells;
  counts->min_s = low;
  counts->max_s = high;
  return Status::ok;
}

}  // namespace

Status encode_latency(const LatencySketch& sketch, std::span<const std::uint8_t>* bytes,
                      Scratch& scratch) noexcept {
  LatencyCounts counts;
  if (const Status status = sketch.read(&counts, scratch); status != Status::ok) return status;
  const auto pairs = static_cast<std::size_t>(std::count_if(
      counts.cells.begin(), counts.cells.end(), [](std::uint64_t n) { return n > 0; }));
  const std::size_t most = kMostFixedBytes + pairs * 2 * kMostVarintBytes;
  const std::span<std::uint8_t> room =
      scratch.take<std::uint8_t>(static_cast<std::ptrdiff_t>(most));
  if (room.empty()) return Status::out_of_memory;
  Writer out(room);
  for (const std::uint8_t byte : kMagic) out.byte(byte);
  out.real(sketch.layout().relative_error());
  out.varint(counts.refused);
  out.varint(pairs);
  if (pairs > 0) {
    out.real(counts.min_s);
    out.real(counts.max_s);
    std::size_t next = 0;  // the cell that a step of 0 names, counted from the first
    for (std::size_t i = 0; i < counts.cells.size(); ++i) {
      if (counts.cells[i] == 0) continue;
      out.varint(i == 0 ? static_cast<std::uint64_t>(counts.first) : i - next);
      out.varint(counts.cells[i]);
      next = i + 1;
    }
  }
  out.fixed(fnv1a(out.written()), kChecksumBytes);
  *bytes = out.written();
  return Status::ok;
}

Status decode_latency(std::span<const std::uint8_t> bytes, double* relative_error,
                      LatencyCounts* counts, Scratch& scratch) noexcept {
  *counts = {};
  if (bytes.size() < kMagic.size() + kChecksumBytes || !checksum_agrees(bytes)) {
    return Status::invalid_argument;
  }
  Reader reader(bytes.first(bytes.size() - kChecksumBytes));
  for (const std::uint8_t expected : kMagic) {
    if (reader.byte() != expected) return Status::invalid_argument;
  }
  const double error = reader.real();
  if (!LatencyLayout::valid_error(error)) return Status::invalid_argument;  // NaN too
  const std::uint64_t refused = reader.varint();
  const std::uint64_t pairs = reader.varint();
  if (!reader.good() || refused > LatencySketch::kMostCount) return Status::invalid_argument;
  *relative_error = error;
  if (pairs == 0) {
    counts->refused = refused;
    return reader.at_end() ? Status::ok : Status::invalid_argument;
  }
  const LatencyLayout layout(error);
  const Status status = read_body(reader, pairs, layout, counts, scratch);
  counts->refused = refused;
  return status;
}

}  // namespace elastic_rank
