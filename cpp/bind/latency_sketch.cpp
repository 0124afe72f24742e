#include "elastic_rank/latency_sketch.hpp"

#include <pybind11/numpy.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argument.hpp"
#include "elastic_rank/latency_wire.hpp"
#include "errors.hpp"
#include "registrations.hpp"
#include "scalar_call.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

constexpr const char* kAllowedValues = "a float, or a C-contiguous float64 or float32 array";

const char* const kClassDoc = R"(Latency quantiles with a stated relative error, merged exactly.

Parameters
----------
relative_error : float, 0.0005 to 0.2, default 0.01
    How far a quantile may lie from the recorded value of that rank, as a part of it. Halving it
    doubles the memory of a shard: 0.01 takes 24 KiB, 0.001 takes 192 KiB.

Raises
------
TypeError, ValueError
    ``relative_error`` out of range; naming what came and what is allowed.

Notes
-----
Range: 1 ns to 131,072 s (36 hours). Smaller values are counted (`underflow`; zero is an ordinary
value) and off by less than 1 ns; larger ones are clamped to 131,072 s and counted (`overflow`).
NaN, infinite and negative values change nothing but `refused`.
Window: a sketch is never emptied; a new window is a new sketch, merged into the longer one.
Threads: safe; each recording thread writes a shard of its own, the first 16 without a bus lock.
GIL: released by `record_many`. Cost: `record` about 30 ns from Python and a few ns inside;
`record_many` about 2 ns a value; a high quantile walks the buckets above it only. The first record
of a thread allocates its shard.
Determinism: the same values give the same quantiles, bytes and sum in any order, over any number
of threads and merges.

Examples
--------
>>> from elastic_rank import LatencySketch
>>> sketch = LatencySketch()
>>> for millisecond in range(1, 101):
...     sketch.record(millisecond / 1e3)
>>> abs(sketch.quantile(0.99) - 0.099) <= 0.01 * 0.099
True
>>> sketch.count, sketch.max
(100, 0.1)
>>> other = LatencySketch.from_bytes(sketch.to_bytes())
>>> other.merge(sketch)
>>> other.count
200
)";

std::unique_ptr<LatencySketch> make(Float<"relative_error"> relative_error) {
  if (!LatencyLayout::valid_error(relative_error)) {
    raise_value("relative_error", py::repr(py::float_(relative_error)).cast<std::string>(),
                "0.0005 to 0.2");
  }
  return std::make_unique<LatencySketch>(relative_error);
}

LatencyCounts read(const LatencySketch& sketch, Scratch& scratch) {
  LatencyCounts counts;
  check(sketch.read(&counts, scratch), "LatencySketch");
  return counts;
}

extern "C" PyObject* sketch_record(PyObject* self, PyObject* seconds) noexcept {
  LatencySketch* sketch = self_of<LatencySketch>(self);
  if (sketch == nullptr) return nullptr;
  double value = 0.0;
  if (!to_double(seconds, "seconds", &value)) return nullptr;
  sketch->record(value);
  Py_RETURN_NONE;
}

double checked_q(double q) {
  if (!(q >= 0.0 && q <= 1.0)) {
    raise_value("q", py::repr(py::float_(q)).cast<std::string>(), "0 to 1");
  }
  return q;
}

