#include <doctest/doctest.h>

#include <cstdint>

#include "elastic_rank/scratch.hpp"

using elastic_rank::Scratch;
using elastic_rank::ScratchScope;

TEST_CASE("memory is aligned, disjoint and writable to its last element") {
  Scratch scratch;
  for (int n : {1, 63, 64, 65, 5000, 100000}) {
    const auto a = scratch.take<std::uint8_t>(n);
    const auto b = scratch.take<double>(n);
    REQUIRE(a.size() == static_cast<std::size_t>(n));
    CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % 64 == 0);
    a.front() = a.back() = 1;
    b.front() = b.back() = 2.0;
    CHECK(a.back() == 1);
  }
}

TEST_CASE("a second round of the same size allocates nothing") {
  Scratch scratch;
  const auto round = [&] {
    for (int i = 0; i < 20; ++i) (void)scratch.take<float>(1000);
    scratch.reset();
  };
  round();
  const std::size_t held = scratch.capacity();
  for (int i = 0; i < 10; ++i) round();
  CHECK(scratch.capacity() == held);
}

TEST_CASE("a scope gives back what was taken inside, across blocks") {
  Scratch scratch;
  const auto outer = scratch.take<int>(10);
  outer[0] = 7;
  const Scratch::Mark before = scratch.mark();
  {
    const ScratchScope scope(scratch);
    (void)scratch.take<int>(1000000);
  }
  CHECK(scratch.mark().block == before.block);
  CHECK(scratch.mark().used == before.used);
  CHECK(outer[0] == 7);
}

TEST_CASE("nothing and the impossible give an empty span") {
  Scratch scratch;
  CHECK(scratch.take<int>(0).empty());
  CHECK(scratch.take<int>(-1).empty());
  CHECK(scratch.take<double>(std::ptrdiff_t{1} << 60).empty());
  CHECK(scratch.take<int>(1).size() == 1);
}
