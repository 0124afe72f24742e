#include <algorithm>

#include "errors.hpp"
#include "registrations.hpp"
#include "scorer.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

/// A Python function over [query | item] rows, or over ids when there is no item table. Sees each
/// batch whole, on the calling thread, holding the GIL.
class PythonScorer final : public Scorer {
 public:
  PythonScorer(py::object function, py::object item_features)
      : function_(std::move(function)), item_features_(std::move(item_features)) {
    if (!item_features_.is_none()) items_ = matrix_view(item_features_, "item_features");
  }

  std::int64_t n_items() const noexcept override {
    return item_features_.is_none() ? kAnyItem : items_.rows;
  }
  bool accepts_query(std::int64_t) const noexcept override { return true; }
  bool is_native() const noexcept override { return false; }

  Status score(const ScoreTask& task, Scratch&) const noexcept override {
    const py::gil_scoped_acquire gil;
    try {
      const py::object result = function_(item_features_.is_none() ? ids(task) : rows(task));
      copy_scores(result, task.scores);
      return Status::ok;
    } catch (...) {
      if (task.failure != nullptr) *task.failure = std::current_exception();
      return Status::scorer_failed;
    }
  }

 private:
  static py::array ids(const ScoreTask& task) {
    return py::array_t<std::int64_t>(static_cast<py::ssize_t>(task.ids.size()), task.ids.data());
  }

  py::array rows(const ScoreTask& task) const {
    const std::int64_t width = task.query.cols + items_.cols;
    py::array_t<float> result(
        {static_cast<py::ssize_t>(task.ids.size()), static_cast<py::ssize_t>(width)});
    float* row = result.mutable_data();
    for (std::int64_t r = 0; r < task.query.rows; ++r) {
      const auto at = static_cast<std::size_t>(r);
      for (std::int64_t i = task.offsets[at]; i < task.offsets[at + 1]; ++i, row += width) {
        const std::int64_t id = task.ids[static_cast<std::size_t>(i - task.offsets[0])];
        std::copy_n(task.query.row(r), task.query.cols, row);
        std::copy_n(items_.row(id), items_.cols, row + task.query.cols);
      }
    }
    return result;
  }

  static void copy_scores(const py::object& result, std::span<float> scores) {
    const std::string allowed = "float32 of shape (" + std::to_string(scores.size()) + ",)";
    if (!py::isinstance<Float32Array>(result)) {
      raise_type("the function's result", describe(result), allowed);
    }
    const auto array = py::reinterpret_borrow<Float32Array>(result);
    if (array.ndim() != 1 || array.shape(0) != static_cast<py::ssize_t>(scores.size())) {
      raise_value("the function's result", describe(result), allowed);
    }
    const auto values = array.unchecked<1>();
    for (py::ssize_t i = 0; i < values.shape(0); ++i)
      scores[static_cast<std::size_t>(i)] = values(i);
  }

  py::object function_;
  py::object item_features_;
  MatrixView<const float> items_;
};

std::shared_ptr<PythonScorer> make_python(const py::object& function,
                                          const py::object& item_features) {
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_type("function", describe(function), "a callable");
  }
  return std::make_shared<PythonScorer>(function, item_features);
}

}  // namespace

void register_python_scorer(py::module_& module) {
  py::class_<PythonScorer, Scorer, std::shared_ptr<PythonScorer>>(
      module, "PythonScorer", py::is_final(),
      "A Python function over rows or ids, called with the GIL, once a batch.")
      .def(py::init(&make_python), py::arg("function"), py::arg("item_features") = py::none());
}

}  // namespace elastic_rank::bind