py::object quantile(const LatencySketch& sketch, const py::object& q) {
  if (py::isinstance<py::float_>(q)) {
    return py::float_(sketch.quantile(checked_q(q.cast<double>())));
  }
  using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
  const py::array given = py::array::ensure(q);
  // Text and truth values would be cast without a word.
  const bool numbers = given && std::strchr("fiu", given.dtype().kind()) != nullptr;
  const Doubles asked = numbers ? Doubles::ensure(given) : Doubles();
  if (!numbers || !asked) {
    PyErr_Clear();
    raise_type("q", py::str(py::type::of(q).attr("__name__")).cast<std::string>(),
               "a float or an array of floats, each 0 to 1");
  }
  if (asked.ndim() == 0 && !py::isinstance<py::array>(q)) {
    return py::float_(sketch.quantile(checked_q(asked.data()[0])));
  }
  for (py::ssize_t i = 0; i < asked.size(); ++i) checked_q(asked.data()[i]);
  py::array_t<double> answer(std::vector<py::ssize_t>(asked.shape(), asked.shape() + asked.ndim()));
  // One reading for all, so that answers rise with q while other threads record.
  Scratch scratch;
  const LatencyCounts counts = read(sketch, scratch);
  for (py::ssize_t i = 0; i < asked.size(); ++i) {
    answer.mutable_data()[i] = sketch.quantile(counts, asked.data()[i]);
  }
  return answer;
}

