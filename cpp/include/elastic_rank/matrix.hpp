#pragma once

#include <cstdint>

namespace elastic_rank {

/// A row-major view: rows may lie apart, the elements of a row are adjacent. Owns nothing.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;  ///< elements from one row to the next

  constexpr T* row(std::int64_t r) const noexcept { return data + r * row_stride; }

  /// Rows [first, first + n).
  constexpr MatrixView sub_rows(std::int64_t first, std::int64_t n) const noexcept {
    return {data + first * row_stride, n, cols, row_stride};
  }
};

}  // namespace elastic_rank
