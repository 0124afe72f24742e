#include "topk_arguments.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "errors.hpp"
#include "scorer.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr int kMaxThreads = 256;
constexpr const char* kAllowedK = "an integer or (rows,) integers, 0 to 2147483647";

struct Keyword {
  const char* name;
  PyObject* TopKArguments::* field;
};
constexpr Keyword kKeywords[] = {
    {"scores", &TopKArguments::scores},   {"k", &TopKArguments::k},
    {"offsets", &TopKArguments::offsets}, {"mask", &TopKArguments::mask},
    {"sort", &TopKArguments::sort},       {"dtype", &TopKArguments::dtype},
    {"out", &TopKArguments::out},         {"threads", &TopKArguments::threads}};

std::string repr(py::handle value) {
  return py::repr(value).cast<std::string>();
}

std::string type_of(py::handle value) {
  return py::str(py::type::handle_of(value).attr("__name__")).cast<std::string>();
}

/// An integer that is not a bool, whatever class it comes in. False: not one.
bool as_integer(PyObject* value, long long* result, int* overflow) {
  if (PyBool_Check(value) != 0) return false;
  if (PyLong_Check(value) == 0 && PyIndex_Check(value) == 0) return false;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value));
  if (!index) {  // numpy's bool and float arrays have the method, and refuse
    PyErr_Clear();
    return false;
  }
  *result = PyLong_AsLongLongAndOverflow(index.ptr(), overflow);
  return true;
}

int read_threads(PyObject* value) {
  if (value == nullptr) return 1;
  long long threads = 0;
  int overflow = 0;
  if (!as_integer(value, &threads, &overflow)) {
    raise_type("threads", repr(value), "an integer, 1 to 256");
  }
  if (overflow != 0 || threads < 1 || threads > kMaxThreads) {
    raise_value("threads", repr(value), "1 to 256");
  }
  return static_cast<int>(threads);
}

bool read_sort(PyObject* value) {
  if (value == Py_True) return true;
  if (value == Py_False) return false;
  const std::string type = type_of(value);
  if (type != "bool" && type != "bool_") raise_type("sort", repr(value), "True or False");
  return PyObject_IsTrue(value) == 1;
}

DType read_dtype(PyObject* dtype, const TensorView& scores) {
  bool as_bfloat16 = false;
  if (dtype != Py_None) {
    if (PyUnicode_Check(dtype) == 0) raise_type("dtype", repr(dtype), "None or 'bfloat16'");
    as_bfloat16 = PyUnicode_CompareWithASCIIString(dtype, "bfloat16") == 0;
    if (!as_bfloat16) raise_value("dtype", repr(dtype), "None or 'bfloat16'");
  }
  if (as_bfloat16) {
    if (scores.type == ElementType::uint16 || scores.type == ElementType::bfloat16) {
      return DType::bfloat16;
    }
    raise_type("scores", scores.type_name(), "uint16 or bfloat16 with dtype='bfloat16'");
  }
  switch (scores.type) {
    case ElementType::float32: return DType::float32;
    case ElementType::float64: return DType::float64;
    case ElementType::float16: return DType::float16;
    case ElementType::bfloat16: return DType::bfloat16;
    case ElementType::int32: return DType::int32;
    case ElementType::uint16:
    case ElementType::boolean:
    case ElementType::other: break;
  }
  raise_type("scores", scores.type_name(),
             "float32, float64, float16, int32 or bfloat16 in native byte order, or uint16 with "
             "dtype='bfloat16'");
}

