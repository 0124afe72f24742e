#include "elastic_rank/topk.hpp"

#include <algorithm>
#include <numeric>

namespace elastic_rank {

Status topk_row(std::span<const float> scores, std::int64_t k, bool sort, std::int64_t* positions,
                float* values, std::int64_t* count, Scratch& scratch) noexcept {
  const auto n = static_cast<std::int64_t>(scores.size());
  *count = std::min(k, n);
  if (n == 0) return Status::ok;
  const std::span<std::int64_t> order = scratch.take<std::int64_t>(n);
  if (order.empty()) return Status::out_of_memory;
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&](std::int64_t a, std::int64_t b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    if ((x != x) != (y != y)) return y != y;
    return x > y || ((x == y || x != x) && a < b);
  };
  std::sort(order.begin(), order.end(), better);
  if (!sort) std::sort(order.begin(), order.begin() + *count);
  for (std::int64_t i = 0; i < *count; ++i) {
    positions[i] = order[static_cast<std::size_t>(i)];
    if (values) values[i] = scores[static_cast<std::size_t>(positions[i])];
  }
  return Status::ok;
}

}  // namespace elastic_rank
