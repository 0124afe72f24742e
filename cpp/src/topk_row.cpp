#include "topk_row.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "elastic_rank/isa.hpp"
#include "simd/topk_kernels.hpp"

namespace elastic_rank {
namespace {

using topk_kernels::kBlock;
using topk_kernels::Kernels;
using topk_kernels::kGroupsPerChunk;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) noexcept {
  return (n + multiple - 1) / multiple * multiple;
}

// Three maxima per place asked give a bound that about 1.2 k random elements reach. More would be
// dearer to search than the survivors they save.
constexpr std::int64_t kGroupsPerPlace = 3;
// Rows shorter than this per place go without a bound: the groups would be too few.
constexpr std::int64_t kShortestPerPlace = 8;
constexpr std::int64_t kShortest = 256;
constexpr std::int64_t kLongestChunk = 512;

/// Elements whose 16 maxima stand together. Long chunks write fewer maxima; short ones are looked
/// at again at less cost. Monotone data has up to k * chunk / 16 survivors.
std::int64_t chunk_for(std::int64_t n, std::int64_t k) noexcept {
  if (n < kShortest || n / kShortestPerPlace < k) return 0;
  std::int64_t chunk = kBlock;
  while (chunk < kLongestChunk && n / chunk > 4 * k) chunk *= 2;
  return chunk;
}

template <class T>
bool in_place(const std::byte* data, std::int64_t n, std::int64_t stride) noexcept {
  const bool adjacent = n == 1 || stride == static_cast<std::int64_t>(sizeof(T));
  return adjacent && reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0;
}

/// The row's elements side by side: where they are, or copied into scratch. Null: out of memory.
template <class T>
const T* contiguous(const std::byte* data, std::int64_t n, std::int64_t stride,
                    Scratch& scratch) noexcept {
  if (in_place<T>(data, n, stride)) return reinterpret_cast<const T*>(data);
  const std::span<T> copy = scratch.take<T>(n);
  if (copy.empty()) return nullptr;
  for (T& to : copy) {
    std::memcpy(&to, data, sizeof(T));  // a view's elements need not be aligned
    data += stride;
  }
  return copy.data();
}

template <class Value>
constexpr Value bottom() noexcept {
  if constexpr (std::numeric_limits<Value>::has_quiet_NaN) {
    return std::numeric_limits<Value>::quiet_NaN();
  } else {
    return std::numeric_limits<Value>::lowest();
  }
}

/// Folds the mask into the values: an ineligible element becomes one that nothing asks for.
template <class Value>
const Value* blanked(const Value* row, const std::uint8_t* eligible, std::int64_t n,
                     Scratch& scratch) noexcept {
  const std::span<Value> copy = scratch.take<Value>(n);
  if (copy.empty()) return nullptr;
  Value* to = copy.data();
  for (std::int64_t i = 0; i < n; ++i) to[i] = eligible[i] != 0 ? row[i] : bottom<Value>();
  return to;
}

template <class Value, class Key>
Status select(const Value* row, const std::uint8_t* eligible, std::int64_t n, std::int64_t k,
              bool sort, std::int64_t (*kernel)(const topk_kernels::RowTask<Value, Key>&) noexcept,
              std::int64_t* positions, std::int64_t* count, Scratch& scratch) noexcept {
  if (row == nullptr) return Status::out_of_memory;
  if (eligible != nullptr) {
    row = blanked(row, eligible, n, scratch);
    if (row == nullptr) return Status::out_of_memory;
  }
  topk_kernels::RowTask<Value, Key> task;
  task.row = row;
  task.n = n;
  task.k = k;
  task.eligible = eligible;
  task.sort = sort;
  task.chunk = chunk_for(n, k);
  if (task.chunk != 0) {
    const std::int64_t maxima = n / task.chunk * kGroupsPerChunk;
    task.groups = std::min(maxima, round_up(kGroupsPerPlace * k, kGroupsPerChunk));
    task.maxima = scratch.take<Value>(maxima).data();
    task.group_keys = scratch.take<Key>(task.groups).data();
    if (!task.maxima || !task.group_keys) return Status::out_of_memory;
  }
  // Room for what random data leaves several times over; masses of equals are cut when it is full.
  task.capacity = std::min(std::max<std::int64_t>(5 * k, 1024), n) + kBlock;
  task.keys = scratch.take<Key>(task.capacity + kBlock).data();
  task.places = scratch.take<std::uint32_t>(task.capacity + kBlock).data();
  task.items = scratch.take<std::uint64_t>(4 * k).data();
  if (!task.keys || !task.places || !task.items) return Status::out_of_memory;
  task.positions = positions;
  *count = kernel(task);
  return Status::ok;
}

/// Half-width floats go through an exact conversion that keeps their order.
Status select_half(const TopKRow& row, const std::uint8_t* eligible, std::int64_t k, bool sort,
                   const Kernels& kernels, std::int64_t* positions, std::int64_t* count,
                   Scratch& scratch) noexcept {
  const auto* half = contiguous<std::uint16_t>(row.scores, row.n, row.stride, scratch);
  const std::span<float> wide = scratch.take<float>(row.n);
  if (half == nullptr || wide.empty()) return Status::out_of_memory;
  const bool brain = row.dtype == DType::bfloat16;
  (brain ? kernels.widen_bf16 : kernels.widen_f16)(half, row.n, wide.data());
  return select<float, std::int32_t>(wide.data(), eligible, row.n, k, sort, kernels.select_f32,
                                     positions, count, scratch);
}

}  // namespace

