#include "elastic_rank/dot.hpp"

#include <algorithm>

#include "elastic_rank/isa.hpp"
#include "simd/dot_kernels.hpp"

namespace elastic_rank {

DotKernel dot_kernel() noexcept {
  switch (active_isa()) {
    case Isa::avx512: return avx512::dot_rows;
    case Isa::avx2: return avx2::dot_rows;
    case Isa::portable: break;
  }
  return portable::dot_rows;
}

Status Dot::score(const ScoreTask& task, Scratch&) const noexcept {
  const DotKernel kernel = dot_kernel();
  const auto total = static_cast<std::int64_t>(task.ids.size());
  for (std::int64_t r = 0; r < task.query.rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(r);
    const std::int64_t begin = task.offsets[at] - task.offsets[0];
    const std::int64_t end = task.offsets[at + 1] - task.offsets[0];
    if (begin == end) continue;
    kernel({.query = task.query.row(r),
            .width = table_.cols,
            .table = table_.data,
            .row_stride = table_.row_stride,
            .ids = task.ids.data() + begin,
            .n = end - begin,
            .n_ahead = total - end,
            .n_fetched = begin == 0 ? 0 : kDotAhead,
            .scores = task.scores.data() + begin});
  }
  return Status::ok;
}

}  // namespace elastic_rank
