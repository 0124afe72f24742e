#include "tensor.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "errors.hpp"
#include "registrations.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

constexpr const char* kAllowed =
    "a numpy array, an object with __dlpack__ or a DLPack capsule, in host memory, of one or two "
    "dimensions";

// numpy's type numbers, part of its binary interface.
constexpr int kNumpyBool = 0;
constexpr int kNumpyUInt16 = 4;
constexpr int kNumpyInt32 = 5;
constexpr int kNumpyFloat32 = 11;
constexpr int kNumpyFloat64 = 12;
constexpr int kNumpyFloat16 = 23;

ElementType element_type(const py::dtype& dtype) {
  const char order = dtype.byteorder();
  if (order != '=' && order != '|') return ElementType::other;
  switch (dtype.num()) {
    case kNumpyBool: return ElementType::boolean;
    case kNumpyUInt16: return ElementType::uint16;
    case kNumpyInt32: return ElementType::int32;
    case kNumpyFloat32: return ElementType::float32;
    case kNumpyFloat64: return ElementType::float64;
    case kNumpyFloat16: return ElementType::float16;
    default: return ElementType::other;
  }
}

ElementType element_type(dlpack::DataType type) noexcept {
  if (type.lanes != 1) return ElementType::other;
  switch (type.code << 8 | type.bits) {
    case dlpack::kFloat << 8 | 32: return ElementType::float32;
    case dlpack::kFloat << 8 | 64: return ElementType::float64;
    case dlpack::kFloat << 8 | 16: return ElementType::float16;
    case dlpack::kBfloat << 8 | 16: return ElementType::bfloat16;
    case dlpack::kInt << 8 | 32: return ElementType::int32;
    case dlpack::kUInt << 8 | 16: return ElementType::uint16;
    case dlpack::kBool << 8 | 8: return ElementType::boolean;
    default: return ElementType::other;
  }
}

std::string type_of(py::handle value) {
  return py::str(py::type::handle_of(value).attr("__name__")).cast<std::string>();
}

void check_ndim(int ndim, const char* argument) {
  if (ndim != 1 && ndim != 2) {
    raise_value(argument, std::to_string(ndim) + " dimensions", "one or two dimensions");
  }
}

TensorView numpy_view(py::handle value, const char* argument) {
  const auto array = py::reinterpret_borrow<py::array>(value);
  // A subclass that hides elements would be read with them: its mask has an argument of its own.
  if (!py::type::handle_of(value).is(
          py::handle(reinterpret_cast<PyObject*>(py::detail::npy_api::get().PyArray_Type_))) &&
      py::hasattr(value, "filled")) {
    raise_type(argument, "a masked array", "an array without a mask of its own, and `mask`");
  }
  check_ndim(static_cast<int>(array.ndim()), argument);
  TensorView view;
  view.data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  view.ndim = static_cast<int>(array.ndim());
  for (int i = 0; i < view.ndim; ++i) {
    view.shape[i] = array.shape(i);
    view.strides[i] = array.strides(i);
  }
  const py::dtype dtype = array.dtype();
  view.type = element_type(dtype);
  view.dtype = dtype;  // kept alive by the array
  return view;
}

void read(const dlpack::Tensor& tensor, const char* argument, TensorView* view) {
  if (tensor.device.type != dlpack::kCpu && tensor.device.type != dlpack::kCudaHost) {
    raise_value(argument, "device type " + std::to_string(tensor.device.type), "host memory");
  }
  check_ndim(tensor.ndim, argument);
  view->data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  view->ndim = tensor.ndim;
  view->dlpack_type = tensor.dtype;
  view->type = element_type(tensor.dtype);
  std::int64_t stride = tensor.dtype.bits / 8;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    view->shape[i] = tensor.shape[i];
    view->strides[i] =
        tensor.strides != nullptr ? tensor.strides[i] * (tensor.dtype.bits / 8) : stride;
    stride *= tensor.shape[i];
  }
}

