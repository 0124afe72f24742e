#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "elastic_rank/workers.hpp"

using elastic_rank::Workers;

namespace {

struct Tally {
  explicit Tally(std::size_t n) : done(n), slots(n) {}
  std::vector<std::atomic<int>> done;
  std::vector<std::atomic<int>> slots;
};

void mark(void* context, std::int64_t task, int slot) noexcept {
  Tally& tally = *static_cast<Tally*>(context);
  tally.done[static_cast<std::size_t>(task)].fetch_add(1, std::memory_order_relaxed);
  tally.slots[static_cast<std::size_t>(task)].store(slot, std::memory_order_relaxed);
}

bool each_once(const Tally& tally, int size) {
  for (std::size_t i = 0; i < tally.done.size(); ++i) {
    if (tally.done[i].load() != 1) return false;
    if (tally.slots[i].load() < 0 || tally.slots[i].load() >= size) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("every task is done once, whatever the number of threads and tasks") {
  for (int threads : {1, 2, 4}) {
    Workers workers(threads);
    CHECK(workers.size() == threads);
    for (int round = 0; round < 200; ++round) {
      for (std::size_t tasks : {0u, 1u, 2u, 3u, 17u}) {
        Tally tally(tasks);
        workers.run(static_cast<std::int64_t>(tasks), mark, &tally);
        REQUIRE(each_once(tally, threads));
      }
    }
  }
}

TEST_CASE("callers that find the group busy do their own tasks") {
  Workers workers(2);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        Tally tally(9);
        workers.run(9, mark, &tally);
        if (!each_once(tally, workers.size())) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("a group that is never used, and one destroyed at once after use, end") {
  for (int i = 0; i < 100; ++i) {
    Workers workers(3);
    if (i % 2) {
      Tally tally(5);
      workers.run(5, mark, &tally);
      CHECK(each_once(tally, 3));
    }
  }
}

// ThreadSanitizer does not follow a multi-threaded process through fork.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a forked child, which has no helpers, still finishes its tasks and ends") {
  Workers workers(3);
  Tally before(5);
  workers.run(5, mark, &before);
  const pid_t child = ::fork();
  if (child == 0) {
    bool right = true;
    {
      Tally tally(50);
      workers.run(50, mark, &tally);
      right = each_once(tally, 3);
    }
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif
