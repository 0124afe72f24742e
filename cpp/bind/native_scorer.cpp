#include "registrations.hpp"

namespace elastic_rank::bind {

void register_native_scorer(pybind11::module_&) {}

}  // namespace elastic_rank::bind
