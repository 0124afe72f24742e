#include "elastic_rank/uplift.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <thread>
#include <vector>

using namespace elastic_rank;

TEST_CASE("uplift: observed from many threads beside readers and a tick, sums are exact") {
  UpliftEstimator estimator(2, 30.0, INFINITY, 0.0, 1.0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&estimator, t] {
      for (int i = 0; i < 2'000; ++i) {
        (void)estimator.observe(i % 2, (i / 2) % 2 != 0, 0.5, 0.25 * (1 + t % 2));
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const UpliftEstimate estimate = estimator.estimate(i % 2);
    CHECK(estimate.low <= estimate.high);
    estimator.tick();
  }
  for (std::thread& thread : threads) thread.join();
  const UpliftEstimate estimate = estimator.estimate(0);
  // 3 x 500 observations an arm, of weights 4, 2, 4: (4 + 2 + 4)^2 / (16 + 4 + 16) x 500.
  CHECK(estimate.n_base == doctest::Approx(500.0 * 100.0 / 36.0));
  CHECK(estimate.n_strong == estimate.n_base);
  CHECK(estimate.uplift == 0.0);
}

TEST_CASE("uplift: a discount beside observations loses none of them") {
  UpliftEstimator estimator(1, 30.0, 1e9, 0.0, 1.0);
  std::thread observer([&estimator] {
    for (int i = 0; i < 20'000; ++i) (void)estimator.observe(0, true, 1.0, 1.0);
  });
  for (int i = 0; i < 200; ++i) estimator.tick();
  observer.join();
  CHECK(estimator.estimate(0).n_strong == doctest::Approx(20'000.0).epsilon(1e-4));
}
