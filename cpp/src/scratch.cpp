#include "elastic_rank/scratch.hpp"

#include <algorithm>
#include <new>

namespace elastic_rank {
namespace {

constexpr std::size_t kAlignment = 64;

constexpr std::size_t round_up(std::size_t bytes) noexcept {
  return (bytes + kAlignment - 1) & ~(kAlignment - 1);
}

std::byte* allocate(std::size_t bytes) noexcept {
  return static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow));
}

void release(std::byte* data) noexcept {
  ::operator delete(data, std::align_val_t{kAlignment});
}

}  // namespace

Scratch::~Scratch() {
  for (std::size_t i = 0; i < n_blocks_; ++i) release(blocks_[i].data);
}

bool Scratch::add_block(std::size_t bytes) noexcept {
  if (n_blocks_ == kMaxBlocks) return false;
  // Doubling keeps the number of blocks a call can need logarithmic in what it takes.
  const std::size_t size = std::max({round_up(bytes), kFirstBlockBytes, 2 * capacity()});
  std::byte* data = allocate(size);
  if (data == nullptr) return false;
  blocks_[n_blocks_++] = {data, size};
  return true;
}

void* Scratch::take_bytes(std::size_t bytes) noexcept {
  if (bytes > static_cast<std::size_t>(-1) / 4) return nullptr;
  const std::size_t size = round_up(bytes);
  while (n_blocks_ == 0 || used_ + size > blocks_[block_].bytes) {
    if (n_blocks_ != 0 && block_ + 1 < n_blocks_) {
      ++block_;
      used_ = 0;
      continue;
    }
    if (!add_block(size)) return nullptr;
    block_ = n_blocks_ - 1;
    used_ = 0;
  }
  void* memory = blocks_[block_].data + used_;
  used_ += size;
  return memory;
}

void Scratch::rewind(Mark mark) noexcept {
  block_ = mark.block;
  used_ = mark.used;
}

void Scratch::reset() noexcept {
  if (n_blocks_ > 1) {
    const std::size_t total = capacity();
    if (std::byte* data = allocate(total)) {
      for (std::size_t i = 0; i < n_blocks_; ++i) release(blocks_[i].data);
      blocks_[0] = {data, total};
      n_blocks_ = 1;
    }  // else: the blocks go on serving as they are
  }
  block_ = 0;
  used_ = 0;
}

std::size_t Scratch::capacity() const noexcept {
  std::size_t total = 0;
  for (std::size_t i = 0; i < n_blocks_; ++i) total += blocks_[i].bytes;
  return total;
}

}  // namespace elastic_rank
