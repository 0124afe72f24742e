#include "argument.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

std::string shown(py::handle given) {
  return py::repr(given).cast<std::string>().substr(0, 80);
}

/// The integer behind `__index__`; a bool is a mistake more often than a number.
py::int_ index_of(py::handle given, const char* name) {
  if (PyBool_Check(given.ptr()) || !PyIndex_Check(given.ptr())) {
    raise_type(name, shown(given), "an integer");
  }
  PyObject* index = PyNumber_Index(given.ptr());
  if (index == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::int_>(index);
}

}  // namespace

void read_argument(py::handle given, const char* name, double* value) {
  *value = PyFloat_AsDouble(given.ptr());
  if (*value != -1.0 || PyErr_Occurred() == nullptr) return;
  const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
  if (!too_large && PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  if (too_large) raise_value(name, "an integer beyond float", "a float");
  raise_type(name, shown(given), "a float");
}

void read_argument(py::handle given, const char* name, std::int64_t* value) {
  const py::int_ index = index_of(given, name);
  *value = PyLong_AsLongLong(index.ptr());
  if (*value != -1 || PyErr_Occurred() == nullptr) return;
  PyErr_Clear();
  raise_value(name, shown(index), "an integer of 64 bits");
}

void read_argument(py::handle given, const char* name, std::uint64_t* value) {
  const py::int_ index = index_of(given, name);
  *value = PyLong_AsUnsignedLongLong(index.ptr());
  if (*value != ~std::uint64_t{0} || PyErr_Occurred() == nullptr) return;
  PyErr_Clear();
  raise_value(name, shown(index), "0 to 2**64 - 1");
}

}  // namespace elastic_rank::bind
