#include "elastic_rank/isa.hpp"

#include <string>

#include "errors.hpp"
#include "registrations.hpp"

namespace py = pybind11;

namespace elastic_rank::bind {

void register_isa(py::module_& module) {
  module.def(
      "active_isa", [] { return std::string(to_string(active_isa())); },
      "The instruction-set level in use.");
  module.def(
      "hardware_isa", [] { return std::string(to_string(hardware_isa())); },
      "The highest level of this machine.");
  module.def(
      "set_active_isa",
      [](const std::string& level) {
        for (int i = 0; i < kIsaLevels; ++i) {
          const Isa isa = static_cast<Isa>(i);
          if (level == to_string(isa)) return std::string(to_string(set_active_isa(isa)));
        }
        raise_value("level", "'" + level + "'", "'portable', 'avx2', 'avx512'");
      },
      py::arg("level"), "Lower or restore the level; returns the one now in use.");
}

}  // namespace elastic_rank::bind
