#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace elastic_rank {

/// Working memory that a caller owns and lends to a call: a bump allocator that grows until it
/// fits and then stays, so a call in steady state allocates nothing. Not thread-safe: one a
/// thread. Memory is 64-byte aligned and not initialised.
class Scratch {
 public:
  Scratch() noexcept = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  /// @return `count` elements, or an empty span when memory is out (also for count <= 0).
  template <class T>
  std::span<T> take(std::ptrdiff_t count) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    if (count <= 0) return {};
    void* memory = take_bytes(static_cast<std::size_t>(count) * sizeof(T));
    return memory ? std::span<T>(static_cast<T*>(memory), static_cast<std::size_t>(count))
                  : std::span<T>();
  }

  /// A point to come back to: `rewind(mark())` gives back all that was taken in between.
  struct Mark {
    std::size_t block = 0;
    std::size_t used = 0;
  };
  Mark mark() const noexcept { return {block_, used_}; }
  void rewind(Mark mark) noexcept;

  /// Gives everything back; several blocks are merged into one that would have held it all.
  void reset() noexcept;

  /// Bytes held, for tests and memory statements.
  std::size_t capacity() const noexcept;

 private:
  static constexpr std::size_t kMaxBlocks = 32;
  static constexpr std::size_t kFirstBlockBytes = 4096;

  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  void* take_bytes(std::size_t bytes) noexcept;
  bool add_block(std::size_t bytes) noexcept;

  Block blocks_[kMaxBlocks] = {};
  std::size_t n_blocks_ = 0;
  std::size_t block_ = 0;  ///< block in use
  std::size_t used_ = 0;   ///< bytes used in it
};

/// Returns a scratch to where it was when this was made.
class ScratchScope {
 public:
  explicit ScratchScope(Scratch& scratch) noexcept : scratch_(scratch), mark_(scratch.mark()) {}
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;
  ~ScratchScope() { scratch_.rewind(mark_); }

 private:
  Scratch& scratch_;
  Scratch::Mark mark_;
};

}  // namespace elastic_rank
