// Functions of the machine's driver, as a client of the driver has them.
#pragma once

#include <dlfcn.h>

namespace tilegen::test {

template <class... Parameters>
int call(const char* name, Parameters... parameters) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto* function = reinterpret_cast<int (*)(Parameters...)>(driver ? dlsym(driver, name) : nullptr);
  return function ? function(parameters...) : -1;
}

}  // namespace tilegen::test
