#include "elastic_rank/share.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "elastic_rank/segments.hpp"

using namespace elastic_rank;

TEST_CASE("share: kept to a tenth of a point, whatever the order of the scores") {
  for (const double target : {0.05, 0.3, 0.7}) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    ShareController rising(target, 100, 10.0, 0), drawn(target, 100, 10.0, 0);
    for (int i = 0; i < 10'000; ++i) {
      rising.decide(i);
      drawn.decide(normal(random));
    }
    CHECK(std::abs(rising.share() - target) <= 1e-3);
    CHECK(std::abs(drawn.share() - target) <= 1e-3);
    CHECK(ShareController::valid(drawn.state()));
  }
}

TEST_CASE("share: what is not finite is counted and changes nothing") {
  ShareController controller(0.5, 4, 10.0, 0);
  controller.decide(1.0);
  const double debt = controller.state().debt;
  CHECK_FALSE(controller.decide(std::numeric_limits<double>::quiet_NaN()));
  controller.pass(std::numeric_limits<double>::infinity());
  CHECK(controller.state().refused == 2);
  CHECK(controller.state().debt == debt);
  CHECK(controller.state().scores.size() == 1);
}

TEST_CASE("share: a window in use keeps its memory") {
  ShareController controller(0.5, 16, 10.0, 0);
  controller.decide(0.0);
  const double* const memory = controller.state().scores.data();
  for (int i = 0; i < 100; ++i) controller.decide(i % 7);
  CHECK(controller.state().scores.data() == memory);
}

TEST_CASE("segments: no edge, one edge, values on the edge") {
  CHECK(Segments({}).of(5.0) == 0);
  const Segments one({1.0});
  CHECK(one.of(0.5) == 0);
  CHECK(one.of(1.0) == 1);
  CHECK(one.of(std::numeric_limits<double>::infinity()) == 1);
  CHECK(one.of(std::numeric_limits<double>::quiet_NaN()) == -1);
  std::vector<double> same(10, 2.0);
  CHECK(Segments::fit(same, 4).size() == 1);
}
