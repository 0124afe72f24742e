#include "mlp_kernels.hpp"

namespace elastic_rank::portable {
namespace {

/// One row, 16 columns: as many sums as half the baseline's registers hold.
void unit(const DenseArgs& args, std::int64_t row, std::int64_t column, const float* weight,
          std::int64_t weight_stride) noexcept {
  const float* x = args.rows[row];
  const float* init = args.init[row] + column;
  float sum[kDenseUnit];
  for (std::int64_t c = 0; c < kDenseUnit; ++c) sum[c] = init[c];
  for (std::int64_t k = 0; k < args.in; ++k, weight += weight_stride) {
    for (std::int64_t c = 0; c < kDenseUnit; ++c) sum[c] += x[k] * weight[c];
  }
  float* out = args.out + row * args.out_stride + column;
  // Written so that a NaN sum, which compares false, stays NaN.
  for (std::int64_t c = 0; c < kDenseUnit; ++c) out[c] = args.floor > sum[c] ? args.floor : sum[c];
}

}  // namespace

void dense_rows(const DenseArgs& args) noexcept {
  for (std::int64_t column = 0; column < args.out_padded; column += kDenseUnit) {
    const std::int64_t first = column - column % kDensePanel;
    const std::int64_t width = args.out_padded - first;
    const std::int64_t stride = width < kDensePanel ? width : kDensePanel;
    const float* weight = args.weight + first * args.in + (column - first);
    for (std::int64_t row = 0; row < args.n; ++row) unit(args, row, column, weight, stride);
  }
}

}  // namespace elastic_rank::portable
