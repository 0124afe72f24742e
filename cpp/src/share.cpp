#include "elastic_rank/share.hpp"

#include <algorithm>
#include <limits>

namespace elastic_rank {
namespace {

/// A well-mixed fraction in [0, 1) (the finaliser of splitmix64).
double fraction(std::uint64_t seed) noexcept {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

ShareController::ShareController(double target, std::int64_t window, double debt_scale,
                                 std::uint64_t seed) {
  state_.target = target;
  state_.debt_scale = debt_scale;
  state_.carry = fraction(seed);
  state_.window = window;
  state_.scores.reserve(static_cast<std::size_t>(window));
}

bool ShareController::valid(const State& state) noexcept {
  const auto size = static_cast<std::int64_t>(state.scores.size());
  return valid_target(state.target) && std::isfinite(state.debt_scale) && state.debt_scale > 0.0 &&
         std::abs(state.debt) <= kMostDebt && state.carry >= 0.0 && state.carry < 1.0 &&
         state.served >= 0 && state.served <= state.decided && state.refused >= 0 &&
         state.window >= 1 && state.window <= kMostWindow && size <= state.window &&
         state.next >= 0 && state.next < state.window &&
         (size == state.window || state.next == size) &&
         std::all_of(
             state.scores.begin(), state.scores.end(),
             [](double score) { return std::isfinite(score); });
}

void ShareController::remember(double score) noexcept {
  if (static_cast<std::int64_t>(state_.scores.size()) < state_.window) {
    state_.scores.push_back(score);  // within what was reserved: allocates nothing
  } else {
    state_.scores[static_cast<std::size_t>(state_.next)] = score;
  }
  state_.next = state_.next + 1 == state_.window ? 0 : state_.next + 1;
}

double ShareController::chance(double score) const noexcept {
  std::int64_t above = 0, equal = 0;  // counted without branches: the loop is vectorised
  for (const double other : state_.scores) {
    above += other > score;
    equal += other == score;
  }
  const double n = static_cast<double>(state_.scores.size());
  // At 0 and 1 the promise is exact, whatever is owed.
  const double asked = state_.target == 0.0 || state_.target == 1.0
                           ? state_.target
                           : std::clamp(state_.target + state_.debt / state_.debt_scale, 0.0, 1.0);
  // The score itself is in the window, so `equal` is at least one.
  return std::clamp((asked * n - static_cast<double>(above)) / static_cast<double>(equal), 0.0,
                    1.0);
}

bool ShareController::decide(double score) noexcept {
  if (!std::isfinite(score)) {
    ++state_.refused;
    return false;
  }
  remember(score);
  const double p = chance(score);
  bool serve = p == 1.0;
  if (p > 0.0 && p < 1.0) {
    state_.carry += p;
    serve = state_.carry >= 1.0;
    if (serve) state_.carry -= 1.0;
  }
  ++state_.decided;
  state_.served += serve;
  state_.debt =
      std::clamp(state_.debt + state_.target - static_cast<double>(serve), -kMostDebt, kMostDebt);
  return serve;
}

void ShareController::pass(double score) noexcept {
  if (!std::isfinite(score)) {
    ++state_.refused;
    return;
  }
  remember(score);
}

double ShareController::share() const noexcept {
  return state_.decided == 0
             ? std::numeric_limits<double>::quiet_NaN()
             : static_cast<double>(state_.served) / static_cast<double>(state_.decided);
}

}  // namespace elastic_rank
