#include "registrations.hpp"

namespace elastic_rank::bind {

void register_trees(pybind11::module_&) {}

}  // namespace elastic_rank::bind
