#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "errors.hpp"

/// Numbers that know the argument they came in. A plain `double` parameter leaves a wrong type to
/// pybind11, which answers with a list of signatures; these say which argument it was.
namespace elastic_rank::bind {

template <std::size_t N>
struct ArgumentName {
  char text[N];
  consteval ArgumentName(const char (&name)[N]) { std::copy_n(name, N, text); }
};

template <class T, ArgumentName kName>
struct Argument {
  T value{};
  operator T() const noexcept { return value; }
};

template <ArgumentName kName>
using Float = Argument<double, kName>;
template <ArgumentName kName>
using Integer = Argument<std::int64_t, kName>;
template <ArgumentName kName>
using Seed = Argument<std::uint64_t, kName>;

/// Raise `argument: got ...; allowed: ...` for what is no such number.
void read_argument(pybind11::handle given, const char* name, double* value);
void read_argument(pybind11::handle given, const char* name, std::int64_t* value);
void read_argument(pybind11::handle given, const char* name, std::uint64_t* value);

}  // namespace elastic_rank::bind

namespace pybind11::detail {

template <class T, elastic_rank::bind::ArgumentName kName>
struct type_caster<elastic_rank::bind::Argument<T, kName>> {
  using Named = elastic_rank::bind::Argument<T, kName>;
  PYBIND11_TYPE_CASTER(Named, const_name("number"));
  bool load(handle given, bool) {
    elastic_rank::bind::read_argument(given, kName.text, &value.value);
    return true;
  }
};

}  // namespace pybind11::detail
