#pragma once

#include <string>
#include <vector>

namespace elastic_rank::cuda {

struct DeviceInfo {
  int count = 0;
  int code = 0;        ///< the runtime's error code, 0 when devices were found
  std::string reason;  ///< its text: why there is no device
  std::vector<std::string> names;
  int probe = 0;  ///< 1 when a trivial kernel ran and gave the right answer
};

/// Asks the runtime. No driver is a normal state (code 35 on a machine without one), not an error.
DeviceInfo device_info();

}  // namespace elastic_rank::cuda
