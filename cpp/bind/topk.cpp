#include "elastic_rank/topk.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "errors.hpp"
#include "registrations.hpp"
#include "scorer.hpp"
#include "tensor.hpp"
#include "topk_arguments.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {
namespace {

// Below this many elements (some ten microseconds) letting the GIL go and taking it back, which may
// mean waiting for another thread's time slice, costs more than it gives.
constexpr std::int64_t kHoldGilBelow = 1 << 16;
// A workspace that one huge row blew up is not kept.
constexpr std::size_t kKeepBytes = std::size_t{64} << 20;

/// Working memory of one call in flight.
struct Workspace {
  Scratch arguments;
  std::unique_ptr<Scratch[]> parts;
  std::size_t n_parts = 0;

  std::span<Scratch> take_parts(std::size_t n) {
    if (n > n_parts) {
      parts = std::make_unique<Scratch[]>(n);
      n_parts = n;
    }
    return {parts.get(), n};
  }
  std::size_t settle() noexcept {
    std::size_t bytes = arguments.capacity();
    arguments.reset();
    for (std::size_t i = 0; i < n_parts; ++i) {
      bytes += parts[i].capacity();
      parts[i].reset();
    }
    return bytes;
  }
};

/// What `topk` keeps between calls, one an interpreter: owned by the function object.
class Selector {
 public:
  Selector() = default;
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;
  ~Selector() {
    for (auto& place : idle_) delete place.load(std::memory_order_acquire);
  }

  /// Taken by exchange and put back by exchange: concurrent calls never wait for one another.
  std::unique_ptr<Workspace> borrow() {
    for (auto& place : idle_) {
      // Acquire pairs with the release in `give_back`: what the last user wrote is visible.
      if (Workspace* found = place.exchange(nullptr, std::memory_order_acquire)) {
        return std::unique_ptr<Workspace>(found);
      }
    }
    return std::make_unique<Workspace>();
  }
  void give_back(std::unique_ptr<Workspace> workspace) noexcept {
    if (workspace->settle() > kKeepBytes) return;
    for (auto& place : idle_) {
      Workspace* empty = nullptr;
      if (place.compare_exchange_strong(empty, workspace.get(), std::memory_order_release,
                                        std::memory_order_relaxed)) {
        workspace.release();
        return;
      }
    }
  }

  /// The helpers, as many as the largest call so far asked for. A call that is still running on the
  /// group before keeps it alive.
  std::shared_ptr<Workers> workers(int threads) {
    const std::lock_guard lock(growing_);
    if (!workers_ || workers_->size() < threads) workers_ = std::make_shared<Workers>(threads);
    return workers_;
  }

 private:
  std::array<std::atomic<Workspace*>, 8> idle_{};
  std::mutex growing_;
  std::shared_ptr<Workers> workers_;
};

/// A workspace for the length of a call.
class Loan {
 public:
  explicit Loan(Selector& selector) : selector_(selector), workspace_(selector.borrow()) {}
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() { selector_.give_back(std::move(workspace_)); }
  Workspace& operator*() const noexcept { return *workspace_; }

 private:
  Selector& selector_;
  std::unique_ptr<Workspace> workspace_;
};

std::int64_t work(const TopKProblem& problem, std::int64_t k_max) noexcept {
  const std::int64_t elements = problem.input.offsets != nullptr
                                    ? problem.scores.shape[0]
                                    : problem.input.rows * problem.input.cols;
  return elements + 16 * problem.input.rows * std::min<std::int64_t>(k_max, 1 << 20);
}

void select(Selector& selector, Workspace& workspace, const TopKProblem& problem,
            const TopKOutput& output) {
  const std::span<Scratch> parts = workspace.take_parts(static_cast<std::size_t>(problem.threads));
  const std::shared_ptr<Workers> workers =
      problem.threads > 1 ? selector.workers(problem.threads) : nullptr;
  std::optional<py::gil_scoped_release> released;
  if (work(problem, output.k_max) > kHoldGilBelow) released.emplace();
  const Status status = topk(problem.input, output, problem.sort, workers.get(), parts);
  released.reset();
  check(status, "topk");
}

py::object run(Selector& selector, const TopKArguments& arguments) {
  const Loan loan(selector);
  const TopKProblem problem = read_problem(arguments, (*loan).arguments);
  const TopKArrays arrays =
      arguments.out == Py_None ? new_arrays(problem) : given_arrays(arguments.out, problem);
  select(selector, *loan, problem, arrays.output);
  return py::make_tuple(arrays.values, arrays.indices, arrays.counts);
}

constexpr const char* kSelectorName = "elastic_rank.Selector";

/// The Python entry, written by hand: through a generic dispatcher the arguments alone would cost
/// as much as selecting from a thousand scores.
PyObject* topk_entry(PyObject* self, PyObject* const* args, Py_ssize_t n_args,
                     PyObject* names) noexcept {
  try {
    TopKArguments arguments;
    if (!read_arguments(args, n_args, names, &arguments)) return nullptr;
    auto* selector = static_cast<Selector*>(PyCapsule_GetPointer(self, kSelectorName));
    return run(*selector, arguments).release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyMethodDef topk_method = {
    "topk", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&topk_entry)),
    METH_FASTCALL | METH_KEYWORDS,
    "topk(scores, k, *, offsets=None, mask=None, sort=True, dtype=None, out=None, threads=1)\n"
    "--\n\n"
    "Values, indices and counts of each row's k largest."};

}  // namespace

void register_topk(py::module_& module) {
  const py::capsule selector(new Selector, kSelectorName,
                             [](void* state) { delete static_cast<Selector*>(state); });
  PyObject* name = PyModule_GetNameObject(module.ptr());
  if (name == nullptr) throw py::error_already_set();
  const auto owned_name = py::reinterpret_steal<py::object>(name);
  PyObject* function = PyCFunction_NewEx(&topk_method, selector.ptr(), owned_name.ptr());
  if (function == nullptr) throw py::error_already_set();
  module.attr("topk") = py::reinterpret_steal<py::object>(function);
}

}  // namespace elastic_rank::bind
