#include "errors.hpp"

#include "registrations.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

py::object exception_type(const char* name) {
  return py::module_::import("elastic_rank._native").attr(name);
}

/// The Python exception behind a scorer's failure, or None.
py::object cause_of(const RankFailure& failure) {
  if (!failure.exception) return py::none();
  try {
    std::rethrow_exception(failure.exception);
  } catch (const py::error_already_set& error) {
    return error.value();
  } catch (const py::builtin_exception& error) {  // ours, about the scorer's result
    error.set_error();
    return py::error_already_set().value();
  } catch (const std::exception& error) {
    return py::module_::import("builtins").attr("RuntimeError")(error.what());
  }
}

}  // namespace

void raise_value(const std::string& argument, const std::string& got, const std::string& allowed) {
  throw py::value_error(argument + ": got " + got + "; allowed: " + allowed);
}

void raise_type(const std::string& argument, const std::string& got, const std::string& allowed) {
  throw py::type_error(argument + ": got " + got + "; allowed: " + allowed);
}

void check(Status status, const char* call) {
  switch (status) {
    case Status::ok: return;
    case Status::out_of_memory: throw std::bad_alloc();
    case Status::invalid_argument:
    case Status::scorer_failed: break;
  }
  throw py::value_error(std::string(call) + ": " + to_string(status));
}

void raise_scorer_error(const std::string& stage, const RankFailure& failure) {
  const py::object cause = cause_of(failure);
  // An interrupt or an exit is addressed to the whole program, not to the caller of a scorer.
  if (!cause.is_none() && PyErr_GivenExceptionMatches(cause.ptr(), PyExc_Exception) == 0) {
    PyErr_SetObject(py::type::of(cause).ptr(), cause.ptr());
    throw py::error_already_set();
  }
  py::array_t<std::int64_t> requests(failure.n_requests);
  for (std::int64_t i = 0; i < failure.n_requests; ++i) {
    requests.mutable_at(i) = failure.first_request + i;
  }
  std::string what = "stage '" + stage + "': the scorer failed";
  if (!cause.is_none()) {
    what += " with " + py::str(py::type::of(cause).attr("__name__")).cast<std::string>() + ": " +
            py::str(cause).cast<std::string>();
  }
  const py::object type = exception_type("ScorerError");
  const py::object error = type(what);
  error.attr("stage") = stage;
  error.attr("requests") = requests;
  if (!cause.is_none()) error.attr("__cause__") = cause;
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

void register_errors(py::module_& module) {
  // Made here, at the bottom, so that native code can raise them; Python's tree builds on them.
  const auto add = [&module](const char* name, const char* doc, PyObject* parent) {
    const std::string qualified = std::string("elastic_rank.") + name;
    PyObject* type = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, parent, nullptr);
    if (type == nullptr) throw py::error_already_set();
    module.attr(name) = py::reinterpret_steal<py::object>(type);
  };
  add("Error",
      "Base of the states that elastic_rank reports; arguments raise ValueError/TypeError.",
      PyExc_Exception);
  add("ScorerError",
      "A user's scorer raised or returned a wrong length.\n\n"
      "Attributes: `stage` (its name), `requests` (int64 positions in the batch).\n"
      "The scorer's own exception is the cause.",
      py::object(module.attr("Error")).ptr());
}

}  // namespace elastic_rank::bind