TopKRow row_of(const TopKInput& input, std::int64_t r) noexcept {
  TopKRow row;
  row.dtype = input.dtype;
  row.stride = input.col_stride;
  row.mask_stride = input.mask_col_stride;
  row.n = input.cols;
  // Bytes to the row's first element: 64 bits throughout, since a batch may exceed 2^32 elements.
  std::int64_t scores_at = r * input.row_stride;
  std::int64_t mask_at = r * input.mask_row_stride;
  if (input.offsets != nullptr) {
    row.n = input.offsets[r + 1] - input.offsets[r];
    scores_at = input.offsets[r] * input.col_stride;
    mask_at = input.offsets[r] * input.mask_col_stride;
  }
  if (row.n == 0) return row;  // an empty array's address may be null
  row.scores = static_cast<const std::byte*>(input.scores) + scores_at;
  if (input.mask != nullptr) row.mask = input.mask + mask_at;
  return row;
}

const Kernels& active_topk_kernels() noexcept {
  switch (active_isa()) {
    case Isa::avx512: return avx512::kTopK;
    case Isa::avx2: return avx2::kTopK;
    case Isa::portable: break;
  }
  return portable::kTopK;
}

Status select_row(const TopKRow& row, std::int64_t k, bool sort, const Kernels& kernels,
                  std::int64_t* positions, std::int64_t* count, Scratch& scratch) noexcept {
  *count = 0;
  const std::int64_t n = row.n;
  k = std::min(k, n);
  if (k == 0) return Status::ok;
  const ScratchScope scope(scratch);
  const std::uint8_t* eligible = nullptr;
  if (row.mask != nullptr) {
    eligible = contiguous<std::uint8_t>(reinterpret_cast<const std::byte*>(row.mask), n,
                                        row.mask_stride, scratch);
    if (eligible == nullptr) return Status::out_of_memory;
  }
  switch (row.dtype) {
    case DType::float32:
      return select<float, std::int32_t>(contiguous<float>(row.scores, n, row.stride, scratch),
                                         eligible, n, k, sort, kernels.select_f32, positions, count,
                                         scratch);
    case DType::int32:
      return select<std::int32_t, std::int32_t>(
          contiguous<std::int32_t>(row.scores, n, row.stride, scratch), eligible, n, k, sort,
          kernels.select_i32, positions, count, scratch);
    case DType::float64:
      return select<double, std::int64_t>(contiguous<double>(row.scores, n, row.stride, scratch),
                                          eligible, n, k, sort, kernels.select_f64, positions,
                                          count, scratch);
    case DType::float16:
    case DType::bfloat16:
      return select_half(row, eligible, k, sort, kernels, positions, count, scratch);
  }
  return Status::invalid_argument;
}

}  // namespace elastic_rank
