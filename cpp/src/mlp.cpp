#include "elastic_rank/mlp.hpp"

#include <algorithm>
#include <limits>

#include "elastic_rank/isa.hpp"
#include "simd/dot_kernels.hpp"
#include "simd/mlp_kernels.hpp"

namespace elastic_rank {
namespace {

// Rows that go through all layers before the next ones start: eight full tiles of the widest
// kernel, and few enough that two layers' activations stay in the second-level cache.
constexpr std::int64_t kBlockRows = 96;
// Activations are strided off powers of two, which would crowd a few sets of the first-level cache.
constexpr std::int64_t kStridePad = 16;

using DenseKernel = void (*)(const DenseArgs& args) noexcept;

DenseKernel dense_kernel() noexcept {
  switch (active_isa()) {
    case Isa::avx512: return avx512::dense_rows;
    case Isa::avx2: return avx2::dense_rows;
    case Isa::portable: break;
  }
  return portable::dense_rows;
}

}  // namespace

/// One call's way through the blocks: kernels, buffers, and the request the last block ended in.
struct Mlp::Pass {
  const Mlp& model;
  const ScoreTask& task;
  DenseKernel dense = dense_kernel();
  DotKernel dot = dot_kernel();
  std::int64_t stride = 0;
  float* activations[2] = {};  ///< (kBlockRows, stride) each
  float* halves =
      nullptr;  ///< (1 + kBlockRows, stride): slot 0 is carried over from the last block
  std::int64_t request = -1;
  std::int64_t slot = 0;  ///< where the request's half lies

  const float* rows[kBlockRows + kDenseAhead];
  const float* init[kBlockRows];
  const float* asked[kBlockRows];

  Pass(const Mlp& m, const ScoreTask& t) noexcept : model(m), task(t) {}
  bool take(Scratch& scratch) noexcept;
  void start_block(std::int64_t begin, std::int64_t n) noexcept;
  void fill_halves(std::int64_t begin, std::int64_t n) noexcept;
  void run_block(std::int64_t begin, std::int64_t n) noexcept;
};

bool Mlp::Pass::take(Scratch& scratch) noexcept {
  stride = model.widest_ + kStridePad;
  const std::span<float> memory = scratch.take<float>((3 * kBlockRows + 1) * stride);
  if (memory.empty()) return false;
  activations[0] = memory.data();
  activations[1] = activations[0] + kBlockRows * stride;
  halves = activations[1] + kBlockRows * stride;
  return true;
}

/// Points `rows` at the block's items and at those that come next.
void Mlp::Pass::start_block(std::int64_t begin, std::int64_t n) noexcept {
  const auto total = static_cast<std::int64_t>(task.ids.size());
  const std::int64_t known = std::min(n + kDenseAhead, total - begin);
  const std::int64_t* ids = task.ids.data() + begin;
  for (std::int64_t i = 0; i < known; ++i) rows[i] = model.items_.row(ids[i]);
  if (begin != 0) return;
  const std::int64_t row_bytes = model.items_.cols * static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t i = 0; i < std::min(known, kDenseAhead); ++i) {
    const char* row = reinterpret_cast<const char*>(rows[i]);
    for (std::int64_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(row + at);
    __builtin_prefetch(row + row_bytes - 1);
  }
}

/// Points `init` at each row's start of layer one: the bias, or its request's query half.
void Mlp::Pass::fill_halves(std::int64_t begin, std::int64_t n) noexcept {
  if (model.query_width_ == 0) {
    std::fill_n(init, n, model.hidden_.front().bias.front().value);
    return;
  }
  if (slot != 0) {
    std::copy_n(halves + slot * stride, model.query_half_.out_padded, halves);
    slot = 0;
  }
  std::int64_t n_new = 0;
  const std::int64_t first = task.offsets.front();
  for (std::int64_t i = 0; i < n; ++i) {
    if (request < 0 || begin + i >= task.offsets[static_cast<std::size_t>(request) + 1] - first) {
      do {
        ++request;
      } while (begin + i >= task.offsets[static_cast<std::size_t>(request) + 1] - first);
      asked[n_new++] = task.query.row(request);
      slot = n_new;
    }
    init[i] = halves + slot * stride;
  }
  if (n_new == 0) return;
  const float* bias[kBlockRows];
  std::fill_n(bias, n_new, model.query_half_.bias.front().value);
  dense({.rows = asked,
         .init = bias,
         .n = n_new,
         .n_ahead = 0,
         .in = model.query_width_,
         .weight = model.query_half_.weight.front().value,
         .out_padded = model.query_half_.out_padded,
         .floor = -std::numeric_limits<float>::infinity(),
         .out = halves + stride,
         .out_stride = stride});
}

void Mlp::Pass::run_block(std::int64_t begin, std::int64_t n) noexcept {
  start_block(begin, n);
  fill_halves(begin, n);
  const auto total = static_cast<std::int64_t>(task.ids.size());
  std::int64_t ahead = std::min(kDenseAhead, total - begin - n);
  float* out = activations[0];
  for (std::size_t layer = 0; layer < model.hidden_.size(); ++layer) {
    const Packed& packed = model.hidden_[layer];
    if (layer > 0) {
      const float* in = activations[(layer - 1) % 2];
      for (std::int64_t i = 0; i < n; ++i) rows[i] = in + i * stride;
      std::fill_n(init, n, packed.bias.front().value);
      ahead = 0;
    }
    out = activations[layer % 2];
    dense({.rows = rows,
           .init = init,
           .n = n,
           .n_ahead = ahead,
           .in = packed.in,
           .weight = packed.weight.data()->value,
           .out_padded = packed.out_padded,
           .floor = 0.0f,
           .out = out,
           .out_stride = stride});
  }
  float* scores = task.scores.data() + begin;
  dot({.query = model.output_weight_.data(),
       .width = static_cast<std::int64_t>(model.output_weight_.size()),
       .table = out,
       .row_stride = stride,
       .ids = nullptr,
       .n = n,
       .n_ahead = 0,
       .n_fetched = 0,
       .scores = scores});
  for (std::int64_t i = 0; i < n; ++i) scores[i] += model.output_bias_;
}

Mlp::Mlp(std::span<const DenseLayer> layers, MatrixView<const float> item_features)
    : items_(item_features), query_width_(layers.front().weight.rows - item_features.cols) {
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    MatrixView<const float> weight = layers[i].weight;
    if (i == 0 && query_width_ > 0) {
      query_half_ = pack(weight.sub_rows(0, query_width_), layers[i].bias);
      weight = weight.sub_rows(query_width_, items_.cols);
    }
    hidden_.push_back(pack(weight, layers[i].bias));
    widest_ = std::max(widest_, hidden_.back().out_padded);
  }
  const DenseLayer& last = layers.back();
  for (std::int64_t r = 0; r < last.weight.rows; ++r) {
    output_weight_.push_back(*last.weight.row(r));
  }
  output_bias_ = last.bias.front();
}

