#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace elastic_rank {

/// Keeps a promised share of requests: the best by score among recent ones, and no more of them
/// than asked, however the scores drift, tie or come in order.
///
/// A score is placed among the last `window` ones. What has been served too little or too much so
/// far is a debt; it moves the quantile asked for. Scores that tie at the quantile are served as a
/// part of them, spread evenly by error diffusion instead of by a coin.
///
/// Not thread-safe: one a thread or a stream. A decision reads the window once: O(window), no
/// allocation.
class ShareController {
 public:
  static constexpr std::int64_t kMostWindow = 4096;
  /// Debt in requests beyond which more is forgotten: after an outage nothing bursts for long.
  static constexpr double kMostDebt = 100.0;

  /// What a controller is, for saving and loading.
  struct State {
    double target = 0.0;
    double debt_scale = 0.0;
    double debt = 0.0;   ///< requests owed: above 0, too few were served
    double carry = 0.0;  ///< error diffusion, [0, 1)
    std::int64_t decided = 0;
    std::int64_t served = 0;
    std::int64_t refused = 0;
    std::int64_t next = 0;  ///< place in `scores` of the next one
    std::int64_t window = 0;
    std::vector<double> scores;  ///< at most `window`, a ring once full
  };

  /// @param target share, 0 to 1. @param window scores that a new one is compared with, 1 to 4096:
  /// fewer follow drift faster and choose worse. @param debt_scale requests of debt that move the
  /// quantile by 1, above 0: smaller holds short windows closer to the share.
  /// @param seed only moves where the diffusion begins.
  ShareController(double target, std::int64_t window, double debt_scale, std::uint64_t seed);
  explicit ShareController(State state) : state_(std::move(state)) {
    state_.scores.reserve(static_cast<std::size_t>(state_.window));
  }

  static bool valid_target(double target) noexcept { return target >= 0.0 && target <= 1.0; }
  static bool valid(const State& state) noexcept;

  /// Whether the request is among those served. A score that is not finite is refused and counted
  /// and changes nothing else.
  bool decide(double score) noexcept;

  /// Sees a request that could not be served whatever the decision (its pool is down): the score is
  /// remembered, no debt grows.
  void pass(double score) noexcept;

  /// @pre valid_target(target). The debt stays.
  void set_target(double target) noexcept { state_.target = target; }

  double target() const noexcept { return state_.target; }
  /// Part of the decided requests that was served; NaN before the first.
  double share() const noexcept;
  const State& state() const noexcept { return state_; }

 private:
  double chance(double score) const noexcept;
  void remember(double score) noexcept;

  State state_;
};

}  // namespace elastic_rank
