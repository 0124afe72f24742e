#include <pybind11/stl.h>

#include "registrations.hpp"
#ifdef ELASTIC_RANK_HAS_CUDA
#include "elastic_rank/device.hpp"
#endif

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

py::dict device_info() {
  py::dict info;
#ifdef ELASTIC_RANK_HAS_CUDA
  const cuda::DeviceInfo device = cuda::device_info();
  info["built"] = true;
  info["count"] = device.count;
  info["code"] = device.code;
  info["reason"] = device.reason;
  info["devices"] = py::cast(device.names);
  info["probe"] = device.probe;
#else
  info["built"] = false;
  info["count"] = 0;
  info["code"] = 0;
  info["reason"] = "built without CUDA: no CUDA compiler was found, or ELASTIC_RANK_CUDA=OFF";
  info["devices"] = py::list();
  info["probe"] = 0;
#endif
  return info;
}

}  // namespace

void register_device(py::module_& module) {
#ifdef ELASTIC_RANK_HAS_CUDA
  module.attr("has_cuda") = true;
#else
  module.attr("has_cuda") = false;
#endif
  module.def("device_info", &device_info,
             "Which accelerators can be used and, if none, why: 'code' and 'reason' are the "
             "runtime's own.");
}

}  // namespace elastic_rank::bind
