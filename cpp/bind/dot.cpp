#include "registrations.hpp"

namespace elastic_rank::bind {

void register_dot(pybind11::module_&) {}

}  // namespace elastic_rank::bind
