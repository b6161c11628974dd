// Identity of the loaded library: the SHA-1 that the linker stamped into it.
#pragma once

#include <string>

namespace tilegen::capi {

// Lower-case hex, or empty where the library was linked without one.
std::string build_id();

}  // namespace tilegen::capi
