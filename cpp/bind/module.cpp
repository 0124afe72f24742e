#include "registrations.hpp"

PYBIND11_MODULE(_native, module, pybind11::mod_gil_not_used()) {
  using namespace elastic_rank::bind;
  module.doc() = "The native core of elastic_rank.";
  register_errors(module);
  register_reason(module);
  register_isa(module);
  register_device(module);
  register_tensor(module);
  register_topk(module);
  register_scorer(module);
  register_dot(module);
  register_mlp(module);
  register_native_scorer(module);
  register_python_scorer(module);
  register_trees(module);
  register_cascade(module);
  register_latency_sketch(module);
  register_segments(module);
  register_share(module);
  register_uplift(module);
}
