#include "registrations.hpp"

namespace elastic_rank::bind {

void register_latency_sketch(pybind11::module_&) {}

}  // namespace elastic_rank::bind
