#pragma once

#include <cstdint>

namespace elastic_rank {

/// Outcome of a core call. Core functions are noexcept; the binding turns these into exceptions.
enum class [[nodiscard]] Status : std::uint8_t {
  /// Done; every output is written.
  ok = 0,
  /// An argument broke the function's stated precondition; no output was written.
  invalid_argument,
  /// Working memory could not be had; no output may be used.
  out_of_memory,
  /// A scorer that is user code failed; its exception, if any, is in `ScoreTask::failure`.
  scorer_failed,
};

constexpr const char* to_string(Status status) noexcept {
  switch (status) {
    case Status::ok: return "ok";
    case Status::invalid_argument: return "invalid argument";
    case Status::out_of_memory: return "out of memory";
    case Status::scorer_failed: return "scorer failed";
  }
  return "unknown status";
}

}  // namespace elastic_rank
