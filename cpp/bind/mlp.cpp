#include "elastic_rank/mlp.hpp"

#include <pybind11/stl.h>

#include <cmath>
#include <vector>

#include "errors.hpp"
#include "registrations.hpp"
#include "scorer.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

std::string layer_argument(std::size_t layer, const char* part) {
  return "layers[" + std::to_string(layer) + "] " + part;
}

std::string shape_of(MatrixView<const float> matrix) {
  return "(" + std::to_string(matrix.rows) + ", " + std::to_string(matrix.cols) + ")";
}

void check_finite(MatrixView<const float> weight, const std::string& argument) {
  for (std::int64_t r = 0; r < weight.rows; ++r) {
    for (std::int64_t c = 0; c < weight.cols; ++c) {
      const float value = weight.row(r)[c];
      if (std::isfinite(value)) continue;
      raise_value(argument,
                  std::to_string(value) + " at position (" + std::to_string(r) + ", " +
                      std::to_string(c) + ")",
                  "finite numbers");
    }
  }
}

void check_finite(std::span<const float> bias, const std::string& argument) {
  for (std::size_t i = 0; i < bias.size(); ++i) {
    if (std::isfinite(bias[i])) continue;
    raise_value(argument, std::to_string(bias[i]) + " at position " + std::to_string(i),
                "finite numbers");
  }
}

DenseLayer dense_layer(std::size_t i, const py::object& weight, const py::object& bias) {
  const DenseLayer layer{matrix_view(weight, layer_argument(i, "weight")),
                         float32_view(bias, layer_argument(i, "bias"))};
  if (layer.weight.rows == 0 || layer.weight.cols == 0) {
    raise_value(layer_argument(i, "weight"), "shape " + shape_of(layer.weight),
                "at least one input and one output");
  }
  if (static_cast<std::int64_t>(layer.bias.size()) != layer.weight.cols) {
    raise_value(layer_argument(i, "bias"), "shape (" + std::to_string(layer.bias.size()) + ",)",
                "(" + std::to_string(layer.weight.cols) + ",), one number an output");
  }
  check_finite(layer.weight, layer_argument(i, "weight"));
  check_finite(layer.bias, layer_argument(i, "bias"));
  return layer;
}

/// Widths chain from the item table, and a query where layer one is wider, to one output.
void check_widths(const std::vector<DenseLayer>& layers, MatrixView<const float> items) {
  if (items.cols == 0)
    raise_value("item_features", "shape " + shape_of(items), "(items, f), f >= 1");
  if (layers.front().weight.rows < items.cols) {
    raise_value(layer_argument(0, "weight"), "shape " + shape_of(layers.front().weight),
                "inputs for the query part, if any, and " + std::to_string(items.cols) +
                    " columns of item_features");
  }
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const std::int64_t outputs = layers[i - 1].weight.cols;
    if (layers[i].weight.rows != outputs) {
      raise_value(layer_argument(i, "weight"), "shape " + shape_of(layers[i].weight),
                  std::to_string(outputs) + " inputs, the outputs of the layer before");
    }
  }
  if (layers.back().weight.cols != 1) {
    raise_value(layer_argument(layers.size() - 1, "weight"),
                "shape " + shape_of(layers.back().weight), "one output in the last layer");
  }
}

std::shared_ptr<Bound<Mlp>> make_mlp(const std::vector<py::object>& weights,
                                     const std::vector<py::object>& biases,
                                     const py::object& item_features) {
  if (weights.empty()) raise_value("layers", "none", "at least one (weight, bias)");
  if (weights.size() != biases.size()) {
    raise_value("biases", std::to_string(biases.size()), "as many as weights");
  }
  const MatrixView<const float> items = matrix_view(item_features, "item_features");
  std::vector<DenseLayer> layers;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    layers.push_back(dense_layer(i, weights[i], biases[i]));
  }
  check_widths(layers, items);
  return std::make_shared<Bound<Mlp>>(item_features, layers, items);
}

}  // namespace

void register_mlp(py::module_& module) {
  py::class_<Bound<Mlp>, Scorer, std::shared_ptr<Bound<Mlp>>>(
      module, "MlpScorer", py::is_final(),
      "Dense layers with ReLU between. Weights are copied, item features are not.")
      .def(py::init(&make_mlp), py::arg("weights"), py::arg("biases"), py::arg("item_features"));
}

}  // namespace elastic_rank::bind
