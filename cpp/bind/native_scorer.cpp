#include "elastic_rank/native_scorer.hpp"

#include "errors.hpp"
#include "registrations.hpp"
#include "scorer.hpp"
#include "signature.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

constexpr const char* kAllowedKinds =
    "a PyCapsule named with its signature, a scipy.LowLevelCallable or a numba cfunc";
constexpr const char* kAllowedSignatures =
    "'void (const float* rows, int64_t n, int64_t dim, float* out, void* user)' or "
    "'float (const float* row, int64_t dim, void* user)'";
constexpr const char* kBatchSignature = "void(float*,int64,int64,float*,void*)";
constexpr const char* kRowSignature = "float(float*,int64,void*)";

struct Callback {
  void* address = nullptr;
  std::string signature;
  void* user = nullptr;
};

Callback from_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (name == nullptr) raise_value("function", "a PyCapsule without a name", kAllowedSignatures);
  Callback callback{PyCapsule_GetPointer(capsule, name), name, PyCapsule_GetContext(capsule)};
  if (callback.address == nullptr || PyErr_Occurred() != nullptr) throw py::error_already_set();
  return callback;
}

Callback resolve(const py::object& function) {
  if (PyCapsule_CheckExact(function.ptr())) return from_capsule(function.ptr());
  // A LowLevelCallable is a tuple whose first element is the capsule; it refuses to be indexed.
  if (PyTuple_Check(function.ptr()) && PyTuple_GET_SIZE(function.ptr()) > 0 &&
      PyCapsule_CheckExact(PyTuple_GET_ITEM(function.ptr(), 0))) {
    return from_capsule(PyTuple_GET_ITEM(function.ptr(), 0));
  }
  // numba offers address and native_name; its signature, unless it hides it, says what is behind.
  if (py::hasattr(function, "address") && py::hasattr(function, "native_name") &&
      py::hasattr(function, "_sig")) {
    const py::object address = function.attr("address");
    void* pointer = PyLong_AsVoidPtr(address.ptr());
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    return {pointer, py::str(function.attr("_sig")).cast<std::string>(), nullptr};
  }
  raise_type("function", py::str(py::type::of(function).attr("__name__")).cast<std::string>(),
             kAllowedKinds);
}

void* user_address(const py::object& user, void* own) {
  if (user.is_none()) return own;
  if (!PyLong_Check(user.ptr()) || PyBool_Check(user.ptr())) {
    raise_type("user", py::str(py::type::of(user).attr("__name__")).cast<std::string>(),
               "an address as an integer, or None");
  }
  void* address = PyLong_AsVoidPtr(user.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise_value("user", py::str(user).cast<std::string>(), "an address");
  }
  if (own != nullptr) {
    raise_value("user", "an address beside the callable's own user_data", "one of the two");
  }
  return address;
}

std::shared_ptr<Bound<NativeScorer>> make_native(const py::object& function,
                                                 const py::object& item_features,
                                                 const py::object& user) {
  const Callback callback = resolve(function);
  const std::string signature = canonical_signature(callback.signature);
  const MatrixView<const float> items = matrix_view(item_features, "item_features");
  void* address = user_address(user, callback.user);
  const py::object keep = py::make_tuple(function, item_features);
  if (signature == kBatchSignature) {
    return std::make_shared<Bound<NativeScorer>>(
        keep, reinterpret_cast<BatchScoreFn>(callback.address), items, address);
  }
  if (signature == kRowSignature) {
    return std::make_shared<Bound<NativeScorer>>(
        keep, reinterpret_cast<RowScoreFn>(callback.address), items, address);
  }
  raise_value("function", "signature '" + callback.signature + "'", kAllowedSignatures);
}

}  // namespace

void register_native_scorer(py::module_& module) {
  py::class_<Bound<NativeScorer>, Scorer, std::shared_ptr<Bound<NativeScorer>>>(
      module, "NativeScorer", py::is_final(),
      "A compiled function over [query | item] rows, called with no GIL.")
      .def(py::init(&make_native), py::arg("function"), py::arg("item_features"),
           py::arg("user") = py::none());
}

}  // namespace elastic_rank::bind
