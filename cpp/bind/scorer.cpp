#include "scorer.hpp"

#include <algorithm>

#include "errors.hpp"
#include "registrations.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

template <class T>
py::array checked_array(const py::object& value, const std::string& argument, int ndim,
                        const char* allowed) {
  if (!py::isinstance<py::array>(value)) raise_type(argument, describe(value), allowed);
  const py::array array = py::reinterpret_borrow<py::array>(value);
  if (!py::isinstance<py::array_t<T, 0>>(value)) raise_type(argument, describe(value), allowed);
  if (array.ndim() != ndim || !(array.flags() & py::array::c_style)) {
    raise_value(argument, describe(value), allowed);
  }
  return array;
}

py::array_t<float> score(const Scorer& scorer, const py::object& query, const py::object& ids,
                         const py::object& offsets) {
  const BatchView batch = batch_view(query, ids, offsets, "ids");
  check_ids(batch.ids, scorer.n_items(), "ids");
  if (!scorer.accepts_query(batch.query.cols)) {
    raise_value("requests.query", "width " + std::to_string(batch.query.cols),
                "the query width that the scorer was built for");
  }
  py::array_t<float> scores(static_cast<py::ssize_t>(batch.ids.size()));
  if (batch.ids.empty()) return scores;
  Scratch scratch;
  std::exception_ptr failure;
  const ScoreTask task{
      batch.query, batch.ids, batch.offsets, {scores.mutable_data(), batch.ids.size()}, &failure};
  Status status;
  if (scorer.is_native()) {
    const py::gil_scoped_release release;
    status = scorer.score(task, scratch);
  } else {
    status = scorer.score(task, scratch);
  }
  if (failure) std::rethrow_exception(failure);
  check(status, "score");
  return scores;
}

}  // namespace

std::string describe(const py::object& value) {
  if (!py::isinstance<py::array>(value)) {
    return py::str(py::type::of(value).attr("__name__")).cast<std::string>();
  }
  const py::array array = py::reinterpret_borrow<py::array>(value);
  std::string text = py::str(array.dtype()).cast<std::string>() + " of shape " +
                     py::str(array.attr("shape")).cast<std::string>();
  if (!(array.flags() & py::array::c_style)) text += ", not C-contiguous";
  return text;
}

MatrixView<const float> matrix_view(const py::object& value, const std::string& argument) {
  const py::array array =
      checked_array<float>(value, argument, 2, "a C-contiguous float32 array of two dimensions");
  return {static_cast<const float*>(array.data()), array.shape(0), array.shape(1), array.shape(1)};
}

std::span<const std::int64_t> int64_view(const py::object& value, const std::string& argument) {
  const py::array array = checked_array<std::int64_t>(
      value, argument, 1, "a C-contiguous int64 array of one dimension");
  return {static_cast<const std::int64_t*>(array.data()), static_cast<std::size_t>(array.size())};
}

std::span<const float> float32_view(const py::object& value, const std::string& argument) {
  const py::array array =
      checked_array<float>(value, argument, 1, "a C-contiguous float32 array of one dimension");
  return {static_cast<const float*>(array.data()), static_cast<std::size_t>(array.size())};
}

BatchView batch_view(const py::object& query, const py::object& ids, const py::object& offsets,
                     const std::string& ids_argument) {
  const BatchView batch{matrix_view(query, "requests.query"), int64_view(ids, ids_argument),
                        int64_view(offsets, "offsets")};
  const auto n = static_cast<std::size_t>(batch.query.rows);
  if (batch.offsets.size() != n + 1) {
    raise_value("offsets", std::to_string(batch.offsets.size()) + " entries",
                std::to_string(n + 1) + ", one more than there are requests");
  }
  const auto total = static_cast<std::int64_t>(batch.ids.size());
  if (batch.offsets.front() != 0 || batch.offsets.back() != total) {
    raise_value("offsets",
                "first " + std::to_string(batch.offsets.front()) + ", last " +
                    std::to_string(batch.offsets.back()),
                "from 0 to the number of " + ids_argument + ", " + std::to_string(total));
  }
  for (std::size_t r = 0; r < n; ++r) {
    if (batch.offsets[r + 1] < batch.offsets[r]) {
      raise_value("offsets",
                  std::to_string(batch.offsets[r + 1]) + " after " +
                      std::to_string(batch.offsets[r]) + " at position " + std::to_string(r + 1),
                  "never falling");
    }
  }
  return batch;
}

void check_ids(std::span<const std::int64_t> ids, std::int64_t n_items,
               const std::string& argument) {
  // A sign bit in id, or in limit - 1 - id, finds both ends, and two ids a step even where there is
  // no 64-bit compare. The exact culprit is looked for only on failure.
  const auto limit = static_cast<std::uint64_t>(n_items);
  std::uint64_t signs = 0;
  for (const std::int64_t id : ids) {
    const auto bits = static_cast<std::uint64_t>(id);
    signs |= bits | (limit - 1 - bits);
  }
  if (signs >> 63 == 0) return;
  const auto culprit = std::find_if(ids.begin(), ids.end(), [limit](std::int64_t id) {
    return static_cast<std::uint64_t>(id) >= limit;
  });
  raise_value(argument,
              std::to_string(*culprit) + " at position " + std::to_string(culprit - ids.begin()),
              "ids in [0, " + std::to_string(n_items) + ")");
}

void register_scorer(py::module_& module) {
  py::class_<Scorer, std::shared_ptr<Scorer>>(module, "Scorer", "One model of a cascade.")
      .def_property_readonly("n_items", &Scorer::n_items)
      .def_property_readonly("is_native", &Scorer::is_native)
      .def("accepts_query", &Scorer::accepts_query, py::arg("width"))
      .def("score", &score, py::arg("query"), py::arg("ids"), py::arg("offsets"),
           "Scores of a ragged batch. The GIL is released for native scorers.");
}

}  // namespace elastic_rank::bind
