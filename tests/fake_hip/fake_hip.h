// What a test tells the fake HIP runtime and asks of it. The library is loaded as the runtime would be;
// these functions are found in it by name (FakeHip).
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct FakeHipLaunch {
  char name[128];
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  int device;
  size_t parameters;
  uint64_t values[16];
  int pooled;  // pieces of pools' memory that its stream has then
};

// FAKE_HIP_CONTROL(result, name, (parameters))
#define FAKE_HIP_CONTROLS                                                                                    \
  /* Forgets calls, launches, failures, modules and memory; one device, gfx942. */                           \
  FAKE_HIP_CONTROL(void, fake_reset, ())                                                                     \
  FAKE_HIP_CONTROL(void, fake_set_devices, (int count))                                                      \
  FAKE_HIP_CONTROL(void, fake_set_architecture, (int device, const char* name))                              \
  FAKE_HIP_CONTROL(void, fake_set_attribute, (int attribute, int value))                                     \
  FAKE_HIP_CONTROL(void, fake_set_version, (int version))                                                    \
  /* The calls of `function` after the next `after` ones give `result`, `times` of them (-1: all). */        \
  FAKE_HIP_CONTROL(void, fake_fail, (const char* function, int result, int after, int times))                \
  FAKE_HIP_CONTROL(int, fake_calls, (const char* function))                                                  \
  FAKE_HIP_CONTROL(int, fake_all_calls, ())                                                                  \
  FAKE_HIP_CONTROL(int, fake_launches, ())                                                                   \
  FAKE_HIP_CONTROL(const FakeHipLaunch*, fake_launch, (int index))                                           \
  /* Launches are recorded and not run. */                                                                   \
  FAKE_HIP_CONTROL(void, fake_run_nothing, (int on))                                                         \
  /* What a failed launch did; "" while there is none. */                                                    \
  FAKE_HIP_CONTROL(const char*, fake_fault, ())                                                              \
  FAKE_HIP_CONTROL(void, fake_set_current, (int device))                                                     \
  FAKE_HIP_CONTROL(int, fake_last_error, ())                                                                 \
  /* While a stream is captured every call that a capture forbids fails, and is counted; those on it are */  \
  /* nodes of the graph that the capture makes. */                                                           \
  FAKE_HIP_CONTROL(void, fake_begin_capture, (void* stream))                                                 \
  FAKE_HIP_CONTROL(void*, fake_end_capture, ())                                                              \
  FAKE_HIP_CONTROL(int, fake_replay, (void* graph))                                                          \
  FAKE_HIP_CONTROL(int, fake_forbidden_calls, ())                                                            \
  FAKE_HIP_CONTROL(int, fake_loaded_modules, ())                                                             \
  FAKE_HIP_CONTROL(int, fake_allocations, ())                                                                \
  FAKE_HIP_CONTROL(int, fake_pooled, (void* stream))

struct FakeHip {
#define FAKE_HIP_CONTROL(result, name, parameters) result(*name) parameters = nullptr;
  FAKE_HIP_CONTROLS
#undef FAKE_HIP_CONTROL

  explicit FakeHip(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) missing(dlerror());
#define FAKE_HIP_CONTROL(result, name, parameters)                \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  if (!name) missing(#name);
    FAKE_HIP_CONTROLS
#undef FAKE_HIP_CONTROL
  }

 private:
  [[noreturn]] static void missing(const char* what) {
    std::fprintf(stderr, "the fake HIP runtime: %s\n", what);
    std::abort();
  }
};