extern "C" PyObject* sketch_quantile(PyObject* self, PyObject* q) noexcept {
  LatencySketch* sketch = self_of<LatencySketch>(self);
  if (sketch == nullptr) return nullptr;
  if (PyFloat_CheckExact(q)) {
    const double value = PyFloat_AS_DOUBLE(q);
    if (value >= 0.0 && value <= 1.0) return PyFloat_FromDouble(sketch->quantile(value));
  }
  try {
    return quantile(*sketch, py::reinterpret_borrow<py::object>(q)).release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

template <class T>
bool record_array(LatencySketch& sketch, const py::array& array) {
  if (!py::isinstance<py::array_t<T, 0>>(array)) return false;
  const std::span<const T> values(static_cast<const T*>(array.data()),
                                  static_cast<std::size_t>(array.size()));
  const py::gil_scoped_release release;
  sketch.record_many(values);
  return true;
}

void record_many(LatencySketch& sketch, const py::object& seconds) {
  if (!py::isinstance<py::array>(seconds)) {
    raise_type("seconds", py::str(py::type::of(seconds).attr("__name__")).cast<std::string>(),
               kAllowedValues);
  }
  const auto array = py::reinterpret_borrow<py::array>(seconds);
  if (!(array.flags() & py::array::c_style)) {
    raise_value("seconds", "strides " + py::str(array.attr("strides")).cast<std::string>(),
                kAllowedValues);
  }
  if (!record_array<double>(sketch, array) && !record_array<float>(sketch, array)) {
    raise_type("seconds", py::str(array.dtype()).cast<std::string>() + " array", kAllowedValues);
  }
}

void merge(LatencySketch& sketch, const py::object& given) {
  if (!py::isinstance<LatencySketch>(given)) {
    raise_type("other", py::str(py::type::of(given).attr("__name__")).cast<std::string>(),
               "a LatencySketch");
  }
  const auto& other = given.cast<const LatencySketch&>();
  const double ours = sketch.layout().relative_error();
  const double theirs = other.layout().relative_error();
  if (ours != theirs) {
    raise_value(
        "other", "relative_error " + py::repr(py::float_(theirs)).cast<std::string>(),
        "that of the sketch merged into, " + py::repr(py::float_(ours)).cast<std::string>());
  }
  Scratch scratch;
  if (sketch.merge(read(other, scratch)) != Status::ok) {
    raise_value("other", std::to_string(other.count()) + " values",
                "at most 2**63 - 1 values in both together");
  }
}

py::bytes to_bytes(const LatencySketch& sketch) {
  Scratch scratch;
  std::span<const std::uint8_t> bytes;
  check(encode_latency(sketch, &bytes, scratch), "LatencySketch.to_bytes");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::unique_ptr<LatencySketch> from_bytes(const py::object& bytes) {
  if (!PyBytes_Check(bytes.ptr())) {
    raise_type("bytes", py::str(py::type::of(bytes).attr("__name__")).cast<std::string>(), "bytes");
  }
  const auto view = static_cast<std::string_view>(py::reinterpret_borrow<py::bytes>(bytes));
  const std::span<const std::uint8_t> raw(reinterpret_cast<const std::uint8_t*>(view.data()),
                                          view.size());
  Scratch scratch;
  double relative_error = 0.0;
  LatencyCounts counts;
  const Status status = decode_latency(raw, &relative_error, &counts, scratch);
  if (status == Status::invalid_argument) {
    raise_value("bytes", std::to_string(view.size()) + " bytes that are not a latency sketch",
                "what to_bytes() gives, wire version " + std::to_string(kLatencyWireVersion));
  }
  check(status, "LatencySketch.from_bytes");
  auto sketch = std::make_unique<LatencySketch>(relative_error);
  check(sketch->merge(counts), "LatencySketch.from_bytes");
  return sketch;
}

template <auto Member>
auto counted(const LatencySketch& sketch) {
  Scratch scratch;
  return (sketch.*Member)(read(sketch, scratch));
}

std::string repr(const LatencySketch& sketch) {
  const auto number = [](double value) { return py::repr(py::float_(value)).cast<std::string>(); };
  return "LatencySketch(relative_error=" + number(sketch.layout().relative_error()) +
         ", count=" + std::to_string(sketch.count()) +
         ", refused=" + std::to_string(sketch.refused()) + ")";
}

PyMethodDef fast_methods[] = {
    {"record", sketch_record, METH_O,
     "record($self, seconds, /)\n--\n\n"
     "Count one latency in seconds. NaN, infinite and negative ones are refused and counted."},
    {"quantile", sketch_quantile, METH_O,
     "quantile($self, q, /)\n--\n\n"
     "The ceil(q n)-th smallest value within the relative error; inside [min, max]; NaN when "
     "empty.\n\n"
     "q : float or array of floats, each 0 to 1; an array gives a float64 array of its shape, from "
     "one reading."},
};

}  // namespace

void register_latency_sketch(py::module_& module) {
  py::class_<LatencySketch> sketch(module, "LatencySketch", py::is_final(), kClassDoc);
  // The public place: pickles and doctests find the class by it.
  sketch.attr("__module__") = "elastic_rank.measure.latency_sketch";
  sketch.def(py::init(&make), py::arg("relative_error") = 0.01)
      .def("record_many", &record_many, py::arg("seconds"),
           "Count each latency of a C-contiguous float64 or float32 array; refused ones are "
           "skipped and counted.")
      .def("merge", &merge, py::arg("other"),
           "Add another sketch's counts, exactly. ValueError, nothing changed, when the relative "
           "errors differ.")
      .def_property_readonly("relative_error",
                             [](const LatencySketch& s) { return s.layout().relative_error(); })
      .def_property_readonly("count", &LatencySketch::count, "Values recorded, refused ones not.")
      .def_property_readonly("refused", &LatencySketch::refused,
                             "NaN, infinite and negative values met.")
      .def_property_readonly("underflow", &counted<&LatencySketch::underflow>,
                             "Values above zero and below 1 ns.")
      .def_property_readonly("overflow", &counted<&LatencySketch::overflow>,
                             "Values of 131,072 s or more, clamped to it.")
      .def_property_readonly("min", &LatencySketch::min_s, "Seconds, exact; NaN when empty.")
      .def_property_readonly("max", &LatencySketch::max_s, "Seconds, exact; NaN when empty.")
      .def_property_readonly("sum", &counted<&LatencySketch::sum_s>,
                             "Seconds, within the relative error; the same in any order.")
      .def("to_bytes", &to_bytes, "Compact wire form with version and checksum.")
      .def_static("from_bytes", &from_bytes, py::arg("bytes"),
                  "A sketch from its wire form. ValueError for anything `to_bytes` did not write.")
      .def("__repr__", &repr)
      .def(py::pickle(&to_bytes, &from_bytes));
  add_methods(sketch, fast_methods, std::size(fast_methods));
}

}  // namespace elastic_rank::bind
