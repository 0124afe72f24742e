#include "elastic_rank/segments.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cmath>
#include <string>

#include "argument.hpp"
#include "errors.hpp"
#include "registrations.hpp"
#include "scalar_call.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

using Values = py::array_t<double, py::array::c_style>;

const char* const kClassDoc =
    R"(Classes of requests by a predicted value; the top id is the highest.

Parameters
----------
edges : sequence of float
    Rising strictly, at most 255. Segment ``i`` holds ``edges[i - 1] <= value < edges[i]``.
version : int, default 0
    Which learning of the edges this is; travels with what was measured under it.

Raises
------
TypeError, ValueError
    Edges that do not rise or are not finite, a value that is NaN; naming what came.

Notes
-----
`Segments.fit` takes the edges from quantiles of values. Equal values are one label: no edge passes
between them, so fewer segments than asked may come out; ids are dense and no segment is empty.
Threads: immutable. GIL: kept. Cost: `of` one binary search without branches, about 60 ns from
Python; `of_many` a few ns a value.

Examples
--------
>>> import numpy as np
>>> from elastic_rank import Segments
>>> segments = Segments.fit(np.array([0.1, 0.1, 0.1, 0.5, 0.7, 0.9]), 3)
>>> segments.edges, segments.of(0.6), len(segments)
([0.5, 0.7], 1, 3)
)";

/// Edges and the number of their learning.
struct VersionedSegments {
  Segments segments;
  std::int64_t version;
};

Values checked_values(const py::object& values) {
  if (!py::isinstance<Values>(values) || values.cast<py::array>().ndim() != 1) {
    raise_type("values", py::str(py::type::of(values).attr("__name__")).cast<std::string>(),
               "a contiguous float64 array of one axis");
  }
  return values.cast<Values>();
}

VersionedSegments make(const py::object& given, Integer<"version"> version) {
  std::vector<double> edges;
  try {
    edges = given.cast<std::vector<double>>();
  } catch (const py::cast_error&) {
    raise_type("edges", py::repr(given).cast<std::string>().substr(0, 80), "a sequence of floats");
  }
  if (!Segments::valid(edges)) {
    raise_value("edges", py::repr(py::cast(edges)).cast<std::string>().substr(0, 200),
                "at most 255 finite floats that rise strictly");
  }
  return {Segments(std::move(edges)), version};
}

VersionedSegments fit(const py::object& values, Integer<"n"> n, Integer<"version"> version) {
  const Values given = checked_values(values);
  if (n < 1 || n > Segments::kMost) raise_value("n", std::to_string(n), "1 to 256");
  if (given.size() == 0) raise_value("values", "no values", "at least one");
  std::vector<double> sorted(given.data(), given.data() + given.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (!std::isfinite(sorted[i])) {
      raise_value("values[" + std::to_string(i) + "]",
                  py::repr(py::float_(sorted[i])).cast<std::string>(), "a finite float");
    }
  }
  return {Segments::fit(sorted, n), version};
}

py::array_t<std::int32_t> of_many(const VersionedSegments& self, const py::object& values) {
  const Values given = checked_values(values);
  py::array_t<std::int32_t> answer(given.size());
  for (py::ssize_t i = 0; i < given.size(); ++i) {
    const std::int32_t id = self.segments.of(given.data()[i]);
    if (id < 0) raise_value("values[" + std::to_string(i) + "]", "nan", "a number");
    answer.mutable_data()[i] = id;
  }
  return answer;
}

extern "C" PyObject* segments_of(PyObject* self, PyObject* argument) noexcept {
  const auto* segments = self_of<VersionedSegments>(self);
  double value = 0.0;
  if (segments == nullptr || !to_double(argument, "value", &value)) return nullptr;
  const std::int32_t id = segments->segments.of(value);
  if (id < 0) return PyErr_Format(PyExc_ValueError, "value: got nan; allowed: a number");
  return PyLong_FromLong(id);
}

PyMethodDef fast_methods[] = {
    {"of", segments_of, METH_O, "of($self, value, /)\n--\n\nThe segment of a value."},
};

}  // namespace

void register_segments(py::module_& module) {
  py::class_<VersionedSegments> type(module, "Segments", py::is_final(), kClassDoc);
  type.attr("__module__") = "elastic_rank.routing";
  type.def(py::init(&make), py::arg("edges"), py::kw_only(), py::arg("version") = 0)
      .def_static("fit", &fit, py::arg("values"), py::arg("n"), py::kw_only(),
                  py::arg("version") = 0,
                  "Edges from the quantiles of a float64 array, for at most `n` segments of like "
                  "size.")
      .def("of_many", &of_many, py::arg("values"),
           "The segments of a float64 array; int32, the same length.")
      .def_property_readonly("edges", [](const VersionedSegments& s) { return s.segments.edges(); })
      .def_property_readonly("version", [](const VersionedSegments& s) { return s.version; })
      .def("__len__", [](const VersionedSegments& s) { return s.segments.size(); })
      .def("__repr__",
           [](const VersionedSegments& s) {
             return "Segments(" + py::repr(py::cast(s.segments.edges())).cast<std::string>() +
                    ", version=" + std::to_string(s.version) + ")";
           })
      .def(py::pickle(
          [](const VersionedSegments& s) { return py::make_tuple(s.segments.edges(), s.version); },
          [](const py::tuple& saved) { return make(saved[0], {saved[1].cast<std::int64_t>()}); }));
  add_methods(type, fast_methods, std::size(fast_methods));
}

}  // namespace elastic_rank::bind
