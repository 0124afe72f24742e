#pragma once

#include <bit>
#include <cstdint>

namespace elastic_rank {

/// Where a latency is counted: an octave is cut into 2^k equal parts, so a bucket's number is the
/// float's exponent and leading mantissa bits, one shift away. Cells in order: zero, below the
/// range, the buckets of [2^-30 s, 2^17 s), at or above the range.
class LatencyLayout {
 public:
  static constexpr double kMinSeconds = 0x1p-30;
  static constexpr double kMaxSeconds = 0x1p17;
  static constexpr double kLeastError = 0.0005;
  static constexpr double kMostError = 0.2;
  static constexpr std::uint64_t kLowBits = std::bit_cast<std::uint64_t>(kMinSeconds);
  static constexpr std::uint64_t kHighBits = std::bit_cast<std::uint64_t>(kMaxSeconds);

  static constexpr std::int64_t kZeroCell = 0;
  static constexpr std::int64_t kUnderCell = 1;
  static constexpr std::int64_t kFirstBucket = 2;

  static constexpr bool valid_error(double relative_error) noexcept {
    return relative_error >= kLeastError && relative_error <= kMostError;
  }

  /// @pre valid_error(relative_error).
  constexpr explicit LatencyLayout(double relative_error) noexcept
      : relative_error_(relative_error),
        shift_(kMantissaBits - part_bits(relative_error)),
        over_cell_(kFirstBucket + static_cast<std::int64_t>((kHighBits - kLowBits) >> shift_)) {}

  constexpr double relative_error() const noexcept { return relative_error_; }
  constexpr std::int64_t over_cell() const noexcept { return over_cell_; }
  constexpr std::int64_t n_cells() const noexcept { return over_cell_ + 1; }

  /// Whether the bits of a double lie in the range: one compare, false for zero, NaN, negatives.
  static constexpr bool in_range(std::uint64_t bits) noexcept {
    return bits - kLowBits < kHighBits - kLowBits;
  }

  /// @pre in_range(bits).
  constexpr std::int64_t bucket_of(std::uint64_t bits) const noexcept {
    return kFirstBucket + static_cast<std::int64_t>((bits - kLowBits) >> shift_);
  }

  /// @pre the bits of a double in [+0, kMaxSeconds].
  constexpr std::int64_t cell_of(std::uint64_t bits) const noexcept {
    if (bits == 0) return kZeroCell;
    if (bits < kLowBits) return kUnderCell;
    return bits < kHighBits ? bucket_of(bits) : over_cell_;
  }

  /// What a cell answers. A bucket [a, b) answers 2ab / (a + b), off by (b - a) / (b + a) at both
  /// ends and by less in between.
  constexpr double middle(std::int64_t cell) const noexcept {
    if (cell == kZeroCell) return 0.0;
    if (cell == kUnderCell) return 0.5 * kMinSeconds;
    if (cell == over_cell_) return kMaxSeconds;
    const double low = lower_bound(cell);
    const double high = lower_bound(cell + 1);
    return 2.0 * low * (high / (low + high));
  }

 private:
  static constexpr int kMantissaBits = 52;

  /// The widest bucket, at an octave's start, is off by 1 / (2 * parts + 1). Strictly below what
  /// was asked, which leaves room for the rounding of the answer.
  static constexpr int part_bits(double relative_error) noexcept {
    int bits = 0;
    while (1.0 / (2.0 * static_cast<double>(1 << bits) + 1.0) >= relative_error) ++bits;
    return bits;
  }

  constexpr double lower_bound(std::int64_t cell) const noexcept {
    const auto step = static_cast<std::uint64_t>(cell - kFirstBucket);
    return std::bit_cast<double>(kLowBits + (step << shift_));
  }

  double relative_error_;
  int shift_;
  std::int64_t over_cell_;
};

}  // namespace elastic_rank
