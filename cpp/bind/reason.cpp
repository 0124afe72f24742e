#include "elastic_rank/reason.hpp"

#include <pybind11/native_enum.h>

#include <cctype>
#include <string>

#include "registrations.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {

void register_reason(py::module_& module) {
  py::native_enum<Reason> reason(module, "Reason", "enum.IntEnum",
                                 "Why a request got what it got; shared by metrics, tickets and "
                                 "headers.");
  for (std::size_t i = 0; i < kReasonNames.size(); ++i) {
    std::string name(kReasonNames[i]);
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    reason.value(name.c_str(), static_cast<Reason>(i));
  }
  reason.finalize();
}

}  // namespace elastic_rank::bind