/// Shape of the problem: rows, columns, and where they lie.
void read_rows(PyObject* offsets, TopKProblem* problem) {
  TopKInput& input = problem->input;
  const TensorView& scores = problem->scores;
  input.scores = scores.data;
  if (offsets != Py_None) {
    if (scores.ndim != 1) {
      raise_value("scores", "shape " + scores.shape_name(), "one dimension beside offsets");
    }
    problem->offsets = py::reinterpret_borrow<py::object>(offsets);
    const auto view = int64_view(problem->offsets, "offsets");
    if (view.empty()) raise_value("offsets", "no entries", "rows + 1 entries, from 0");
    input.rows = static_cast<std::int64_t>(view.size()) - 1;
    input.offsets = view.data();
    input.col_stride = scores.strides[0];
    if (view.front() != 0 || view.back() != scores.shape[0]) {
      raise_value("offsets",
                  "first " + std::to_string(view.front()) + ", last " + std::to_string(view.back()),
                  "from 0 to the number of scores, " + std::to_string(scores.shape[0]));
    }
    for (std::size_t r = 0; r + 1 < view.size(); ++r) {
      if (view[r + 1] < view[r] || view[r + 1] - view[r] > kMost) {
        raise_value("offsets",
                    std::to_string(view[r + 1]) + " after " + std::to_string(view[r]) +
                        " at position " + std::to_string(r + 1),
                    "never falling, rows of at most 2147483647");
      }
    }
    return;
  }
  problem->row_axis = scores.ndim == 2;
  const int last = scores.ndim - 1;
  input.rows = problem->row_axis ? scores.shape[0] : 1;
  input.cols = scores.shape[last];
  input.row_stride = problem->row_axis ? scores.strides[0] : 0;
  input.col_stride = scores.strides[last];
  if (input.cols > kMost) {
    raise_value("scores", "shape " + scores.shape_name(), "rows of at most 2147483647");
  }
}

void read_mask(PyObject* mask, TopKProblem* problem) {
  if (mask == Py_None) return;
  // Rebuilt in place: a view owns memory and does not let itself be assigned.
  problem->mask.~TensorView();
  new (&problem->mask) TensorView(tensor_view(mask, "mask"));
  const TensorView& view = problem->mask;
  const TensorView& scores = problem->scores;
  if (view.type != ElementType::boolean) {
    raise_type("mask", view.type_name(), "bool, of the scores' shape");
  }
  if (view.ndim != scores.ndim || view.shape[0] != scores.shape[0] ||
      view.shape[1] != scores.shape[1]) {
    raise_value("mask", "shape " + view.shape_name(), "the scores' shape, " + scores.shape_name());
  }
  const int last = view.ndim - 1;
  problem->input.mask = reinterpret_cast<const std::uint8_t*>(view.data);
  problem->input.mask_row_stride = problem->row_axis ? view.strides[0] : 0;
  problem->input.mask_col_stride = view.strides[last];
}

std::int64_t checked_k(std::int64_t k, const std::string& got) {
  if (k < 0 || k > kMost) raise_value("k", got, kAllowedK);
  return k;
}

template <class T>
void copy_integers(const py::array& array, std::span<std::int64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const T value = *static_cast<const T*>(array.data(static_cast<py::ssize_t>(i)));
    const bool fits = static_cast<std::uint64_t>(value) <= static_cast<std::uint64_t>(kMost);
    if (!fits) {
      raise_value("k", std::to_string(value) + " at position " + std::to_string(i), kAllowedK);
    }
    to[i] = static_cast<std::int64_t>(value);
  }
}

void copy_k(const py::array& array, std::span<std::int64_t> to) {
  const bool is_signed = array.dtype().kind() == 'i';
  switch (array.itemsize()) {
    case 1:
      return is_signed ? copy_integers<std::int8_t>(array, to)
                       : copy_integers<std::uint8_t>(array, to);
    case 2:
      return is_signed ? copy_integers<std::int16_t>(array, to)
                       : copy_integers<std::uint16_t>(array, to);
    case 4:
      return is_signed ? copy_integers<std::int32_t>(array, to)
                       : copy_integers<std::uint32_t>(array, to);
    default:
      return is_signed ? copy_integers<std::int64_t>(array, to)
                       : copy_integers<std::uint64_t>(array, to);
  }
}

