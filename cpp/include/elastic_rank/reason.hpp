#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace elastic_rank {

/// Why a request got what it got. One enum for metrics, tickets, answers and headers: a number
/// seen in one place can be looked up in all the others. Values are part of the wire form: never
/// renumber, only append.
enum class Reason : std::uint8_t {
  /// Nothing was withheld: everything that was asked for was done.
  none = 0,
  /// The asked depth lay outside [base, max] and was clamped.
  clamped = 1,
  /// The client's slice of the global limit was empty: base depth.
  limit = 2,
  /// The value did not exceed price x cost.
  price = 3,
  /// The strong model's share was used up: base route.
  share = 4,
  /// The arm was chosen by exploration.
  explore = 5,
  /// The request was not eligible for the strong model.
  ineligible = 6,
  /// No target has been received: base service.
  no_target = 7,
  /// The target in force expired and decayed to base.
  stale_target = 8,
  /// Decided and counted, not applied.
  shadow = 9,
  /// Cut short because the deadline came near.
  deadline = 10,
  /// Cut short because the request's value lies below the shed level.
  level = 11,
  /// Trimmed by the client, which had read the server's state.
  server_state = 12,
  /// The pool that ran the extra work vanished.
  pool_lost = 13,
  /// Extra work gave way to waiting base work.
  base_waiting = 14,
  /// A scorer raised or returned a wrong length in extra work: the base answer stands.
  scorer_error = 15,
  /// Withdrawn by its owner.
  cancelled = 16,
  /// Queue: refused at push, below the level.
  shed_push = 17,
  /// Queue: dropped when it was popped, below the level.
  shed_pop = 18,
  /// Queue: dropped by the reaper, below the level.
  shed_reap = 19,
  /// Queue: evicted by a newcomer of higher value.
  shed_evicted = 20,
  /// Queue: refused at push, no room.
  shed_full = 21,
  /// Queue: its deadline passed while it waited.
  expired = 22,
  /// Refused because the queue or the engine is closed.
  closed = 23,
  /// A value, cost or measurement was NaN, infinite or out of range: refused, state unchanged.
  bad_input = 24,
};

inline constexpr std::array<std::string_view, 25> kReasonNames = {
    "none",         "clamped",    "limit",        "price",        "share",
    "explore",      "ineligible", "no_target",    "stale_target", "shadow",
    "deadline",     "level",      "server_state", "pool_lost",    "base_waiting",
    "scorer_error", "cancelled",  "shed_push",    "shed_pop",     "shed_reap",
    "shed_evicted", "shed_full",  "expired",      "closed",       "bad_input"};

constexpr std::string_view to_string(Reason reason) noexcept {
  const auto index = static_cast<std::size_t>(reason);
  return index < kReasonNames.size() ? kReasonNames[index] : std::string_view("unknown");
}

}  // namespace elastic_rank
