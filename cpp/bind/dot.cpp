#include "elastic_rank/dot.hpp"

#include "registrations.hpp"
#include "scorer.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

std::shared_ptr<Bound<Dot>> make_dot(const py::object& table) {
  return std::make_shared<Bound<Dot>>(table, matrix_view(table, "table"));
}

}  // namespace

void register_dot(py::module_& module) {
  py::class_<Bound<Dot>, Scorer, std::shared_ptr<Bound<Dot>>>(
      module, "DotScorer", py::is_final(), "query . row over a float32 table, which is not copied.")
      .def(py::init(&make_dot), py::arg("table"));
}

}  // namespace elastic_rank::bind
