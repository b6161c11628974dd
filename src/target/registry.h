// Where targets come from: each vendor's folder has one table with a row per target, and a Vendor that reads
// it. The list of vendors stands in registry.cpp.
#pragma once

#include "target/target.h"

namespace tilegen::target {

struct Vendor {
  std::string_view name;
  std::vector<std::string_view> (*names)();
  std::optional<Target> (*find)(std::string_view name);
  bool simulated = false;  // each target is one of the simulator, too
};

namespace host {
extern const Vendor kVendor;
}
namespace nvidia {
extern const Vendor kVendor;
}
namespace amd {
extern const Vendor kVendor;
}

}  // namespace tilegen::target
