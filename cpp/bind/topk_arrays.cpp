#include <algorithm>
#include <string>
#include <utility>

#include "errors.hpp"
#include "topk_arguments.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

std::string type_of(py::handle value) {
  return py::str(py::type::handle_of(value).attr("__name__")).cast<std::string>();
}

py::object new_array(int numpy_type, int ndim, const std::int64_t* shape) {
  auto& api = py::detail::npy_api::get();
  PyObject* array = api.PyArray_NewFromDescr_(
      api.PyArray_Type_, api.PyArray_DescrFromType_(numpy_type), ndim,
      reinterpret_cast<const Py_intptr_t*>(shape), nullptr, nullptr, 0, nullptr);
  if (array == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(array);
}

void* data_of(const py::object& array) {
  return py::detail::array_proxy(array.ptr())->data;
}

int numpy_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32: return 11;
    case DType::float64: return 12;
    case DType::float16: return 23;
    case DType::bfloat16: return 4;  // its bits, as uint16
    case DType::int32: return 5;
  }
  return 0;
}

constexpr int kNumpyInt64 = 7;  // "long", which has 64 bits wherever this library runs
constexpr int kNumpyInt32 = 5;
static_assert(sizeof(long) == 8);

/// Shapes of the outputs: (rows, k_max) and (rows), or without the row axis.
struct OutputShape {
  std::int64_t lengths[2];
  int ndim;
  const std::int64_t* places() const noexcept { return ndim == 2 ? lengths : lengths + 1; }
};

OutputShape output_shape(const TopKProblem& problem) noexcept {
  return {{problem.input.rows, problem.k_max}, problem.row_axis ? 2 : 1};
}

bool overlaps(const py::object& array, const TensorView& view, std::int64_t size) {
  const auto bytes = py::reinterpret_borrow<py::array>(array).nbytes();
  const auto* begin = static_cast<const std::byte*>(data_of(array));
  const auto [first, last] = view.extent(size);
  return begin < last && first < begin + bytes;
}

/// Whether an array is what the call would have made itself.
bool fits(const py::array& array, int type, int ndim, const std::int64_t* shape) {
  const auto* proxy = py::detail::array_proxy(array.ptr());
  constexpr int kNeeded = py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_ |
                          py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  const py::dtype dtype = array.dtype();
  return dtype.num() == type && dtype.byteorder() == '=' && proxy->nd == ndim &&
         std::equal(shape, shape + ndim, proxy->dimensions) && (proxy->flags & kNeeded) == kNeeded;
}

/// Checks one array of `out`; what is wrong is looked for only where something is.
void check_given(const py::object& array, const char* name, int type, int ndim,
                 const std::int64_t* shape) {
  const bool is_array = py::isinstance<py::array>(array);
  if (is_array && fits(py::reinterpret_borrow<py::array>(array), type, ndim, shape)) return;
  std::string lengths;
  for (int i = 0; i < ndim; ++i) lengths += std::to_string(shape[i]) + (i + 1 < ndim ? ", " : "");
  const auto want =
      py::reinterpret_steal<py::dtype>(py::detail::npy_api::get().PyArray_DescrFromType_(type));
  const std::string allowed = "a writable, aligned, C-contiguous " +
                              py::str(want).cast<std::string>() + " array of shape (" + lengths +
                              (ndim == 1 ? ",)" : ")");
  if (!is_array) raise_type(name, type_of(array), allowed);
  const auto given = py::reinterpret_borrow<py::array>(array);
  const std::string dtype = py::str(given.dtype()).cast<std::string>();
  if (!given.dtype().equal(want)) raise_type(name, dtype, allowed);
  raise_value(name,
              dtype + " of shape " + py::str(given.attr("shape")).cast<std::string>() +
                  ", strides " + py::str(given.attr("strides")).cast<std::string>() +
                  (given.writeable() ? "" : ", read-only"),
              allowed);
}

}  // namespace

TopKArrays new_arrays(const TopKProblem& problem) {
  const OutputShape shape = output_shape(problem);
  TopKArrays arrays;
  arrays.values = new_array(numpy_type(problem.input.dtype), shape.ndim, shape.places());
  arrays.indices = new_array(kNumpyInt64, shape.ndim, shape.places());
  arrays.counts = new_array(kNumpyInt32, shape.ndim - 1, shape.lengths);
  arrays.output = {data_of(arrays.values), static_cast<std::int64_t*>(data_of(arrays.indices)),
                   static_cast<std::int32_t*>(data_of(arrays.counts)), problem.k_max};
  if (problem.input.dtype == DType::bfloat16 && problem.scores.type == ElementType::bfloat16) {
    arrays.values = py::cast(Tensor(py::reinterpret_borrow<py::array>(arrays.values)));
  }
  return arrays;
}

TopKArrays given_arrays(py::handle out, const TopKProblem& problem) {
  TopKArrays arrays;
  arrays.values = py::getattr(out, "values", py::none());
  arrays.indices = py::getattr(out, "indices", py::none());
  arrays.counts = py::getattr(out, "counts", py::none());
  if (arrays.values.is_none() || arrays.indices.is_none() || arrays.counts.is_none()) {
    raise_type("out", type_of(out), "a TopK of arrays to fill");
  }
  const OutputShape shape = output_shape(problem);
  py::object bits = arrays.values;
  if (problem.input.dtype == DType::bfloat16 && py::isinstance<Tensor>(bits)) {
    bits = bits.cast<const Tensor&>().bits();
  }
  check_given(bits, "out.values", numpy_type(problem.input.dtype), shape.ndim, shape.places());
  check_given(arrays.indices, "out.indices", kNumpyInt64, shape.ndim, shape.places());
  check_given(arrays.counts, "out.counts", kNumpyInt32, shape.ndim - 1, shape.lengths);
  for (const auto& [name, array] :
       {std::pair("out.values", bits), std::pair("out.indices", arrays.indices),
        std::pair("out.counts", arrays.counts)}) {
    if (overlaps(array, problem.scores, size_of(problem.input.dtype)) ||
        (problem.input.mask != nullptr && overlaps(array, problem.mask, 1))) {
      raise_value(name, "memory that the scores or the mask use", "memory of its own");
    }
  }
  arrays.output = {data_of(bits), static_cast<std::int64_t*>(data_of(arrays.indices)),
                   static_cast<std::int32_t*>(data_of(arrays.counts)), problem.k_max};
  return arrays;
}

}  // namespace elastic_rank::bind
