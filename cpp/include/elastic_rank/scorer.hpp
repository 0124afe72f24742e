#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <span>

#include "elastic_rank/matrix.hpp"
#include "elastic_rank/scratch.hpp"
#include "elastic_rank/status.hpp"

namespace elastic_rank {

/// What one call scores. Request r owns the ids at positions
/// [offsets[r] - offsets[0], offsets[r + 1] - offsets[0]), so a part of a batch is a sub-span.
struct ScoreTask {
  MatrixView<const float> query;          ///< (requests, q): row r is request r's
  std::span<const std::int64_t> ids;      ///< each in [0, n_items())
  std::span<const std::int64_t> offsets;  ///< (requests + 1), not falling
  std::span<float> scores;                ///< as long as ids; written in full on Status::ok
  std::exception_ptr* failure = nullptr;  ///< where user code's exception is left
};

/// One model. A score depends on its query row and its item row alone, never on the batch, the
/// chunk or the thread it was computed in (on one instruction-set level): the engine relies on it
/// when it ranks in chunks and promises the very bits of a single pass.
class Scorer {
 public:
  static constexpr std::int64_t kAnyItem = std::numeric_limits<std::int64_t>::max();

  virtual ~Scorer() = default;

  /// Items in the table: ids lie below it. `kAnyItem`: ids are not looked up here.
  virtual std::int64_t n_items() const noexcept = 0;

  /// Whether a query of this width fits the model.
  virtual bool accepts_query(std::int64_t width) const noexcept = 0;

  /// False for code that needs the interpreter: it runs on the calling thread, whole batches at
  /// once.
  virtual bool is_native() const noexcept { return true; }

  /// @pre ids in range, query width accepted. Thread-safe; one scratch a thread.
  virtual Status score(const ScoreTask& task, Scratch& scratch) const noexcept = 0;
};

/// Models that score [query part | item part] rows: how many leading columns the query fills.
/// A model as wide as the item part alone takes no query.
constexpr bool query_fills(std::int64_t model_width, std::int64_t item_width,
                           std::int64_t query_width) noexcept {
  return model_width == item_width || model_width == item_width + query_width;
}

}  // namespace elastic_rank
