#pragma once

#include <cstdint>

/// What the per-instruction-set units of `topk` offer. Declarations only: nothing here may be
/// compiled into more than one unit.
namespace elastic_rank::topk_kernels {

/// Group maxima a chunk yields, whatever the register width: maximum j of a chunk is over its
/// elements j, j + 16, j + 32, ...
inline constexpr std::int64_t kGroupsPerChunk = 16;
/// Elements pushed between two looks at the room left; `keys` and `places` end in this much slack.
inline constexpr std::int64_t kBlock = 64;

/// One contiguous row and the memory to select in.
///
/// `Key` is the signed integer of the value's width whose order is the values': zeros are one key,
/// and the type's lowest is *bottom*, which stands for NaN and for int32's lowest. Bottoms rank
/// last and among themselves by position, so kernels compare numbers only.
template <class Value, class Key>
struct RowTask {
  const Value* row = nullptr;
  std::int64_t n = 0;
  std::int64_t k = 0;  ///< 1 <= k <= n
  /// (n) or null. An ineligible element also holds bottom in `row`; this tells it from real ones.
  const std::uint8_t* eligible = nullptr;
  bool sort = true;

  std::int64_t chunk = 0;   ///< elements, a multiple of 64; 0: no threshold, each element is taken
  std::int64_t groups = 0;  ///< group maxima the threshold comes from: multiple of 16, >= k
  Value* maxima = nullptr;  ///< (n / chunk * 16)
  Key* group_keys = nullptr;        ///< (groups)
  Key* keys = nullptr;              ///< (capacity + kBlock): survivors, in position order
  std::uint32_t* places = nullptr;  ///< (capacity + kBlock): where they stand in the row
  std::int64_t capacity = 0;        ///< >= k + kBlock
  std::uint64_t* items = nullptr;   ///< (4 k): both sides of the radix passes

  std::int64_t* positions = nullptr;  ///< (k) output
};

using RowF32 = RowTask<float, std::int32_t>;
using RowI32 = RowTask<std::int32_t, std::int32_t>;
using RowF64 = RowTask<double, std::int64_t>;

/// Functions of one level. Selectors return how many positions they wrote: k, or fewer when fewer
/// elements are eligible.
struct Kernels {
  std::int64_t (*select_f32)(const RowF32& task) noexcept;
  std::int64_t (*select_i32)(const RowI32& task) noexcept;
  std::int64_t (*select_f64)(const RowF64& task) noexcept;
  /// Exact conversions of contiguous rows.
  void (*widen_f16)(const std::uint16_t* from, std::int64_t n, float* to) noexcept;
  void (*widen_bf16)(const std::uint16_t* from, std::int64_t n, float* to) noexcept;
};

}  // namespace elastic_rank::topk_kernels

namespace elastic_rank::portable {
extern const topk_kernels::Kernels kTopK;
}
namespace elastic_rank::avx2 {
extern const topk_kernels::Kernels kTopK;
}
namespace elastic_rank::avx512 {
extern const topk_kernels::Kernels kTopK;
}
