#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "elastic_rank/isa.hpp"
#include "elastic_rank/trees.hpp"

namespace er = elastic_rank;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Trees with their storage, and the definition of a score as a recursion over them.
struct Model {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint8_t> kind;
  std::vector<std::int32_t> feature;
  std::vector<float> threshold;
  std::vector<std::int32_t> left;
  std::vector<std::int32_t> right;
  std::vector<std::uint8_t> default_left;
  std::vector<double> value;
  std::vector<std::int64_t> category_offsets{0};
  std::vector<std::uint32_t> categories;

  er::TreeArrays arrays() const {
    return {offsets, kind,         feature, threshold,        left,
            right,   default_left, value,   category_offsets, categories};
  }

  void push(er::TreeNodeKind node_kind) {
    kind.push_back(static_cast<std::uint8_t>(node_kind));
    feature.push_back(0);
    threshold.push_back(0.0F);
    left.push_back(-1);
    right.push_back(-1);
    default_left.push_back(0);
    value.push_back(0.0);
    category_offsets.push_back(static_cast<std::int64_t>(categories.size()));
  }

  void close() { offsets.push_back(static_cast<std::int64_t>(kind.size())); }

  double leaf_of(std::size_t tree, const float* row) const {
    const std::size_t first = static_cast<std::size_t>(offsets[tree]);
    std::size_t node = first;
    while (kind[node] != 0) {
      const float x = row[feature[node]];
      bool go_left = x <= threshold[node];
      if (kind[node] == 2) {
        go_left = false;
        for (std::int64_t i = category_offsets[node]; i < category_offsets[node + 1]; ++i) {
          const auto listed = categories[static_cast<std::size_t>(i)];
          go_left |= x >= 0 && static_cast<double>(listed) == std::trunc(static_cast<double>(x));
        }
      }
      if (std::isnan(x)) go_left = default_left[node] != 0;
      node = first + static_cast<std::size_t>(go_left ? left[node] : right[node]);
    }
    return value[node];
  }
};

Model random_model(std::mt19937& random, int n_trees, int n_leaves, int width) {
  Model model;
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int tree = 0; tree < n_trees; ++tree) {
    const std::size_t first = model.kind.size();
    // Splits first, each hung on a random open place; then leaves on the places that are left.
    std::vector<std::pair<std::size_t, bool>> open;
    const auto hang = [&](std::size_t node) {
      if (open.empty()) return;
      const std::size_t at = static_cast<std::size_t>(below(static_cast<int>(open.size())));
      auto& side = open[at].second ? model.left : model.right;
      side[open[at].first] = static_cast<std::int32_t>(node - first);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (int i = 0; i < n_leaves - 1; ++i) {
      const std::size_t node = model.kind.size();
      if (below(4) == 0) {
        for (int c = below(4); c > 0; --c) {
          model.categories.push_back(static_cast<std::uint32_t>(below(70)));
        }
        model.push(er::TreeNodeKind::categorical);
      } else {
        model.push(er::TreeNodeKind::numerical);
      }
      model.feature[node] = below(width);
      model.threshold[node] = static_cast<float>(below(9) - 4) / 2;
      model.default_left[node] = static_cast<std::uint8_t>(below(2));
      hang(node);
      open.push_back({node, true});
      open.push_back({node, false});
    }
    for (int i = 0; i < n_leaves; ++i) {
      const std::size_t node = model.kind.size();
      model.push(er::TreeNodeKind::leaf);
      model.value[node] = static_cast<double>(below(2000) - 1000) / 64;
      hang(node);
    }
    model.close();
  }
  return model;
}

std::vector<float> random_rows(std::mt19937& random, std::size_t n) {
  std::vector<float> rows(n);
  for (float& x : rows) {
    const auto draw = random() % 20;
    x = draw == 0 ? kNan : static_cast<float>(draw) / 2 - 4;
  }
  return rows;
}

}  // namespace

