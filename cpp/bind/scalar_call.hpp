#pragma once

#include <pybind11/pybind11.h>

/// Calls of one number that skip pybind11's dispatcher: they cost what a built-in method costs.
namespace elastic_rank::bind {

/// The C++ object behind `self`. The class must be final with one C++ base, so that its instances
/// have the simple layout; the method descriptor has checked the type. Null, with an error set, if
/// `__init__` was skipped.
template <class T>
T* self_of(PyObject* self) noexcept {
  auto* instance = reinterpret_cast<pybind11::detail::instance*>(self);
  if (!instance->simple_holder_constructed) {
    PyErr_Format(PyExc_TypeError, "self: got a %s without __init__; allowed: an initialised one",
                 Py_TYPE(self)->tp_name);
    return nullptr;
  }
  return static_cast<T*>(instance->simple_value_holder[0]);
}

/// A Python number as a double. False, with an error set that names the argument.
inline bool to_double(PyObject* number, const char* argument, double* value) noexcept {
  *value = PyFloat_AsDouble(number);
  if (*value != -1.0 || PyErr_Occurred() == nullptr) return true;
  if (PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Format(PyExc_TypeError, "%s: got %.100s; allowed: a float", argument,
                 Py_TYPE(number)->tp_name);
  } else if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
    PyErr_Format(PyExc_ValueError, "%s: got an integer beyond float; allowed: a float", argument);
  }
  return false;
}

/// Puts hand-written methods beside those that pybind11 made.
inline void add_methods(const pybind11::object& type, PyMethodDef* methods, std::size_t n) {
  for (PyMethodDef* method = methods; method != methods + n; ++method) {
    auto* descriptor = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), method);
    if (descriptor == nullptr) throw pybind11::error_already_set();
    type.attr(method->ml_name) = pybind11::reinterpret_steal<pybind11::object>(descriptor);
  }
}

}  // namespace elastic_rank::bind
