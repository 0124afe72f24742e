#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "elastic_rank/cascade.hpp"

using namespace elastic_rank;

namespace {

/// Scores an id by a table of one number an item: the oracle is arithmetic that fits in the head.
class TableScorer final : public Scorer {
 public:
  explicit TableScorer(std::vector<float> table) : table_(std::move(table)) {}
  std::int64_t n_items() const noexcept override {
    return static_cast<std::int64_t>(table_.size());
  }
  bool accepts_query(std::int64_t) const noexcept override { return true; }
  Status score(const ScoreTask& task, Scratch&) const noexcept override {
    for (std::size_t i = 0; i < task.ids.size(); ++i) {
      task.scores[i] = table_[static_cast<std::size_t>(task.ids[i])];
    }
    return Status::ok;
  }

 private:
  std::vector<float> table_;
};

class FailingScorer final : public Scorer {
 public:
  std::int64_t n_items() const noexcept override { return kAnyItem; }
  bool accepts_query(std::int64_t) const noexcept override { return true; }
  Status score(const ScoreTask&, Scratch&) const noexcept override { return Status::scorer_failed; }
};

struct Answer {
  Status status;
  RankFailure failure;
  std::vector<std::int64_t> ids;
  std::vector<float> scores;
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> evaluated;
  std::vector<Reason> reason;
};

Answer rank(const Cascade& cascade, const std::vector<std::int64_t>& candidates,
            const std::vector<std::int64_t>& offsets,
            const std::vector<std::int64_t>& depths = {}) {
  const std::size_t n = offsets.size() - 1;
  const RequestBatch batch{{nullptr, static_cast<std::int64_t>(n), 0, 0}, candidates, offsets};
  Answer answer;
  answer.offsets.resize(n + 1);
  answer.evaluated.resize(cascade.stages().size() * n);
  answer.reason.resize(n);
  cascade.plan(batch, depths, answer.evaluated, answer.offsets, answer.reason);
  answer.ids.resize(static_cast<std::size_t>(answer.offsets[n]));
  answer.scores.resize(answer.ids.size());
  answer.status = cascade.rank(batch, answer.evaluated, {answer.ids, answer.scores, answer.offsets},
                               answer.failure);
  return answer;
}

std::shared_ptr<const Scorer> table(std::vector<float> values) {
  return std::make_shared<TableScorer>(std::move(values));
}

using Ids = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("stages narrow by their own scores, and depth decides what a later stage can see") {
  // Item 0 is the best of the second stage and the worst of the first.
  const Cascade cascade(
      {{"coarse", table({0, 1, 2, 3}), 4, 4}, {"fine", table({9, 5, 6, 7}), 2, 4}}, 1);
  CHECK(rank(cascade, {0, 1, 2, 3}, {0, 4}).ids == Ids{3, 2});
  const Answer deep = rank(cascade, {0, 1, 2, 3}, {0, 4}, {4, 4});
  CHECK(deep.ids == Ids{0, 3});
  CHECK(deep.scores == std::vector<float>{9, 7});
  CHECK(deep.evaluated == std::vector<std::int32_t>{4, 4});
}

TEST_CASE("ragged batches, empty requests, repeats and clamped depths") {
  const Cascade cascade({{"one", table({5, 4, 3, 2, 1}), 2, 3}}, 1);
  const Answer answer = rank(cascade, {4, 3, 2, 1, 1}, {0, 3, 3, 5}, {100, 1, 2});
  CHECK(answer.offsets == Ids{0, 2, 2, 4});
  CHECK(answer.ids == Ids{2, 3, 1, 1});
  CHECK(answer.evaluated == std::vector<std::int32_t>{3, 0, 2});
  CHECK(answer.reason == std::vector<Reason>{Reason::clamped, Reason::clamped, Reason::none});
}

TEST_CASE("NaN ranks last, ties by the order before, and NaN is counted") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Cascade cascade(
      {{"one", table({1, nan, 1, -std::numeric_limits<float>::infinity()}), 4, 4}}, 1);
  CHECK(rank(cascade, {1, 3, 2, 0}, {0, 4}).ids == Ids{2, 0, 3, 1});
  CHECK(cascade.counts(0).scored == 4);
  CHECK(cascade.counts(0).nan == 1);
}

TEST_CASE("a failing scorer is named with its requests, and the cascade stays usable") {
  const Cascade cascade(
      {{"fine", table({1, 2, 3}), 3, 3}, {"broken", std::make_shared<FailingScorer>(), 1, 1}}, 1);
  for (int round = 0; round < 3; ++round) {
    const Answer answer = rank(cascade, {0, 1, 2}, {0, 1, 3});
    CHECK(answer.status == Status::scorer_failed);
    CHECK(answer.failure.stage == 1);
    CHECK(answer.failure.first_request == 0);
    CHECK(answer.failure.n_requests == 2);
  }
}

TEST_CASE("the same answer with helpers and from many callers at once") {
  constexpr std::size_t kItems = 5000;
  std::vector<float> coarse(kItems), fine(kItems);
  for (std::size_t i = 0; i < kItems; ++i) {
    coarse[i] = static_cast<float>((i * 7919) % 1000);
    fine[i] = static_cast<float>((i * 104729) % 997);
  }
  Ids candidates, offsets{0};
  for (std::int64_t r = 0; r < 40; ++r) {
    for (std::int64_t i = 0; i < 100 * (r % 7) + r; ++i) {
      candidates.push_back((i * 31 + r) % static_cast<std::int64_t>(kItems));
    }
    offsets.push_back(static_cast<std::int64_t>(candidates.size()));
  }
  const std::vector<Stage> stages{{"coarse", table(coarse), 500, 500},
                                  {"fine", table(fine), 20, 50}};
  const Answer alone = rank(Cascade(stages, 1), candidates, offsets);
  const Cascade shared(stages, 2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 12; ++c) {  // more callers than pooled workspaces
    callers.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        const Answer answer = rank(shared, candidates, offsets);
        if (answer.ids != alone.ids || answer.scores != alone.scores) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong.load() == 0);
}