/// Takes a capsule's memory over: checked first, so that a refused capsule stays usable.
TensorView capsule_view(PyObject* capsule, const char* argument) {
  TensorView view;
  if (PyCapsule_IsValid(capsule, dlpack::kVersionedName) != 0) {
    auto* managed = static_cast<dlpack::ManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule, dlpack::kVersionedName));
    if (managed->version.major != dlpack::kVersion.major) {
      raise_value(argument, "DLPack version " + std::to_string(managed->version.major), "1");
    }
    read(managed->tensor, argument, &view);
    PyCapsule_SetName(capsule, dlpack::kVersionedUsedName);
    return TensorView{view.data,
                      view.ndim,
                      {view.shape[0], view.shape[1]},
                      {view.strides[0], view.strides[1]},
                      view.type,
                      {},
                      view.dlpack_type,
                      DlpackOwner(managed)};
  }
  if (PyCapsule_IsValid(capsule, dlpack::kName) != 0) {
    auto* managed =
        static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule, dlpack::kName));
    read(managed->tensor, argument, &view);
    PyCapsule_SetName(capsule, dlpack::kUsedName);
    return TensorView{view.data,
                      view.ndim,
                      {view.shape[0], view.shape[1]},
                      {view.strides[0], view.strides[1]},
                      view.type,
                      {},
                      view.dlpack_type,
                      DlpackOwner(managed)};
  }
  const char* name = PyCapsule_GetName(capsule);
  raise_type(argument, std::string("a capsule named ") + (name == nullptr ? "NULL" : name),
             "a DLPack capsule that nobody has used yet");
}

/// Asks a producer for its memory, in the versioned form if it knows that.
py::object request_capsule(py::handle value, const char* argument) {
  const auto device = value.attr("__dlpack_device__")().cast<std::pair<int, int>>();
  if (device.first != dlpack::kCpu && device.first != dlpack::kCudaHost) {
    raise_value(argument, "device type " + std::to_string(device.first), "host memory");
  }
  const py::object export_method = value.attr("__dlpack__");
  try {
    return export_method(py::arg("max_version") =
                             py::make_tuple(dlpack::kVersion.major, dlpack::kVersion.minor));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return export_method();
}

/// What an exported tensor keeps alive: the array, and the shape that DLPack points to.
template <class Managed>
struct Exported {
  Managed managed;
  py::array bits;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

template <class Managed>
void release_exported(Managed* managed) {
  // Consumers release from any thread, also after the interpreter's end: then memory is left alone.
  if (Py_IsInitialized() == 0) return;
  const py::gil_scoped_acquire gil;
  delete static_cast<Exported<Managed>*>(managed->context);
}

template <class Managed>
void release_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;  // used: its consumer releases it
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class Managed>
py::object export_capsule(const py::array& bits, const char* name, PyCapsule_Destructor destructor,
                          std::uint64_t flags) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->bits = bits;
  for (py::ssize_t i = 0; i < bits.ndim(); ++i) {
    exported->shape.push_back(bits.shape(i));
    exported->strides.push_back(bits.strides(i) / bits.itemsize());
  }
  Managed& managed = exported->managed;
  managed.tensor = {const_cast<void*>(bits.data()),
                    {dlpack::kCpu, 0},
                    static_cast<std::int32_t>(bits.ndim()),
                    {dlpack::kBfloat, 16, 1},
                    exported->shape.data(),
                    exported->strides.data(),
                    0};
  managed.context = exported.get();
  managed.deleter = &release_exported<Managed>;
  if constexpr (std::is_same_v<Managed, dlpack::ManagedTensorVersioned>) {
    managed.version = dlpack::kVersion;
    managed.flags = flags;
  }
  PyObject* capsule = PyCapsule_New(&managed, name, destructor);
  if (capsule == nullptr) throw py::error_already_set();
  exported.release();  // owned by the capsule, then by whoever uses it
  return py::reinterpret_steal<py::object>(capsule);
}

}  // namespace

DlpackOwner::DlpackOwner(DlpackOwner&& other) noexcept
    : plain_(std::exchange(other.plain_, nullptr)),
      versioned_(std::exchange(other.versioned_, nullptr)) {}

