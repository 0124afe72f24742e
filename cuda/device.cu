#include "elastic_rank/device.hpp"

#include <cuda_runtime.h>

namespace elastic_rank::cuda {
namespace {

constexpr int kProbeAnswer = 42;

__global__ void probe_kernel(int* out) {
  *out = kProbeAnswer;
}

/// Runs one kernel on the current device: a listed device that cannot run code is told apart.
bool probe() {
  int* device_value = nullptr;
  if (cudaMalloc(&device_value, sizeof(int)) != cudaSuccess) return false;
  probe_kernel<<<1, 1>>>(device_value);
  int value = 0;
  const cudaError_t copied = cudaMemcpy(&value, device_value, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(device_value);
  return copied == cudaSuccess && value == kProbeAnswer;
}

}  // namespace

DeviceInfo device_info() {
  DeviceInfo info;
  const cudaError_t error = cudaGetDeviceCount(&info.count);
  if (error != cudaSuccess) {
    cudaGetLastError();  // the error is sticky: the next, unrelated call would report it
    info.count = 0;
    info.code = static_cast<int>(error);
    info.reason = cudaGetErrorString(error);
    return info;
  }
  for (int device = 0; device < info.count; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) == cudaSuccess) {
      info.names.emplace_back(properties.name);
    }
  }
  info.probe = info.count > 0 && probe() ? 1 : 0;
  cudaGetLastError();
  return info;
}

}  // namespace elastic_rank::cuda
