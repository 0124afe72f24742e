#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>

#include "elastic_rank/matrix.hpp"
#include "elastic_rank/scorer.hpp"

namespace elastic_rank::bind {

using Float32Array = pybind11::array_t<float, 0>;
using Int64Array = pybind11::array_t<std::int64_t, 0>;

/// A C-contiguous float32 matrix without a copy. Raises, naming `argument`, on anything else.
MatrixView<const float> matrix_view(const pybind11::object& array, const std::string& argument);

/// A C-contiguous int64 vector without a copy.
std::span<const std::int64_t> int64_view(const pybind11::object& array,
                                         const std::string& argument);

/// A C-contiguous float32 vector without a copy.
std::span<const float> float32_view(const pybind11::object& array, const std::string& argument);

/// "float64 of shape (3,)", or the type's name for what is no array.
std::string describe(const pybind11::object& value);

/// Ragged batch arguments as every scorer and cascade takes them, checked.
struct BatchView {
  MatrixView<const float> query;
  std::span<const std::int64_t> ids;
  std::span<const std::int64_t> offsets;
};
BatchView batch_view(const pybind11::object& query, const pybind11::object& ids,
                     const pybind11::object& offsets, const std::string& ids_argument);

/// Raises unless every id lies in [0, n_items).
void check_ids(std::span<const std::int64_t> ids, std::int64_t n_items,
               const std::string& argument);

/// A scorer whose item table lives in a Python array: the array is kept alive with it.
/// Destroyed with the GIL held, since only Python objects own scorers.
template <class Core>
struct Bound final : Core {
  template <class... Args>
  explicit Bound(pybind11::object keep, Args&&... args)
      : Core(std::forward<Args>(args)...), keep_alive(std::move(keep)) {}
  pybind11::object keep_alive;
};

}  // namespace elastic_rank::bind
