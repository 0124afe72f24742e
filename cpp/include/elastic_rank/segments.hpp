#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace elastic_rank {

/// Classes of requests by a predicted value: ids 0 … size() - 1, the highest values last.
///
/// `edges` rise strictly; segment i holds the values in [edges[i - 1], edges[i]). Immutable, so any
/// number of threads may ask. A look-up halves the edges without a branch that depends on data.
class Segments {
 public:
  /// At most this many: a segment's id travels in one byte of a decision.
  static constexpr std::int64_t kMost = 256;

  /// Edges between quantiles of `values` (finite, any order, changed: sorted), at most n - 1.
  /// Equal values are one label: they never lie on both sides of an edge, so fewer segments than
  /// asked may come out, none of them empty. @pre 1 <= n <= kMost, values not empty.
  static Segments fit(std::span<double> values, std::int64_t n);

  /// @pre edges finite, strictly rising, fewer than kMost.
  explicit Segments(std::vector<double> edges) : edges_(std::move(edges)) {}

  static bool valid(std::span<const double> edges) noexcept;

  /// The segment of a value; −1 for NaN. Infinities are in the outer segments.
  std::int32_t of(double value) const noexcept;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(edges_.size()) + 1; }
  const std::vector<double>& edges() const noexcept { return edges_; }

 private:
  std::vector<double> edges_;
};

}  // namespace elastic_rank
