#include "elastic_rank/workers.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>

namespace elastic_rank {
namespace {

constexpr std::uint64_t kTaskMask = 0xffffffffu;
constexpr std::uint64_t kGeneration = 1ull << 32;
// No task left in this generation: what a fresh group starts with and a finished call leaves.
constexpr std::uint64_t kExhausted = kTaskMask;

}  // namespace

Workers::Workers(int threads) : ticket_(kExhausted), owner_pid_(::getpid()) {
  for (int slot = 1; slot < std::max(threads, 1); ++slot) {
    helpers_.emplace_back([this, slot] { help(slot); });
  }
}

Workers::~Workers() {
  if (::getpid() != owner_pid_) {
    // A forked child: the helpers live in the parent only. Joining would wait for ever, so their
    // handles are given up without being destroyed (a joinable handle's destructor terminates).
    new std::vector<std::thread>(std::move(helpers_));
    return;
  }
  // Order: stop_ before ticket_'s change, which wakes the helpers; they read stop_ after it.
  stop_.store(true, std::memory_order_release);  // pairs with the acquire in help()
  ticket_.fetch_add(kGeneration, std::memory_order_release);
  ticket_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Workers::run(std::int64_t tasks, Task task, void* context) noexcept {
  const bool alone =
      helpers_.empty() || tasks < 2 ||
      busy_.exchange(true, std::memory_order_acquire);  // pairs with the release below
  if (alone) {
    for (std::int64_t i = 0; i < tasks; ++i) task(context, i, 0);
    return;
  }
  tasks_.store(tasks, std::memory_order_relaxed);
  task_.store(task, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  const std::uint64_t generation =
      (ticket_.load(std::memory_order_relaxed) & ~kTaskMask) + kGeneration;
  ticket_.store(generation, std::memory_order_release);  // publishes the four fields above
  ticket_.notify_all();
  work(generation, 0);
  // Only tasks that a helper has claimed are waited for. Acquire pairs with the release in work().
  for (std::int64_t done = finished_.load(std::memory_order_acquire); done != tasks;
       done = finished_.load(std::memory_order_acquire)) {
    finished_.wait(done, std::memory_order_acquire);
  }
  ticket_.store(generation | kExhausted, std::memory_order_release);
  busy_.store(false, std::memory_order_release);  // pairs with the exchange above
}

void Workers::work(std::uint64_t ticket, int slot) noexcept {
  const std::uint64_t generation = ticket & ~kTaskMask;
  while ((ticket & ~kTaskMask) == generation) {
    // Read before the claim: if it succeeds, the generation has not ended in between, so these
    // belong to it; if it fails, they are not used.
    const std::int64_t tasks = tasks_.load(std::memory_order_relaxed);
    const Task task = task_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const auto next = static_cast<std::int64_t>(ticket & kTaskMask);
    if (next >= tasks) return;
    // Acquire on failure too: the next round's reads of the fields follow this load.
    if (!ticket_.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      continue;
    }
    task(context, next, slot);
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == tasks) finished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void Workers::help(int slot) noexcept {
  for (;;) {
    // Loaded before stop_: if stop comes after the check, the ticket has changed by the wait.
    const std::uint64_t seen = ticket_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;  // pairs with ~Workers
    work(seen, slot);
    ticket_.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace elastic_rank
