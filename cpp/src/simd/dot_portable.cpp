#include "dot_kernels.hpp"

namespace elastic_rank::portable {
namespace {

constexpr std::int64_t kLanes = 16;

float dot(const float* a, const float* b, std::int64_t width) noexcept {
  float lane[kLanes] = {};
  std::int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lane[l] += a[c + l] * b[c + l];
  }
  for (std::int64_t l = 0; c + l < width; ++l) lane[l] += a[c + l] * b[c + l];
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  }
  return lane[0] == lane[0] ? lane[0] : __builtin_nanf("");
}

}  // namespace

void dot_rows(const DotArgs& args) noexcept {
  for (std::int64_t i = 0; i < args.n; ++i) {
    const std::int64_t row = args.ids ? args.ids[i] : i;
    args.scores[i] = dot(args.query, args.table + row * args.row_stride, args.width);
  }
}

}  // namespace elastic_rank::portable