DlpackOwner::~DlpackOwner() {
  if (plain_ != nullptr && plain_->deleter != nullptr) plain_->deleter(plain_);
  if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
}

std::string TensorView::type_name() const {
  if (!from_dlpack()) return py::str(dtype).cast<std::string>();
  return "DLPack type code " + std::to_string(dlpack_type.code) + ", " +
         std::to_string(dlpack_type.bits) + " bits, " + std::to_string(dlpack_type.lanes) +
         " lanes";
}

std::string TensorView::shape_name() const {
  if (ndim == 1) return "(" + std::to_string(shape[0]) + ",)";
  return "(" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + ")";
}

std::pair<const std::byte*, const std::byte*> TensorView::extent(
    std::int64_t element_size) const noexcept {
  if (shape[0] == 0 || shape[1] == 0) return {data, data};
  const std::byte* first = data;
  const std::byte* last = data + element_size;
  for (int i = 0; i < ndim; ++i) {
    const std::int64_t reach = (shape[i] - 1) * strides[i];
    (reach < 0 ? first : last) += reach;
  }
  return {first, last};
}

TensorView tensor_view(py::handle value, const char* argument) {
  if (py::isinstance<py::array>(value)) return numpy_view(value, argument);
  if (PyCapsule_CheckExact(value.ptr()) != 0) return capsule_view(value.ptr(), argument);
  if (py::hasattr(value, "__dlpack__") && py::hasattr(value, "__dlpack_device__")) {
    const py::object capsule = request_capsule(value, argument);
    if (PyCapsule_CheckExact(capsule.ptr()) == 0) {
      raise_type(argument, "__dlpack__ that returned " + type_of(capsule), kAllowed);
    }
    return capsule_view(capsule.ptr(), argument);
  }
  raise_type(argument, type_of(value), kAllowed);
}

py::tuple Tensor::shape() const {
  return bits_.attr("shape");
}

py::object Tensor::dlpack(const py::object& stream, const py::object& max_version,
                          const py::object& dl_device, const py::object& copy) const {
  if (!stream.is_none()) raise_value("stream", py::repr(stream), "None, as for all host memory");
  if (!dl_device.is_none() && dl_device.cast<std::pair<int, int>>() != std::pair(1, 0)) {
    throw py::buffer_error("dl_device: got " + py::repr(dl_device).cast<std::string>() +
                           "; allowed: (1, 0), host memory");
  }
  const bool copied = !copy.is_none() && copy.cast<bool>();
  const py::array bits = copied ? py::array(bits_.attr("copy")()) : bits_;
  const bool versioned =
      !max_version.is_none() && max_version[py::int_(0)].cast<std::uint32_t>() >= 1;
  if (versioned) {
    const std::uint64_t flags =
        (copied ? dlpack::kCopied : 0) | (bits.writeable() ? 0 : dlpack::kReadOnly);
    return export_capsule<dlpack::ManagedTensorVersioned>(
        bits, dlpack::kVersionedName,
        [](PyObject* capsule) {
          release_capsule<dlpack::ManagedTensorVersioned>(capsule, dlpack::kVersionedName);
        },
        flags);
  }
  if (!bits.writeable()) {
    throw py::buffer_error("the unversioned DLPack form cannot say that an array is read-only");
  }
  return export_capsule<dlpack::ManagedTensor>(
      bits, dlpack::kName,
      [](PyObject* capsule) { release_capsule<dlpack::ManagedTensor>(capsule, dlpack::kName); }, 0);
}

void register_tensor(py::module_& module) {
  py::class_<Tensor>(module, "Tensor", py::is_final(),
                     "A bfloat16 array that other libraries take over through DLPack.")
      .def_property_readonly("shape", &Tensor::shape)
      .def_property_readonly("bits", &Tensor::bits)
      .def("__dlpack__", &Tensor::dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__", [](const Tensor&) { return std::pair(1, 0); });
}

}  // namespace elastic_rank::bind
