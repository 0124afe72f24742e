#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "elastic_rank/isa.hpp"
#include "elastic_rank/mlp.hpp"

using namespace elastic_rank;

namespace {

std::vector<float> normal(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = draw(random);
  return values;
}

struct LevelGuard {
  Isa before = active_isa();
  ~LevelGuard() { set_active_isa(before); }
};

/// A model and its weights, which the model copies.
struct Model {
  std::vector<std::int64_t> widths;
  std::vector<std::vector<float>> weights, biases;
  std::vector<DenseLayer> layers;

  explicit Model(std::vector<std::int64_t> w) : widths(std::move(w)) {
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      const auto seed = static_cast<unsigned>(i) + 10;
      weights.push_back(normal(widths[i] * widths[i + 1], seed));
      biases.push_back(normal(widths[i + 1], seed + 50));
    }
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      layers.push_back({{weights[i].data(), widths[i], widths[i + 1], widths[i + 1]}, biases[i]});
    }
  }

  /// In float64, with the first-order bound on a float32 run's error.
  std::pair<double, double> exact(std::vector<double> x) const {
    std::vector<double> error(x.size(), 0.0);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      std::vector<double> y, y_error;
      for (std::int64_t o = 0; o < widths[l + 1]; ++o) {
        const double bias = static_cast<double>(biases[l][static_cast<std::size_t>(o)]);
        double sum = bias, terms = std::abs(bias), passed = 0.0;
        for (std::size_t k = 0; k < x.size(); ++k) {
          const double w =
              static_cast<double>(layers[l].weight.row(static_cast<std::int64_t>(k))[o]);
          sum += x[k] * w;
          terms += std::abs(x[k] * w);
          passed += error[k] * std::abs(w);
        }
        y.push_back(l + 1 < layers.size() ? std::max(sum, 0.0) : sum);
        y_error.push_back(1.0001 *
                          (passed + static_cast<double>(x.size() + 2) * std::ldexp(terms, -24)));
      }
      x = y;
      error = y_error;
    }
    return {x[0], error[0]};
  }
};

}  // namespace

TEST_CASE("mlp: within the stated error at each level, on a part of a ragged batch") {
  const LevelGuard guard;
  constexpr std::int64_t kItems = 120, kItem = 11, kStride = 13, kQuery = 6;
  const std::vector<float> items = normal(kItems * kStride, 1), query = normal(4 * kQuery, 2);
  const std::vector<std::int64_t> offsets{70, 71, 71, 290, 300};
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 230; ++i) ids.push_back((i * 37) % kItems);
  const auto request_of = [&](std::size_t i) { return i < 1 ? 0 : i < 220 ? 2 : 3; };
  for (const std::vector<std::int64_t>& widths :
       {std::vector<std::int64_t>{17, 1}, {17, 5, 1}, {17, 48, 33, 1}, {17, 64, 16, 1}}) {
    const Model model(widths);
    const Mlp mlp(model.layers, {items.data(), kItems, kItem, kStride});
    for (int level = 0; level <= static_cast<int>(hardware_isa()); ++level) {
      CAPTURE(level);
      set_active_isa(static_cast<Isa>(level));
      std::vector<float> scores(ids.size());
      Scratch scratch;
      REQUIRE(mlp.score({{query.data(), 4, kQuery, kQuery}, ids, offsets, scores}, scratch) ==
              Status::ok);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const float* q = query.data() + request_of(i) * kQuery;
        const float* item = items.data() + ids[i] * kStride;
        std::vector<double> row(q, q + kQuery);
        row.insert(row.end(), item, item + kItem);
        const auto [expected, error] = model.exact(row);
        CHECK(std::abs(static_cast<double>(scores[i]) - expected) <= error);
      }
    }
  }
}

TEST_CASE("mlp: the same bits one row at a time, and no memory taken twice") {
  const LevelGuard guard;
  constexpr std::int64_t kItems = 300, kItem = 20, kQuery = 4;
  const std::vector<float> items = normal(kItems * kItem, 3), query = normal(kQuery, 4);
  const Model model({24, 40, 1});
  const Mlp mlp(model.layers, {items.data(), kItems, kItem, kItem});
  std::vector<std::int64_t> ids(kItems);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  for (int level = 0; level <= static_cast<int>(hardware_isa()); ++level) {
    set_active_isa(static_cast<Isa>(level));
    Scratch scratch;
    std::vector<float> together(ids.size()), alone(ids.size());
    const std::vector<std::int64_t> all{0, kItems}, one{0, 1};
    const MatrixView<const float> q{query.data(), 1, kQuery, kQuery};
    REQUIRE(mlp.score({q, ids, all, together}, scratch) == Status::ok);
    const std::size_t held = scratch.capacity();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      REQUIRE(mlp.score({q, std::span(ids).subspan(i, 1), one, std::span(alone).subspan(i, 1)},
                        scratch) == Status::ok);
    }
    CHECK(std::memcmp(together.data(), alone.data(), ids.size() * sizeof(float)) == 0);
    CHECK(scratch.capacity() == held);
  }
}

TEST_CASE("mlp: which queries fit") {
  const std::vector<float> items(10);
  const Model both({8, 1}), alone({5, 1});
  const Mlp with_query(both.layers, {items.data(), 2, 5, 5});
  CHECK(with_query.accepts_query(3));
  CHECK_FALSE(with_query.accepts_query(0));
  CHECK_FALSE(with_query.accepts_query(8));
  const Mlp items_alone(alone.layers, {items.data(), 2, 5, 5});
  CHECK(items_alone.accepts_query(0));
  CHECK(items_alone.accepts_query(9));
}