void read_k_array(const py::array& array, TopKProblem* problem, Scratch& memory) {
  const char kind = array.dtype().kind();
  const char order = array.dtype().byteorder();
  if ((kind != 'i' && kind != 'u') || (order != '=' && order != '|') ||
      (array.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) == 0) {
    raise_type("k", "an array of " + py::str(array.dtype()).cast<std::string>(), kAllowedK);
  }
  const std::int64_t rows = problem->input.rows;
  if (array.ndim() == 0) {
    std::int64_t k = 0;
    copy_k(py::array(array.attr("reshape")(1)), {&k, 1});
    problem->input.k_all = problem->k_max = k;
    return;
  }
  if (array.ndim() != 1 || array.shape(0) != rows) {
    raise_value("k", "shape " + py::str(array.attr("shape")).cast<std::string>(),
                "an integer or shape (" + std::to_string(rows) + ",)");
  }
  if (rows == 0) return;
  const std::span<std::int64_t> k = memory.take<std::int64_t>(rows);
  if (k.empty()) throw std::bad_alloc();
  copy_k(array, k);
  problem->input.k = k.data();
  problem->k_max = *std::max_element(k.begin(), k.end());
}

void read_k(PyObject* value, TopKProblem* problem, Scratch& memory) {
  if (py::isinstance<py::array>(value)) {
    return read_k_array(py::reinterpret_borrow<py::array>(value), problem, memory);
  }
  long long k = 0;
  int overflow = 0;
  if (!as_integer(value, &k, &overflow)) raise_type("k", repr(value), kAllowedK);
  if (overflow != 0 || k < 0 || k > kMost) raise_value("k", repr(value), kAllowedK);
  problem->input.k_all = problem->k_max = k;
}

}  // namespace

bool read_arguments(PyObject* const* args, Py_ssize_t n_args, PyObject* names,
                    TopKArguments* arguments) {
  if (n_args > 2) {
    PyErr_Format(PyExc_TypeError, "topk() takes 2 positional arguments but %zd were given", n_args);
    return false;
  }
  if (n_args > 0) arguments->scores = args[0];
  if (n_args > 1) arguments->k = args[1];
  const Py_ssize_t n_named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  const auto names_it = [](PyObject* name) {
    return [name](const Keyword& keyword) {
      return PyUnicode_CompareWithASCIIString(name, keyword.name) == 0;
    };
  };
  const Keyword* found = std::begin(kKeywords) + n_args;
  for (Py_ssize_t i = 0; i < n_named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    // Callers name arguments in their order more often than not: the next one is tried first.
    if (found == std::end(kKeywords) || !names_it(name)(*found)) {
      found = std::find_if(std::begin(kKeywords), std::end(kKeywords), names_it(name));
    }
    if (found == std::end(kKeywords)) {
      PyErr_Format(PyExc_TypeError, "topk() got an unexpected keyword argument '%U'", name);
      return false;
    }
    if (found - std::begin(kKeywords) < n_args) {
      PyErr_Format(PyExc_TypeError, "topk() got multiple values for argument '%U'", name);
      return false;
    }
    arguments->*(found->field) = args[n_args + i];
    ++found;
  }
  if (arguments->scores == nullptr || arguments->k == nullptr) {
    PyErr_Format(PyExc_TypeError, "topk() missing required argument: '%s'",
                 arguments->scores == nullptr ? "scores" : "k");
    return false;
  }
  return true;
}

TopKProblem read_problem(const TopKArguments& arguments, Scratch& memory) {
  TopKProblem problem{
      .input = {}, .scores = tensor_view(arguments.scores, "scores"), .mask = {}, .offsets = {}};
  problem.input.dtype = read_dtype(arguments.dtype, problem.scores);
  read_rows(arguments.offsets, &problem);
  read_mask(arguments.mask, &problem);
  read_k(arguments.k, &problem, memory);
  problem.sort = read_sort(arguments.sort);
  problem.threads = read_threads(arguments.threads);
  return problem;
}

}  // namespace elastic_rank::bind
