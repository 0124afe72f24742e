// The unit U: one uncontended atomic read-modify-write, the cost floor of anything shared between
// threads. Loaded with ctypes, so that it is measured in the process that measures the rest.
#include <atomic>
#include <chrono>
#include <cstdint>

extern "C" double fetch_add_ns(std::int64_t n) {
  alignas(64) static std::atomic<std::uint64_t> counter{0};
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < n; ++i) counter.fetch_add(1, std::memory_order_seq_cst);
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - begin).count() / static_cast<double>(n);
}
