#pragma once

#include <cstdint>
#include <string_view>

namespace elastic_rank {

/// Instruction-set level of the kernels, in rising order.
enum class Isa : std::uint8_t { portable = 0, avx2 = 1, avx512 = 2 };

inline constexpr int kIsaLevels = 3;

constexpr std::string_view to_string(Isa isa) noexcept {
  switch (isa) {
    case Isa::portable: return "portable";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "unknown";
}

/// The highest level this processor and operating system run.
Isa hardware_isa() noexcept;

/// The level in use: the hardware's, lowered by ELASTIC_RANK_ISA=portable|avx2|avx512. The
/// variable is read once, at the first call; it can lower the level, never raise it.
///
/// This choice is the library's only process-wide state.
Isa active_isa() noexcept;

/// Lowers or restores the level for calls that begin afterwards; capped at `hardware_isa()`.
/// For tests and measurements: kernels give the same selection at each level, and scores within
/// the stated error.
/// @return the level now in use.
Isa set_active_isa(Isa isa) noexcept;

}  // namespace elastic_rank
