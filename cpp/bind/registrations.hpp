#pragma once

#include <pybind11/pybind11.h>

/// One function a concept, in the order in which `module.cpp` calls them: a concept may use the
/// types of those before it.
namespace elastic_rank::bind {

void register_errors(pybind11::module_& module);
void register_reason(pybind11::module_& module);
void register_isa(pybind11::module_& module);
void register_device(pybind11::module_& module);
void register_tensor(pybind11::module_& module);
void register_topk(pybind11::module_& module);
void register_scorer(pybind11::module_& module);
void register_dot(pybind11::module_& module);
void register_mlp(pybind11::module_& module);
void register_native_scorer(pybind11::module_& module);
void register_python_scorer(pybind11::module_& module);
void register_trees(pybind11::module_& module);
void register_cascade(pybind11::module_& module);
void register_latency_sketch(pybind11::module_& module);
void register_segments(pybind11::module_& module);
void register_share(pybind11::module_& module);
void register_uplift(pybind11::module_& module);

}  // namespace elastic_rank::bind
