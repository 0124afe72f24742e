#include "elastic_rank/isa.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace elastic_rank {
namespace {

Isa detect() noexcept {
  __builtin_cpu_init();
  // Every feature that a unit's compile flags name is asked for, not only the headline one.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
                    __builtin_cpu_supports("popcnt");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw");
  return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::portable;
}

Isa requested() noexcept {
  const char* text = std::getenv("ELASTIC_RANK_ISA");
  if (text == nullptr) return Isa::avx512;
  const std::string_view name(text);
  for (int level = 0; level < kIsaLevels; ++level) {
    if (name == to_string(static_cast<Isa>(level))) return static_cast<Isa>(level);
  }
  // A misspelt level must not silently turn into the fastest one: the slow, safe reading wins.
  return name.empty() ? Isa::avx512 : Isa::portable;
}

std::atomic<Isa>& level() noexcept {
  static std::atomic<Isa> isa{std::min(hardware_isa(), requested())};
  return isa;
}

}  // namespace

Isa hardware_isa() noexcept {
  static const Isa isa = detect();
  return isa;
}

// Relaxed on both sides: the level is a number on its own, nothing is published through it.
Isa active_isa() noexcept {
  return level().load(std::memory_order_relaxed);
}

Isa set_active_isa(Isa isa) noexcept {
  const Isa capped = std::min(isa, hardware_isa());
  level().store(capped, std::memory_order_relaxed);
  return capped;
}

}  // namespace elastic_rank
