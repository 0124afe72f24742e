#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace elastic_rank {

/// What the strong model adds in one segment, with a 95 % interval; in units of reward.
struct UpliftEstimate {
  double uplift = 0.0;
  double low = 0.0;
  double high = 0.0;
  double n_base = 0.0;  ///< effective observations: discounted, and fewer where weights differ
  double n_strong = 0.0;
  bool measured = false;  ///< both arms were seen in this segment; else the pool speaks for it
};

/// Uplift by segment from exploration traffic.
///
/// Every observation is weighted by the inverse of the probability with which its arm was chosen.
/// Sums are kept in fixed point, so the same observations in any order, from any threads, give the
/// same bits. A segment is shrunk towards all of them together: with few observations of its own it
/// says what the others say, and its interval says how little that proves.
///
/// Thread-safe: `observe` from any threads beside `estimate`; `tick` by one thread at a time.
class UpliftEstimator {
 public:
  static constexpr std::int64_t kMostSegments = 4096;
  /// Below it one observation would outweigh a thousand: such rewards say nothing at this size.
  static constexpr double kLeastPropensity = 1.0 / 1024.0;

  enum class Outcome { counted, bad_segment, bad_reward, bad_propensity };

  /// @param prior_strength observations of the scarcer arm at which a segment speaks half for
  /// itself, above 0. @param half_life_ticks ticks after which an observation counts half;
  /// infinity: for ever. @param low, high bounds of a reward, low < high.
  UpliftEstimator(std::int64_t n_segments, double prior_strength, double half_life_ticks,
                  double low, double high);

  /// Lock-free and without allocation; four atomic additions.
  Outcome observe(std::int64_t segment, bool strong, double reward, double propensity) noexcept;

  /// Discounts every segment and arm alike, observed lately or not.
  void tick() noexcept;

  /// @pre 0 <= segment < size(). Beside writers a reading may miss observations under way.
  UpliftEstimate estimate(std::int64_t segment) const noexcept;

  std::int64_t size() const noexcept { return n_segments_; }
  double low() const noexcept { return low_; }
  double high() const noexcept { return low_ + range_; }
  std::int64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  /// Sums over one segment and arm, in units of 2^-20: of weights w, of w r, of w r^2, of w^2.
  struct Arm {
    std::atomic<std::uint64_t> weight{0}, reward{0}, square{0}, weight_square{0};
  };
  struct Sums {
    double weight = 0.0, reward = 0.0, square = 0.0, weight_square = 0.0;
    void add(const Arm& arm) noexcept;
    double n() const noexcept;
    double mean() const noexcept;
    double centre() const noexcept;
    double variance_of_mean() const noexcept;
  };

  const Arm& arm(std::int64_t segment, bool strong) const noexcept {
    return arms_[static_cast<std::size_t>(2 * segment + strong)];
  }

  std::int64_t n_segments_;
  double prior_strength_, keep_, low_, range_;
  std::unique_ptr<Arm[]> arms_;
  std::atomic<std::int64_t> refused_{0};
};

}  // namespace elastic_rank
