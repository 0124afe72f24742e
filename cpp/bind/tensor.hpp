#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "dlpack.hpp"

namespace elastic_rank::bind {

enum class ElementType : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int32,
  uint16,
  boolean,
  other
};

/// Memory taken over through DLPack; given back to its producer at the end.
class DlpackOwner {
 public:
  DlpackOwner() noexcept = default;
  explicit DlpackOwner(dlpack::ManagedTensor* tensor) noexcept : plain_(tensor) {}
  explicit DlpackOwner(dlpack::ManagedTensorVersioned* tensor) noexcept : versioned_(tensor) {}
  DlpackOwner(DlpackOwner&& other) noexcept;
  DlpackOwner& operator=(DlpackOwner&&) = delete;
  ~DlpackOwner();

 private:
  dlpack::ManagedTensor* plain_ = nullptr;
  dlpack::ManagedTensorVersioned* versioned_ = nullptr;
};

/// An array argument of one or two dimensions as it lies in memory. Nothing is copied or converted:
/// the caller's argument, or the DLPack owner, keeps it alive.
struct TensorView {
  std::byte* data = nullptr;
  int ndim = 0;
  std::int64_t shape[2] = {1, 1};
  std::int64_t strides[2] = {0, 0};  ///< bytes; zero and negative ones occur
  ElementType type = ElementType::other;
  pybind11::handle dtype;  ///< numpy's, null for DLPack
  dlpack::DataType dlpack_type = {};
  DlpackOwner owner;

  bool from_dlpack() const noexcept { return !dtype; }
  std::string type_name() const;
  std::string shape_name() const;
  /// First byte used, and the one after the last.
  std::pair<const std::byte*, const std::byte*> extent(std::int64_t element_size) const noexcept;
};

/// Views a numpy array, an object with `__dlpack__`, or a DLPack capsule (which is then used up),
/// in host memory. Raises, naming `argument`, on anything else.
TensorView tensor_view(pybind11::handle value, const char* argument);

/// A bfloat16 array, a type that numpy has not: what `topk` returns for one.
class Tensor {
 public:
  /// @param bits uint16, C-contiguous.
  explicit Tensor(pybind11::array bits) : bits_(std::move(bits)) {}

  const pybind11::array& bits() const noexcept { return bits_; }
  pybind11::tuple shape() const;
  pybind11::object dlpack(const pybind11::object& stream, const pybind11::object& max_version,
                          const pybind11::object& dl_device, const pybind11::object& copy) const;

 private:
  pybind11::array bits_;
};

}  // namespace elastic_rank::bind
