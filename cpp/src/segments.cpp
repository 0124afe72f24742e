#include "elastic_rank/segments.hpp"

#include <algorithm>
#include <cmath>

namespace elastic_rank {

Segments Segments::fit(std::span<double> values, std::int64_t n) {
  std::sort(values.begin(), values.end());
  const auto size = static_cast<std::int64_t>(values.size());
  std::vector<double> edges;
  for (std::int64_t i = 1; i < n; ++i) {
    // The value at the cut opens the upper segment, unless its equals begin at the very bottom:
    // then the cut moves above them, or nothing would lie below.
    const double cut = values[static_cast<std::size_t>(i * size / n)];
    const auto edge = cut > values.front() ? std::lower_bound(values.begin(), values.end(), cut)
                                           : std::upper_bound(values.begin(), values.end(), cut);
    if (edge != values.end() && (edges.empty() || *edge > edges.back())) edges.push_back(*edge);
  }
  return Segments(std::move(edges));
}

bool Segments::valid(std::span<const double> edges) noexcept {
  if (static_cast<std::int64_t>(edges.size()) >= kMost) return false;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (!std::isfinite(edges[i]) || (i != 0 && !(edges[i - 1] < edges[i]))) return false;
  }
  return true;
}

std::int32_t Segments::of(double value) const noexcept {
  if (std::isnan(value)) return -1;
  // Edges at or below the value; the select compiles to a conditional move.
  const double* base = edges_.data();
  std::size_t left = edges_.size();
  while (left > 1) {
    const std::size_t half = left / 2;
    base += base[half - 1] <= value ? half : 0;
    left -= half;
  }
  const std::int64_t below = base - edges_.data();
  return static_cast<std::int32_t>(below + (left == 1 && *base <= value));
}

}  // namespace elastic_rank
