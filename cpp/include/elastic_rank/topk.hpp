#pragma once

#include <cstdint>
#include <span>

#include "elastic_rank/scratch.hpp"
#include "elastic_rank/status.hpp"
#include "elastic_rank/workers.hpp"

namespace elastic_rank {

/// Element types that can be selected from. bfloat16 and float16 are carried as their 16 bits.
enum class DType : std::uint8_t { float32, float64, float16, bfloat16, int32 };

constexpr std::int64_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float64: return 8;
    case DType::float32:
    case DType::int32: return 4;
    case DType::float16:
    case DType::bfloat16: return 2;
  }
  return 0;
}

/// Rows to select from. Row r is elements [0, cols) at scores + r * row_stride, or, with
/// `offsets`, elements [offsets[r], offsets[r + 1]) of one flat array. Strides are in bytes and
/// may be zero or negative.
struct TopKInput {
  const void* scores = nullptr;
  DType dtype = DType::float32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
  const std::int64_t* offsets = nullptr;  ///< (rows + 1) or null
  const std::uint8_t* mask = nullptr;     ///< non-zero = eligible; null = all
  std::int64_t mask_row_stride = 0;
  std::int64_t mask_col_stride = 0;
  const std::int64_t* k = nullptr;  ///< (rows), each >= 0, or null: `k_all` for each row
  std::int64_t k_all = 0;
};

/// Where the selection goes: C-contiguous (rows, k_max) and (rows). Places past a row's count get
/// index -1 and value NaN (integers: the lowest).
struct TopKOutput {
  void* values = nullptr;
  std::int64_t* indices = nullptr;
  std::int32_t* counts = nullptr;
  std::int64_t k_max = 0;
};

/// Selects each row's k largest. Order: descending; equal scores by lowest position; -0 equals +0;
/// denormals count; NaN of any sign or payload ranks below -inf, in position order. `sort` false
/// gives position order. Values come back as stored. The same bits at every instruction-set level,
/// thread count and batch size.
///
/// Cost: one pass over the scores, and a second look at the few parts that hold survivors. No input
/// order is slow.
/// @param workers null: the calling thread alone.
/// @param scratch at least one; the rows are shared out into as many parts, so that no more threads
///   than there are scratches work at once.
/// @pre shapes agree, k >= 0, offsets do not fall, rows shorter than 2^31.
Status topk(const TopKInput& input, const TopKOutput& output, bool sort, Workers* workers,
            std::span<Scratch> scratch) noexcept;

/// What `topk` must return, by sorting each row whole in plain code. Tests compare with it.
Status topk_reference(const TopKInput& input, const TopKOutput& output, bool sort,
                      Scratch& scratch) noexcept;

/// The same for one contiguous float32 row: what a cascade does between stages.
/// @param positions,values room for min(k, scores.size()); `values` may be null.
/// @param count how many were written.
Status topk_row(std::span<const float> scores, std::int64_t k, bool sort, std::int64_t* positions,
                float* values, std::int64_t* count, Scratch& scratch) noexcept;

}  // namespace elastic_rank
