#include "elastic_rank/topk.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>

#include "floating_point.hpp"
#include "simd/topk_kernels.hpp"
#include "topk_row.hpp"

namespace elastic_rank {
namespace {

// Cost of a row in elements read, beside its length: calls, and places written.
constexpr std::int64_t kRowCost = 512;
constexpr std::int64_t kPlaceCost = 16;

std::int64_t places(const TopKInput& input, std::int64_t r) noexcept {
  return input.k != nullptr ? input.k[r] : input.k_all;
}

std::int64_t cost(const TopKInput& input, std::int64_t r) noexcept {
  const std::int64_t n =
      input.offsets != nullptr ? input.offsets[r + 1] - input.offsets[r] : input.cols;
  return kRowCost + n + kPlaceCost * std::min(places(input, r), n);
}

template <class T>
void copy_values(const TopKRow& row, const std::int64_t* positions, std::int64_t count,
                 std::byte* to) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    // Bytes, not values: a signalling NaN must not turn quiet on its way, a view may be unaligned.
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)),
                row.scores + positions[i] * row.stride, sizeof(T));
  }
}

template <class T>
void pad_values(T padding, std::int64_t n, std::byte* to) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)), &padding, sizeof(T));
  }
}

/// Row r's outputs, from the `count` positions that already stand in its indices.
void finish_row(const TopKRow& row, const TopKOutput& output, std::int64_t r,
                std::int64_t count) noexcept {
  std::int64_t* indices = output.indices + r * output.k_max;
  const std::int64_t missing = output.k_max - count;
  std::fill_n(indices + count, missing, -1);
  output.counts[r] = static_cast<std::int32_t>(count);
  const std::int64_t size = size_of(row.dtype);
  std::byte* values = static_cast<std::byte*>(output.values) + r * output.k_max * size;
  std::byte* rest = values + count * size;
  switch (row.dtype) {
    case DType::float32:
      copy_values<float>(row, indices, count, values);
      return pad_values(std::numeric_limits<float>::quiet_NaN(), missing, rest);
    case DType::float64:
      copy_values<double>(row, indices, count, values);
      return pad_values(std::numeric_limits<double>::quiet_NaN(), missing, rest);
    case DType::int32:
      copy_values<std::int32_t>(row, indices, count, values);
      return pad_values(std::numeric_limits<std::int32_t>::lowest(), missing, rest);
    case DType::float16:
      copy_values<std::uint16_t>(row, indices, count, values);
      return pad_values(std::uint16_t{0x7e00}, missing, rest);
    case DType::bfloat16:
      copy_values<std::uint16_t>(row, indices, count, values);
      return pad_values(std::uint16_t{0x7fc0}, missing, rest);
  }
}

/// One call, shared by its threads.
struct Call {
  const TopKInput& input;
  const TopKOutput& output;
  bool sort;
  const topk_kernels::Kernels& kernels;
  std::span<Scratch> scratch;
  std::int64_t parts;
  std::int64_t total_cost;
  std::atomic<bool> failed{false};
};

void rank_rows(Call& call, std::int64_t begin, std::int64_t end, Scratch& scratch) noexcept {
  const DefaultFloatingPoint floating_point;
  for (std::int64_t r = begin; r < end; ++r) {
    const TopKRow row = row_of(call.input, r);
    std::int64_t count = 0;
    const Status status = select_row(row, places(call.input, r), call.sort, call.kernels,
                                     call.output.indices + r * call.output.k_max, &count, scratch);
    if (status != Status::ok) {
      // Relaxed: read after `Workers::run`, whose return orders all that the tasks wrote.
      call.failed.store(true, std::memory_order_relaxed);
      return;
    }
    finish_row(row, call.output, r, count);
  }
}

/// Part p of the rows: neighbours that make up its share of the cost, so that ragged rows balance.
void rank_part(void* context, std::int64_t part, int) noexcept {
  Call& call = *static_cast<Call*>(context);
  const double share = static_cast<double>(call.total_cost) / static_cast<double>(call.parts);
  const auto from = static_cast<std::int64_t>(share * static_cast<double>(part));
  const auto to = part + 1 == call.parts
                      ? call.total_cost
                      : static_cast<std::int64_t>(share * static_cast<double>(part + 1));
  std::int64_t begin = 0, end = 0, spent = 0;
  // A row belongs to the part in whose share it begins.
  for (std::int64_t r = 0; r < call.input.rows && spent < to; ++r) {
    if (spent < from) begin = r + 1;
    end = r + 1;
    spent += cost(call.input, r);
  }
  if (begin < end) rank_rows(call, begin, end, call.scratch[static_cast<std::size_t>(part)]);
}