Mlp::Packed Mlp::pack(MatrixView<const float> weight, std::span<const float> bias) {
  Packed packed;
  packed.in = weight.rows;
  packed.out_padded = (weight.cols + kDenseUnit - 1) / kDenseUnit * kDenseUnit;
  const auto units = static_cast<std::size_t>(packed.out_padded / kDenseUnit);
  packed.weight.resize(units * static_cast<std::size_t>(packed.in));
  packed.bias.resize(units);
  for (std::int64_t c = 0; c < weight.cols; ++c) {
    const std::int64_t panel = c - c % kDensePanel;
    const std::int64_t width = std::min(kDensePanel, packed.out_padded - panel);
    for (std::int64_t k = 0; k < weight.rows; ++k) {
      const std::int64_t at = panel * packed.in + k * width + (c - panel);
      packed.weight[static_cast<std::size_t>(at / kDenseUnit)].value[at % kDenseUnit] =
          weight.row(k)[c];
    }
    packed.bias[static_cast<std::size_t>(c / kDenseUnit)].value[c % kDenseUnit] =
        bias[static_cast<std::size_t>(c)];
  }
  return packed;
}

/// A model of one layer: a dot product with fixed weights, plus the query's part once a request.
Status Mlp::score_linear(const ScoreTask& task) const noexcept {
  const DotKernel dot = dot_kernel();
  const auto total = static_cast<std::int64_t>(task.ids.size());
  for (std::int64_t r = 0; r < task.query.rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(r);
    const std::int64_t begin = task.offsets[at] - task.offsets[0];
    const std::int64_t end = task.offsets[at + 1] - task.offsets[0];
    if (begin == end) continue;
    float start = 0.0f;
    if (query_width_ > 0) {
      dot({.query = output_weight_.data(),
           .width = query_width_,
           .table = task.query.row(r),
           .row_stride = 0,
           .ids = nullptr,
           .n = 1,
           .n_ahead = 0,
           .n_fetched = 0,
           .scores = &start});
    }
    start += output_bias_;
    float* scores = task.scores.data() + begin;
    dot({.query = output_weight_.data() + query_width_,
         .width = items_.cols,
         .table = items_.data,
         .row_stride = items_.row_stride,
         .ids = task.ids.data() + begin,
         .n = end - begin,
         .n_ahead = total - end,
         .n_fetched = begin == 0 ? 0 : kDotAhead,
         .scores = scores});
    for (std::int64_t i = 0; i < end - begin; ++i) scores[i] += start;
  }
  return Status::ok;
}

Status Mlp::score(const ScoreTask& task, Scratch& scratch) const noexcept {
  if (hidden_.empty()) return score_linear(task);
  const ScratchScope scope(scratch);
  Pass pass(*this, task);
  if (!pass.take(scratch)) return Status::out_of_memory;
  const auto total = static_cast<std::int64_t>(task.ids.size());
  for (std::int64_t begin = 0; begin < total; begin += kBlockRows) {
    pass.run_block(begin, std::min(kBlockRows, total - begin));
  }
  return Status::ok;
}

}  // namespace elastic_rank
