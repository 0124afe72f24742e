#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace elastic_rank {

/// A fixed group of threads that help a caller through a numbered list of tasks.
///
/// The caller works too and waits only for tasks already begun, never for a thread to wake, so a
/// call is correct with any number of helpers alive, none included: that covers a child after
/// `fork`, whose helpers do not exist. A second caller who finds the group busy does its tasks
/// alone: nobody queues. Nothing is spawned and nothing allocated a call.
class Workers {
 public:
  /// Does task `task` in 0..tasks-1; `slot` in 0..size()-1 names the thread, for its scratch.
  using Task = void (*)(void* context, std::int64_t task, int slot) noexcept;

  /// @param threads threads that work in a call, the caller included; at least 1.
  explicit Workers(int threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  int size() const noexcept { return static_cast<int>(helpers_.size()) + 1; }

  /// Returns when all tasks are done; what they wrote is visible to the caller.
  /// Thread-safe. At most 2^31 - 1 tasks.
  void run(std::int64_t tasks, Task task, void* context) noexcept;

 private:
  void help(int slot) noexcept;
  void work(std::uint64_t ticket, int slot) noexcept;

  // One word holds (generation << 32 | next task): claiming a task is a compare-exchange on it, so
  // a helper that slept through a whole call cannot claim a task of the next by mistake.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::int64_t> finished_{0};
  alignas(64) std::atomic<std::int64_t> tasks_{0};
  std::atomic<Task> task_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<bool> busy_{false};
  std::atomic<bool> stop_{false};
  pid_t owner_pid_;
  std::vector<std::thread> helpers_;
};

}  // namespace elastic_rank
