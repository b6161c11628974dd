// The controls of the fake CUDA driver, found in the library that a test loads.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "fake_cuda.h"

struct FakeCuda {
#define FAKE_CUDA_CONTROL(result, name, parameters) result(*name) parameters = nullptr;
  FAKE_CUDA_CONTROLS
#undef FAKE_CUDA_CONTROL

  explicit FakeCuda(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) missing(dlerror());
#define FAKE_CUDA_CONTROL(result, name, parameters)                \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  if (!name) missing(#name);
    FAKE_CUDA_CONTROLS
#undef FAKE_CUDA_CONTROL
  }

 private:
  [[noreturn]] static void missing(const char* what) {
    std::fprintf(stderr, "the fake CUDA driver: %s\n", what);
    std::abort();
  }
};
