#pragma once

#include <cstdint>

namespace elastic_rank {

/// Rows against one query. `ids` null: rows 0, 1, 2, ... of the table.
struct DotArgs {
  const float* query;
  std::int64_t width;
  const float* table;
  std::int64_t row_stride;
  const std::int64_t* ids;
  std::int64_t n;
  std::int64_t n_ahead;    ///< ids that may be read past n, to fetch their rows early
  std::int64_t n_fetched;  ///< leading rows that an earlier call has asked for, up to kDotAhead
  float* scores;
};

/// Rows whose memory a kernel asks for before it needs them: enough to cover a DRAM access at the
/// pace of a block, few enough for the processor's fill buffers.
inline constexpr std::int64_t kDotAhead = 32;

// A row's sum: lane l of 16 (avx2: 8) adds columns l, l + lanes, ... in order; then lanes are added
// in a fixed tree. A row is summed alike wherever it lies in a block, and a NaN score is always the
// same NaN, since which operand's payload an addition keeps is the compiler's choice.
namespace portable {
void dot_rows(const DotArgs& args) noexcept;
}
namespace avx2 {
void dot_rows(const DotArgs& args) noexcept;
}
namespace avx512 {
void dot_rows(const DotArgs& args) noexcept;
}

using DotKernel = void (*)(const DotArgs& args) noexcept;

/// The kernel of the level in use.
DotKernel dot_kernel() noexcept;

}  // namespace elastic_rank