TEST_CASE("trees: every size, level and number of rows gives the recursion's sum") {
  std::mt19937 random(1);
  const er::Isa before = er::active_isa();
  for (const int n_leaves : {1, 2, 31, 32, 33, 64, 65, 150}) {
    const int width = 7, query_width = 2, n_items = 50;
    const Model model = random_model(random, 6, n_leaves, width);
    REQUIRE(er::fault_of(model.arrays(), width) == nullptr);
    const std::vector<float> items = random_rows(random, n_items * (width - query_width));
    const std::vector<float> query = random_rows(random, 2 * query_width);
    const er::Trees trees(model.arrays(), {2.0, 0.5, er::TreeLink::identity, 1.0}, width,
                          {items.data(), n_items, width - query_width, width - query_width});
    CHECK(trees.accepts_query(query_width));
    CHECK_FALSE(trees.accepts_query(query_width + 1));
    for (const std::int64_t n : {1, 3, 4, 15, 16, 17, 64, 65, 200}) {
      std::vector<std::int64_t> ids;
      for (std::int64_t i = 0; i < n; ++i)
        ids.push_back(static_cast<std::int64_t>(random() % n_items));
      const std::vector<std::int64_t> offsets{0, n / 3, n};
      std::vector<float> scores(ids.size());
      for (const er::Isa isa : {er::Isa::portable, er::Isa::avx2, er::Isa::avx512}) {
        er::set_active_isa(isa);
        er::Scratch scratch;
        const er::ScoreTask task{
            {query.data(), 2, query_width, query_width}, ids, offsets, scores, nullptr};
        REQUIRE(trees.score(task, scratch) == er::Status::ok);
        for (std::size_t i = 0; i < ids.size(); ++i) {
          std::vector<float> row(query.begin() + (static_cast<std::int64_t>(i) < n / 3 ? 0 : 2),
                                 query.begin() + (static_cast<std::int64_t>(i) < n / 3 ? 2 : 4));
          const auto item = items.begin() + ids[i] * (width - query_width);
          row.insert(row.end(), item, item + (width - query_width));
          double sum = 0.0;
          for (std::size_t t = 0; t < 6; ++t) sum += model.leaf_of(t, row.data());
          CHECK(scores[i] == static_cast<float>(sum / 2.0 + 0.5));
        }
      }
    }
  }
  er::set_active_isa(before);
}

TEST_CASE("trees: a call in steady state allocates nothing") {
  std::mt19937 random(2);
  const Model model = random_model(random, 20, 30, 5);
  const std::vector<float> items = random_rows(random, 40 * 4);
  const er::Trees trees(model.arrays(), {}, 5, {items.data(), 40, 4, 4});
  const std::vector<float> query{1.0F};
  const std::vector<std::int64_t> ids(40, 3), offsets{0, 40};
  std::vector<float> scores(40);
  er::Scratch scratch;
  const er::ScoreTask task{{query.data(), 1, 1, 1}, ids, offsets, scores, nullptr};
  REQUIRE(trees.score(task, scratch) == er::Status::ok);
  scratch.reset();
  const std::size_t held = scratch.capacity();
  for (int i = 0; i < 3; ++i) REQUIRE(trees.score(task, scratch) == er::Status::ok);
  CHECK(scratch.capacity() == held);
}

TEST_CASE("trees: faults are named") {
  std::mt19937 random(3);
  const auto fault = [&](auto&& damage) {
    Model model = random_model(random, 2, 4, 3);
    damage(model);
    const char* text = er::fault_of(model.arrays(), 3);
    return std::string(text == nullptr ? "" : text);
  };
  CHECK(fault([](Model&) {}).empty());
  CHECK(fault([](Model& m) { m.left[0] = 0; }) == "a node that has two parents");
  CHECK(fault([](Model& m) { m.right[1] = 99; }) == "a child outside its tree");
  CHECK(fault([](Model& m) { m.feature[0] = 3; }) == "a feature outside the row");
  CHECK(fault([](Model& m) { m.value.back() = std::nan(""); }) == "a leaf that is not finite");
  CHECK(fault([](Model& m) { m.value.pop_back(); }) == "arrays of different lengths");
  CHECK(fault([](Model& m) { m.offsets.resize(1); }) == "no tree");
  CHECK(fault([](Model& m) { m.offsets[1] = 99; }) ==
        "tree offsets that do not rise to the node count");
}
