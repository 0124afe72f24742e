#include "elastic_rank/uplift.hpp"

#include <algorithm>
#include <cmath>

namespace elastic_rank {
namespace {

constexpr double kUnit = 0x1p20;
constexpr double kZ95 = 1.959963984540054;

std::uint64_t fixed(double value) noexcept {
  return static_cast<std::uint64_t>(std::llround(value * kUnit));
}

// Relaxed throughout: a sum is a value of its own and publishes nothing else. Exactness after the
// writers were joined comes from the join.
void add(std::atomic<std::uint64_t>& sum, double value) noexcept {
  sum.fetch_add(fixed(value), std::memory_order_relaxed);
}

double read(const std::atomic<std::uint64_t>& sum) noexcept {
  return static_cast<double>(sum.load(std::memory_order_relaxed)) / kUnit;
}

void discount(std::atomic<std::uint64_t>& sum, double keep) noexcept {
  std::uint64_t before = sum.load(std::memory_order_relaxed);
  // Retried when an observation came in between: it is then discounted too, and not lost.
  while (!sum.compare_exchange_weak(before,
                                    static_cast<std::uint64_t>(static_cast<double>(before) * keep),
                                    std::memory_order_relaxed)) {
  }
}

}  // namespace

void UpliftEstimator::Sums::add(const Arm& arm) noexcept {
  weight += read(arm.weight);
  reward += read(arm.reward);
  square += read(arm.square);
  weight_square += read(arm.weight_square);
}

/// Kish: as many equal weights would give the mean the same variance.
double UpliftEstimator::Sums::n() const noexcept {
  return weight_square > 0.0 ? weight * weight / weight_square : 0.0;
}

double UpliftEstimator::Sums::mean() const noexcept {
  return weight > 0.0 ? reward / weight : 0.5;
}

/// The interval's centre and the variance of the mean, with one observation more of each extreme
/// reward (Agresti and Caffo, 2000): no data, one datum and clicks that are all 0 have an interval
/// too, and two lucky observations prove nothing.
double UpliftEstimator::Sums::centre() const noexcept {
  return (n() * mean() + 1.0) / (n() + 2.0);
}

double UpliftEstimator::Sums::variance_of_mean() const noexcept {
  const double squares = weight > 0.0 ? square / weight : 0.0;
  const double spread = (n() * squares + 1.0) / (n() + 2.0) - centre() * centre();
  return std::clamp(spread, 0.0, 0.25) / (n() + 2.0);
}

UpliftEstimator::UpliftEstimator(std::int64_t n_segments, double prior_strength,
                                 double half_life_ticks, double low, double high)
    : n_segments_(n_segments),
      prior_strength_(prior_strength),
      keep_(std::exp2(-1.0 / half_life_ticks)),
      low_(low),
      range_(high - low),
      arms_(std::make_unique<Arm[]>(static_cast<std::size_t>(2 * n_segments))) {}

UpliftEstimator::Outcome UpliftEstimator::observe(std::int64_t segment, bool strong, double reward,
                                                  double propensity) noexcept {
  const double r = (reward - low_) / range_;
  Outcome outcome = Outcome::counted;
  if (!(propensity >= kLeastPropensity && propensity <= 1.0)) outcome = Outcome::bad_propensity;
  if (!(r >= 0.0 && r <= 1.0)) outcome = Outcome::bad_reward;
  if (segment < 0 || segment >= n_segments_) outcome = Outcome::bad_segment;
  if (outcome != Outcome::counted) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return outcome;
  }
  Arm& sums = arms_[static_cast<std::size_t>(2 * segment + strong)];
  const double w = 1.0 / propensity;
  add(sums.weight, w);
  add(sums.reward, w * r);
  add(sums.square, w * r * r);
  add(sums.weight_square, w * w);
  return outcome;
}

void UpliftEstimator::tick() noexcept {
  if (keep_ == 1.0) return;
  for (std::int64_t i = 0; i < 2 * n_segments_; ++i) {
    Arm& sums = arms_[static_cast<std::size_t>(i)];
    for (auto* sum : {&sums.weight, &sums.reward, &sums.square, &sums.weight_square}) {
      discount(*sum, keep_);
    }
  }
}

UpliftEstimate UpliftEstimator::estimate(std::int64_t segment) const noexcept {
  Sums own[2], all[2];
  for (const bool strong : {false, true}) {
    own[strong].add(arm(segment, strong));
    for (std::int64_t s = 0; s < n_segments_; ++s) all[strong].add(arm(s, strong));
  }
  const double n = std::min(own[0].n(), own[1].n());
  const double trust = n / (n + prior_strength_);
  const bool seen = std::min(all[0].n(), all[1].n()) > 0.0;
  const double pooled = seen ? all[1].mean() - all[0].mean() : 0.0;
  const double uplift = trust * (own[1].mean() - own[0].mean()) + (1.0 - trust) * pooled;
  const double centre = trust * (own[1].centre() - own[0].centre()) +
                        (1.0 - trust) * (all[1].centre() - all[0].centre());
  // What the prior strength says of how far segments lie apart: with variance 1/4 of a reward in
  // each arm, K observations weigh as much as the pool does if segments vary by 1/2 / K.
  const double apart = std::min(0.5 / prior_strength_, 1.0);
  const double variance = trust * trust * (own[0].variance_of_mean() + own[1].variance_of_mean()) +
                          (1.0 - trust) * (1.0 - trust) *
                              (all[0].variance_of_mean() + all[1].variance_of_mean() + apart);
  const double half = kZ95 * std::sqrt(variance);
  const double low = std::min(uplift, std::max(centre - half, -1.0));
  const double high = std::max(uplift, std::min(centre + half, 1.0));
  return {range_ * uplift, range_ * low, range_ * high, own[0].n(), own[1].n(), n > 0.0};
}

}  // namespace elastic_rank
