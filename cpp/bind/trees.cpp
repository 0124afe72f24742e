#include "elastic_rank/trees.hpp"

#include "errors.hpp"
#include "registrations.hpp"
#include "scorer.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

template <class T>
std::span<const T> vector_view(const py::dict& trees, const char* name) {
  const py::object value = trees[name];
  if (!py::isinstance<py::array_t<T, py::array::c_style>>(value) ||
      py::reinterpret_borrow<py::array>(value).ndim() != 1) {
    raise_type(std::string("trees.") + name, py::str(py::type::of(value)).cast<std::string>(),
               "a contiguous array of one dimension of the documented dtype");
  }
  const auto array = py::reinterpret_borrow<py::array>(value);
  return {static_cast<const T*>(array.data()), static_cast<std::size_t>(array.size())};
}

TreeArrays tree_arrays(const py::dict& trees) {
  return {vector_view<std::int64_t>(trees, "offsets"),
          vector_view<std::uint8_t>(trees, "kind"),
          vector_view<std::int32_t>(trees, "feature"),
          vector_view<float>(trees, "threshold"),
          vector_view<std::int32_t>(trees, "left"),
          vector_view<std::int32_t>(trees, "right"),
          vector_view<std::uint8_t>(trees, "default_left"),
          vector_view<double>(trees, "value"),
          vector_view<std::int64_t>(trees, "category_offsets"),
          vector_view<std::uint32_t>(trees, "categories")};
}

TreeLink link_of(const std::string& name) {
  constexpr const char* kNames[] = {"identity",
                                    "sigmoid",
                                    "exponential",
                                    "exponential_standard_ratio",
                                    "logarithm_one_plus_exp",
                                    "signed_square",
                                    "hinge"};
  std::string allowed;
  for (std::uint8_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<TreeLink>(i);
    allowed += (i == 0 ? "" : ", ") + std::string(kNames[i]);
  }
  raise_value("link", "'" + name + "'", allowed);
}

std::shared_ptr<Bound<Trees>> make_trees(const py::dict& trees, std::int64_t width, double divisor,
                                         double base_score, const std::string& link,
                                         double link_parameter, const py::object& item_features) {
  const TreeArrays arrays = tree_arrays(trees);
  const MatrixView<const float> items = matrix_view(item_features, "item_features");
  if (const char* fault = fault_of(arrays, width)) {
    raise_value("model", fault, "trees whose splits and leaves are in range and finite");
  }
  if (items.cols < 1 || items.cols > width) {
    raise_value("item_features", std::to_string(items.cols) + " columns",
                "1 to " + std::to_string(width) + ", the model's features");
  }
  const TreeOutput output{divisor, base_score, link_of(link), link_parameter};
  return std::make_shared<Bound<Trees>>(item_features, arrays, output, width, items);
}

}  // namespace

void register_trees(py::module_& module) {
  py::class_<Bound<Trees>, Scorer, std::shared_ptr<Bound<Trees>>>(module, "TreesScorer",
                                                                  py::is_final())
      .def(py::init(&make_trees), py::arg("trees"), py::kw_only(), py::arg("width"),
           py::arg("divisor"), py::arg("base_score"), py::arg("link"), py::arg("link_parameter"),
           py::arg("item_features"));
}

}  // namespace elastic_rank::bind
