#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "elastic_rank/matrix.hpp"
#include "elastic_rank/reason.hpp"
#include "elastic_rank/scorer.hpp"
#include "elastic_rank/status.hpp"
#include "elastic_rank/workers.hpp"

namespace elastic_rank {

/// One model over the survivors of the stage before.
struct Stage {
  std::string name;
  std::shared_ptr<const Scorer> scorer;
  std::int64_t base = 0;  ///< candidates scored with provisioned capacity, >= 1
  std::int64_t max = 0;   ///< most candidates ever scored, >= base
};

/// A batch of requests; candidates in prior order, best first.
struct RequestBatch {
  MatrixView<const float> query;             ///< (B, q)
  std::span<const std::int64_t> candidates;  ///< (total)
  std::span<const std::int64_t> offsets;     ///< (B + 1), from 0 to total, not falling

  std::int64_t size() const noexcept { return query.rows; }
};

/// Where an answer goes. Sizes: `Cascade::plan`.
struct RankedOutput {
  std::span<std::int64_t> ids;            ///< (offsets[B])
  std::span<float> scores;                ///< (offsets[B]), the last stage's
  std::span<const std::int64_t> offsets;  ///< (B + 1), from `plan`
};

/// Which stage failed, for which requests of the batch.
struct RankFailure {
  std::int64_t stage = -1;
  std::int64_t first_request = 0;
  std::int64_t n_requests = 0;
  std::exception_ptr exception;
};

/// Ranks candidates through stages of rising cost. Immutable but for its counters and pooled
/// working memory: `rank` may be called from many threads at once.
class Cascade {
 public:
  /// @pre at least one stage; 1 <= base <= max for each; scorers not null.
  Cascade(std::vector<Stage> stages, int threads);
  ~Cascade();

  std::span<const Stage> stages() const noexcept { return stages_; }
  int threads() const noexcept { return workers_.size(); }
  /// Ids must lie below this: the smallest table of all stages.
  std::int64_t n_items() const noexcept { return n_items_; }

  /// Works out, before anything is scored, what a call will evaluate and return.
  /// @param depths (stages, B) asked depth, or empty for base; outside [base, max] is clamped.
  /// @param evaluated (stages, B) written: candidates that each stage will score.
  /// @param offsets (B + 1) written: places of the answers.
  /// @param reason (B) written: `clamped` or `none`.
  void plan(const RequestBatch& requests, std::span<const std::int64_t> depths,
            std::span<std::int32_t> evaluated, std::span<std::int64_t> offsets,
            std::span<Reason> reason) const noexcept;

  /// @param evaluated from `plan`.
  /// @pre ids in range, query width accepted by every stage.
  Status rank(const RequestBatch& requests, std::span<const std::int32_t> evaluated,
              const RankedOutput& output, RankFailure& failure) const noexcept;

  struct StageCounts {
    std::int64_t scored = 0;  ///< candidates scored since the start
    std::int64_t nan = 0;     ///< of these, scores that were NaN and so ranked last
  };
  StageCounts counts(std::int64_t stage) const noexcept;

 private:
  struct Workspace;
  struct Call;
  struct Group;
  struct Counter {
    alignas(64) std::atomic<std::int64_t> scored{0};
    std::atomic<std::int64_t> nan{0};
  };

  Workspace* borrow() const noexcept;
  void give_back(Workspace* workspace) const noexcept;
  std::int64_t group_end(std::span<const std::int32_t> evaluated, std::int64_t begin,
                         std::int64_t n_requests) const noexcept;
  Status rank_group(const Call& call, std::int64_t begin, std::int64_t end, Scratch& scratch,
                    RankFailure& failure) const noexcept;
  static bool gather(const Call& call, std::int64_t begin, std::int64_t end, Scratch& scratch,
                     Group& group) noexcept;
  Status score_stage(const Call& call, std::size_t stage, const Group& group, Scratch& scratch,
                     RankFailure& failure) const noexcept;
  Status select_survivors(const Call& call, std::size_t stage, Group& group,
                          Scratch& scratch) const noexcept;
  static void run_group(void* call, std::int64_t group, int slot) noexcept;

  std::vector<Stage> stages_;
  std::unique_ptr<Counter[]> counters_;
  std::int64_t n_items_ = 0;
  bool all_native_ = true;
  mutable Workers workers_;
  // Idle workspaces; a call takes one out by exchange and puts it back, so nobody waits.
  mutable std::array<std::atomic<Workspace*>, 8> idle_{};
};

}  // namespace elastic_rank
