#include "elastic_rank/cascade.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "elastic_rank/topk.hpp"

namespace elastic_rank {
namespace {

// Requests are ranked in groups that go through all stages before the next group starts: scores of
// a group stay in the second-level cache, and small requests still fill the kernels' row blocks.
constexpr std::int64_t kGroupCandidates = 8192;

std::int64_t count_nan(std::span<const float> scores) noexcept {
  std::int64_t total = 0;
  while (!scores.empty()) {
    // 32 bits a part: as wide as a score, so that the loop counts four at a time.
    const std::span<const float> part = scores.first(std::min<std::size_t>(scores.size(), 1 << 20));
    std::int32_t n = 0;
    for (const float score : part) n += score != score;
    total += n;
    scores = scores.subspan(part.size());
  }
  return total;
}

}  // namespace

/// Memory of one call: lent out whole, so concurrent calls never share.
struct Cascade::Workspace {
  explicit Workspace(int threads) : slots(static_cast<std::size_t>(threads)) {}
  Scratch call;
  std::vector<Scratch> slots;
};

/// What the groups of one call share.
struct Cascade::Call {
  const Cascade& cascade;
  const RequestBatch& requests;
  std::span<const std::int32_t> evaluated;
  const RankedOutput& output;
  std::span<const std::int64_t> groups;
  Workspace& workspace;
  RankFailure& failure;
  // Release/acquire on `failed`; the winner of the exchange alone writes `failure` and `status`,
  // which the caller reads after the group of workers has finished.
  std::atomic<bool> failed{false};
  Status status = Status::ok;
};

Cascade::Cascade(std::vector<Stage> stages, int threads)
    : stages_(std::move(stages)),
      counters_(new Counter[stages_.size()]),
      n_items_(Scorer::kAnyItem),
      workers_(threads) {
  for (const Stage& stage : stages_) {
    n_items_ = std::min(n_items_, stage.scorer->n_items());
    all_native_ = all_native_ && stage.scorer->is_native();
  }
}

Cascade::~Cascade() {
  for (auto& slot : idle_) delete slot.load(std::memory_order_acquire);
}

Cascade::Workspace* Cascade::borrow() const noexcept {
  for (auto& slot : idle_) {
    // Acquire pairs with the release in give_back: the scratch is as its last user left it.
    if (Workspace* workspace = slot.exchange(nullptr, std::memory_order_acquire)) return workspace;
  }
  try {
    return new Workspace(workers_.size());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Cascade::give_back(Workspace* workspace) const noexcept {
  workspace->call.reset();
  for (Scratch& scratch : workspace->slots) scratch.reset();
  for (auto& slot : idle_) {
    Workspace* empty = nullptr;
    // Release pairs with the acquire in borrow(); a failure reads nothing through the pointer.
    if (slot.compare_exchange_strong(empty, workspace, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
  delete workspace;  // more concurrent callers than places: the surplus is not kept
}

void Cascade::plan(const RequestBatch& requests, std::span<const std::int64_t> depths,
                   std::span<std::int32_t> evaluated, std::span<std::int64_t> offsets,
                   std::span<Reason> reason) const noexcept {
  const std::size_t n_requests = static_cast<std::size_t>(requests.size());
  offsets[0] = 0;
  for (std::size_t r = 0; r < n_requests; ++r) {
    std::int64_t available = requests.offsets[r + 1] - requests.offsets[r];
    reason[r] = Reason::none;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const Stage& stage = stages_[s];
      const std::int64_t asked = depths.empty() ? stage.base : depths[s * n_requests + r];
      const std::int64_t depth = std::clamp(asked, stage.base, stage.max);
      if (depth != asked) reason[r] = Reason::clamped;
      available = std::min(available, depth);
      evaluated[s * n_requests + r] = static_cast<std::int32_t>(available);
    }
    offsets[r + 1] = offsets[r] + std::min(available, stages_.back().base);
  }
}

std::int64_t Cascade::group_end(std::span<const std::int32_t> evaluated, std::int64_t begin,
                                std::int64_t n_requests) const noexcept {
  if (!all_native_) return n_requests;  // user code in the interpreter sees the batch whole
  std::int64_t candidates = evaluated[static_cast<std::size_t>(begin)];
  std::int64_t end = begin + 1;
  while (end < n_requests) {
    candidates += evaluated[static_cast<std::size_t>(end)];
    if (candidates > kGroupCandidates) break;
    ++end;
  }
  return end;
}

Status Cascade::rank(const RequestBatch& requests, std::span<const std::int32_t> evaluated,
                     const RankedOutput& output, RankFailure& failure) const noexcept {
  const std::int64_t n_requests = requests.size();
  if (n_requests == 0) return Status::ok;
  Workspace* workspace = borrow();
  if (workspace == nullptr) return Status::out_of_memory;
  std::span<std::int64_t> groups = workspace->call.take<std::int64_t>(n_requests + 1);
  Status status = Status::out_of_memory;
  if (!groups.empty()) {
    std::size_t n_groups = 0;
    groups[0] = 0;
    for (std::int64_t r = 0; r < n_requests;) {
      r = group_end(evaluated, r, n_requests);
      groups[++n_groups] = r;
    }
    Call call{*this, requests, evaluated, output, groups.first(n_groups + 1), *workspace, failure};
    if (all_native_) {
      workers_.run(static_cast<std::int64_t>(n_groups), &Cascade::run_group, &call);
    } else {
      run_group(&call, 0, 0);
    }
    status = call.status;
  }
  give_back(workspace);
  return status;
}

void Cascade::run_group(void* context, std::int64_t group, int slot) noexcept {
  Call& call = *static_cast<Call*>(context);
  if (call.failed.load(std::memory_order_relaxed)) return;  // only saves work
  Scratch& scratch = call.workspace.slots[static_cast<std::size_t>(slot)];
  const ScratchScope scope(scratch);
  RankFailure failure;
  const std::size_t g = static_cast<std::size_t>(group);
  const Status status =
      call.cascade.rank_group(call, call.groups[g], call.groups[g + 1], scratch, failure);
  if (status == Status::ok) return;
  if (!call.failed.exchange(true, std::memory_order_acq_rel)) {
    failure.first_request = call.groups[g];
    failure.n_requests = call.groups[g + 1] - call.groups[g];
    call.failure = std::move(failure);
    call.status = status;
  }
}

/// The candidates of one group of requests on their way through the stages.
struct Cascade::Group {
  std::int64_t begin;                 ///< first request
  std::size_t n;                      ///< requests
  std::span<std::int64_t> offsets;    ///< (n + 1) places in `ids` and `scores`
  std::span<const std::int64_t> ids;  ///< candidates of the stage at hand
  std::span<std::int64_t> survivors;  ///< room for those of the next
  std::span<std::int64_t> spare;      ///< the like, where `ids` may lie
  std::span<float> scores;

  std::size_t total() const noexcept { return static_cast<std::size_t>(offsets[n]); }
  std::span<const float> row(std::size_t r) const noexcept {
    return scores.subspan(static_cast<std::size_t>(offsets[r]),
                          static_cast<std::size_t>(offsets[r + 1] - offsets[r]));
  }
};

Status Cascade::rank_group(const Call& call, std::int64_t begin, std::int64_t end, Scratch& scratch,
                           RankFailure& failure) const noexcept {
  Group group{};
  if (!gather(call, begin, end, scratch, group)) return Status::out_of_memory;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const ScratchScope scope(scratch);
    failure.stage = static_cast<std::int64_t>(s);
    Status status = score_stage(call, s, group, scratch, failure);
    if (status == Status::ok) status = select_survivors(call, s, group, scratch);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

bool Cascade::gather(const Call& call, std::int64_t begin, std::int64_t end, Scratch& scratch,
                     Group& group) noexcept {
  const auto depth = call.evaluated.subspan(static_cast<std::size_t>(begin));
  group.begin = begin;
  group.n = static_cast<std::size_t>(end - begin);
  std::int64_t total = 0;
  for (std::size_t r = 0; r < group.n; ++r) total += depth[r];
  const std::int64_t room = std::max<std::int64_t>(total, 1);  // an empty span means no memory
  group.offsets = scratch.take<std::int64_t>(end - begin + 1);
  group.survivors = scratch.take<std::int64_t>(room);
  group.spare = scratch.take<std::int64_t>(room);
  group.scores = scratch.take<float>(room);
  if (group.offsets.empty() || group.survivors.empty() || group.spare.empty() ||
      group.scores.empty()) {
    return false;
  }
  group.offsets[0] = 0;
  for (std::size_t r = 0; r < group.n; ++r) group.offsets[r + 1] = group.offsets[r] + depth[r];
  const std::int64_t* candidates = call.requests.candidates.data();
  const std::int64_t* from = call.requests.offsets.data() + begin;
  if (group.n == 1) {  // a large request: its candidates are scored where they lie
    group.ids = {candidates + from[0], static_cast<std::size_t>(total)};
    return true;
  }
  for (std::size_t r = 0; r < group.n; ++r) {
    std::copy_n(candidates + from[r], depth[r], group.spare.data() + group.offsets[r]);
  }
  group.ids = group.spare;
  return true;
}

Status Cascade::score_stage(const Call& call, std::size_t stage, const Group& group,
                            Scratch& scratch, RankFailure& failure) const noexcept {
  if (group.total() == 0) return Status::ok;
  const auto query = call.requests.query.sub_rows(group.begin, static_cast<std::int64_t>(group.n));
  const ScoreTask task{query, group.ids.first(group.total()), group.offsets,
                       group.scores.first(group.total()), &failure.exception};
  const Status status = stages_[stage].scorer->score(task, scratch);
  if (status != Status::ok) return status;
  // Relaxed: counters are sums of their own, read for metrics only.
  counters_[stage].scored.fetch_add(static_cast<std::int64_t>(group.total()),
                                    std::memory_order_relaxed);
  if (const std::int64_t nan = count_nan(task.scores)) {
    counters_[stage].nan.fetch_add(nan, std::memory_order_relaxed);
  }
  return Status::ok;
}

Status Cascade::select_survivors(const Call& call, std::size_t stage, Group& group,
                                 Scratch& scratch) const noexcept {
  const bool last = stage + 1 == stages_.size();
  const auto first = static_cast<std::size_t>(group.begin);
  const auto n_requests = static_cast<std::size_t>(call.requests.size());
  std::int64_t kept_to = 0;
  for (std::size_t r = 0; r < group.n; ++r) {
    const std::int64_t answer = call.output.offsets[first + r];
    const std::int64_t keep = last ? call.output.offsets[first + r + 1] - answer
                                   : call.evaluated[(stage + 1) * n_requests + first + r];
    std::int64_t* to = last ? call.output.ids.data() + answer : group.survivors.data() + kept_to;
    float* values = last ? call.output.scores.data() + answer : nullptr;
    std::int64_t kept = 0;
    const ScratchScope scope(scratch);
    const Status status = topk_row(group.row(r), keep, true, to, values, &kept, scratch);
    if (status != Status::ok) return status;
    const std::int64_t* row_ids = group.ids.data() + group.offsets[r];
    for (std::int64_t i = 0; i < kept; ++i) to[i] = row_ids[to[i]];
    group.offsets[r] = kept_to;  // row r is done with: its place is the next stage's
    kept_to += kept;
  }
  group.offsets[group.n] = kept_to;
  std::swap(group.spare, group.survivors);
  group.ids = group.spare;
  return Status::ok;
}

Cascade::StageCounts Cascade::counts(std::int64_t stage) const noexcept {
  const Counter& counter = counters_[static_cast<std::size_t>(stage)];
  return {counter.scored.load(std::memory_order_relaxed),
          counter.nan.load(std::memory_order_relaxed)};
}

}  // namespace elastic_rank