/// Whether a ranks before b: larger first, NaN last, equal ones by position.
bool ranks_before(double a, std::int64_t a_at, double b, std::int64_t b_at) noexcept {
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a != b) return a > b;  // -0 == +0 here as everywhere
  return a_at < b_at;
}

/// Any element exactly: double holds the other four types.
double as_double(const TopKRow& row, std::int64_t i) noexcept {
  const std::byte* at = row.scores + i * row.stride;
  float narrow = 0;
  double wide = 0;
  std::int32_t integer = 0;
  std::uint16_t bits = 0;
  switch (row.dtype) {
    case DType::float32: std::memcpy(&narrow, at, sizeof narrow); return narrow;
    case DType::float64: std::memcpy(&wide, at, sizeof wide); return wide;
    case DType::int32: std::memcpy(&integer, at, sizeof integer); return integer;
    case DType::float16:
      std::memcpy(&bits, at, sizeof bits);
      portable::kTopK.widen_f16(&bits, 1, &narrow);
      return narrow;
    case DType::bfloat16:
      std::memcpy(&bits, at, sizeof bits);
      portable::kTopK.widen_bf16(&bits, 1, &narrow);
      return narrow;
  }
  return 0;
}

Status reference_row(const TopKRow& row, std::int64_t k, bool sort, std::int64_t* positions,
                     std::int64_t* count, Scratch& scratch) noexcept {
  const ScratchScope scope(scratch);
  const std::span<std::int64_t> order = scratch.take<std::int64_t>(row.n);
  if (row.n != 0 && order.empty()) return Status::out_of_memory;
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < row.n; ++i) {
    if (row.mask == nullptr || row.mask[i * row.mask_stride] != 0) {
      order[static_cast<std::size_t>(n++)] = i;
    }
  }
  const auto eligible = order.first(static_cast<std::size_t>(n));
  std::sort(eligible.begin(), eligible.end(), [&row](std::int64_t a, std::int64_t b) {
    return ranks_before(as_double(row, a), a, as_double(row, b), b);
  });
  *count = std::min(k, n);
  const auto best = eligible.first(static_cast<std::size_t>(*count));
  if (!sort) std::sort(best.begin(), best.end());
  std::copy(best.begin(), best.end(), positions);
  return Status::ok;
}

}  // namespace

Status topk(const TopKInput& input, const TopKOutput& output, bool sort, Workers* workers,
            std::span<Scratch> scratch) noexcept {
  if (scratch.empty()) return Status::invalid_argument;
  const std::int64_t parts =
      workers != nullptr
          ? std::clamp<std::int64_t>(input.rows, 1, static_cast<std::int64_t>(scratch.size()))
          : 1;
  Call call{input, output, sort, active_topk_kernels(), scratch, parts, 0};
  if (parts == 1) {
    rank_rows(call, 0, input.rows, scratch[0]);
  } else {
    for (std::int64_t r = 0; r < input.rows; ++r) call.total_cost += cost(input, r);
    workers->run(parts, rank_part, &call);
  }
  return call.failed.load(std::memory_order_relaxed) ? Status::out_of_memory : Status::ok;
}

Status topk_reference(const TopKInput& input, const TopKOutput& output, bool sort,
                      Scratch& scratch) noexcept {
  const DefaultFloatingPoint floating_point;
  for (std::int64_t r = 0; r < input.rows; ++r) {
    const TopKRow row = row_of(input, r);
    std::int64_t count = 0;
    const Status status = reference_row(row, places(input, r), sort,
                                        output.indices + r * output.k_max, &count, scratch);
    if (status != Status::ok) return status;
    finish_row(row, output, r, count);
  }
  return Status::ok;
}

Status topk_row(std::span<const float> scores, std::int64_t k, bool sort, std::int64_t* positions,
                float* values, std::int64_t* count, Scratch& scratch) noexcept {
  const DefaultFloatingPoint floating_point;
  const TopKRow row{reinterpret_cast<const std::byte*>(scores.data()),
                    DType::float32,
                    static_cast<std::int64_t>(scores.size()),
                    sizeof(float),
                    nullptr,
                    0};
  const Status status = select_row(row, k, sort, active_topk_kernels(), positions, count, scratch);
  if (status == Status::ok && values != nullptr) {
    for (std::int64_t i = 0; i < *count; ++i) {
      values[i] = scores[static_cast<std::size_t>(positions[i])];
    }
  }
  return status;
}

}  // namespace elastic_rank
