#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>

#include "elastic_rank/cascade.hpp"
#include "elastic_rank/status.hpp"

namespace elastic_rank::bind {

/// Raises `ValueError` "argument: got value; allowed". Every message of the library has this form.
[[noreturn]] void raise_value(const std::string& argument, const std::string& got,
                              const std::string& allowed);
/// The same as `TypeError`.
[[noreturn]] void raise_type(const std::string& argument, const std::string& got,
                             const std::string& allowed);
/// Raises what a failed core call means; returns on `Status::ok`.
void check(Status status, const char* call);
/// Raises `ScorerError(stage, requests)` with the scorer's own exception as its cause.
[[noreturn]] void raise_scorer_error(const std::string& stage, const RankFailure& failure);

}  // namespace elastic_rank::bind
