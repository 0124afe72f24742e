#pragma once

#include <cstddef>
#include <cstdint>

#include "elastic_rank/scratch.hpp"
#include "elastic_rank/status.hpp"
#include "elastic_rank/topk.hpp"

namespace elastic_rank {

namespace topk_kernels {
struct Kernels;
}

/// One row as the caller stores it. Strides are in bytes.
struct TopKRow {
  const std::byte* scores = nullptr;
  DType dtype = DType::float32;
  std::int64_t n = 0;
  std::int64_t stride = 0;
  const std::uint8_t* mask = nullptr;  ///< non-zero = eligible; null = all
  std::int64_t mask_stride = 0;
};

/// Row r of a batch.
TopKRow row_of(const TopKInput& input, std::int64_t r) noexcept;

/// The functions of the level in use.
const topk_kernels::Kernels& active_topk_kernels() noexcept;

/// Writes the positions of the row's k best, as `topk` orders them.
/// @param positions room for min(k, row.n).
/// @param count how many were written.
Status select_row(const TopKRow& row, std::int64_t k, bool sort,
                  const topk_kernels::Kernels& kernels, std::int64_t* positions,
                  std::int64_t* count, Scratch& scratch) noexcept;

}  // namespace elastic_rank
