#pragma once

#include <cstdint>

namespace elastic_rank {

/// Columns of a weight panel: four of the widest registers.
inline constexpr std::int64_t kDensePanel = 64;
/// Columns are padded to this, so the last panel may be narrower than the others.
inline constexpr std::int64_t kDenseUnit = 16;
/// Rows whose memory a kernel asks for before it needs them.
inline constexpr std::int64_t kDenseAhead = 24;

/// One dense layer over a block of rows: out[r] = max(floor, init[r] + rows[r] W).
struct DenseArgs {
  const float* const* rows;  ///< (n + n_ahead), each of `in` floats
  const float* const* init;  ///< (n), each of `out_padded` floats: bias, or what comes before
  std::int64_t n;
  std::int64_t n_ahead;  ///< rows past n that come next, at most kDenseAhead
  std::int64_t in;
  /// Panel p at 64 p in: [input][column], 64 columns wide, the last perhaps less. On 64 bytes.
  const float* weight;
  std::int64_t out_padded;
  float floor;  ///< 0: ReLU; -infinity: none. NaN passes either way
  float* out;
  std::int64_t out_stride;
};

// Every output is one chain of multiply-adds in input order (fused but in portable), whatever the
// number of rows: a row's result does not depend on its block.
namespace portable {
void dense_rows(const DenseArgs& args) noexcept;
}
namespace avx2 {
void dense_rows(const DenseArgs& args) noexcept;
}
namespace avx512 {
void dense_rows(const DenseArgs& args) noexcept;
}

}  // namespace elastic_rank
