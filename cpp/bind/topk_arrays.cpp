#include <algorithm>
#include <string>

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

/// Bytes from first to last, and what a message calls them.
struct Memory {
  const char* name;
  const std::byte* begin;
  const std::byte* end;
};

Memory memory_of(const char* name, const py::object& array) {
  const auto bytes = py::reinterpret_borrow<py::array>(array).nbytes();
  const auto* begin = static_cast<const std::byte*>(data_of(array));
  return {name, begin, begin + bytes};
}

Memory memory_of(const char* name, const TensorView& view, std::int64_t size) {
  const auto [first, last] = view.extent(size);
  return {name, first, last};
}

/// Every output has memory of its own: what is written to one is read neither as input nor as
/// another output. (An array `k` has been copied by now.)
void check_apart(const py::object& values, const TopKArrays& arrays, const TopKProblem& problem) {
  const Memory outputs[] = {memory_of("out.values", values),
                            memory_of("out.indices", arrays.indices),
                            memory_of("out.counts", arrays.counts)};
  const Memory inputs[] = {
      memory_of("scores", problem.scores, size_of(problem.input.dtype)),
      problem.input.mask == nullptr ? Memory{} : memory_of("mask", problem.mask, 1),
      problem.input.offsets == nullptr ? Memory{} : memory_of("offsets", problem.offsets)};
  const auto check = [](const Memory& output, const Memory& other) {
    if (output.begin < other.end && other.begin < output.end) {
      raise_value(output.name, std::string("memory of ") + other.name, "memory of its own");
    }
  };
  for (const Memory& output : outputs) {
    for (const Memory& input : inputs) check(output, input);
    for (const Memory* before = outputs; before != &output; ++before) check(output, *before);
  }
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
  check_apart(bits, arrays, problem);
  arrays.output = {data_of(bits), static_cast<std::int64_t*>(data_of(arrays.indices)),
                   static_cast<std::int32_t*>(data_of(arrays.counts)), problem.k_max};
  return arrays;
}

}  // namespace elastic_rank::bind
