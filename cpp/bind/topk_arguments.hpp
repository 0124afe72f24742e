#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

#include "elastic_rank/scratch.hpp"
#include "elastic_rank/topk.hpp"
#include "tensor.hpp"

namespace elastic_rank::bind {

/// The arguments as they came, borrowed.
struct TopKArguments {
  PyObject* scores = nullptr;
  PyObject* k = nullptr;
  PyObject* offsets = Py_None;
  PyObject* mask = Py_None;
  PyObject* sort = Py_True;
  PyObject* dtype = Py_None;
  PyObject* out = Py_None;
  PyObject* threads = nullptr;  ///< null: 1
};

/// Sorts a call's arguments by name. False: a Python error is set.
bool read_arguments(PyObject* const* args, Py_ssize_t n_args, PyObject* names,
                    TopKArguments* arguments);

/// A checked call: all that can be wrong with the arguments has been looked at.
struct TopKProblem {
  TopKInput input;
  TensorView scores;
  TensorView mask;
  pybind11::object offsets;
  std::int64_t k_max = 0;
  bool sort = true;
  bool row_axis = true;  ///< false: one row came without it, and goes without it
  int threads = 1;
};

/// @param memory holds what had to be converted (k of another integer type) for the call.
TopKProblem read_problem(const TopKArguments& arguments, Scratch& memory);

/// The arrays that a call fills.
struct TopKArrays {
  pybind11::object values;  ///< an array, or a `Tensor` for bfloat16 that came through DLPack
  pybind11::object indices;
  pybind11::object counts;
  TopKOutput output;
};

TopKArrays new_arrays(const TopKProblem& problem);
/// The caller's, checked: types, shapes, layout, writable, apart from the scores.
TopKArrays given_arrays(pybind11::handle out, const TopKProblem& problem);

}  // namespace elastic_rank::bind
