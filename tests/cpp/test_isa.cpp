#include <doctest/doctest.h>

#include "elastic_rank/isa.hpp"
#include "elastic_rank/reason.hpp"

using namespace elastic_rank;

TEST_CASE("the level can be lowered and restored, never raised past the hardware") {
  const Isa before = active_isa();
  CHECK(before <= hardware_isa());
  CHECK(set_active_isa(Isa::portable) == Isa::portable);
  CHECK(active_isa() == Isa::portable);
  CHECK(set_active_isa(Isa::avx512) == hardware_isa());
  set_active_isa(before);
}

TEST_CASE("every reason has a name of its own") {
  for (std::size_t i = 0; i < kReasonNames.size(); ++i) {
    CHECK(to_string(static_cast<Reason>(i)) == kReasonNames[i]);
    CHECK(!kReasonNames[i].empty());
    for (std::size_t j = 0; j < i; ++j) CHECK(kReasonNames[i] != kReasonNames[j]);
  }
  CHECK(to_string(static_cast<Reason>(200)) == "unknown");
  CHECK(kReasonNames.size() == static_cast<std::size_t>(Reason::bad_input) + 1);
}
