// What tests tell the fake CUDA driver and ask of it.
#include "fake_state.h"

using namespace fake;

#define CONTROL()     \
  State& s = state(); \
  std::lock_guard<std::mutex> lock(s.mutex)

FAKE_API void fake_reset() {
  CONTROL();
  reset(s);
}
FAKE_API void fake_set_devices(int count) {
  CONTROL();
  s.devices = count;
}
FAKE_API void fake_set_capability(int device, int major, int minor) {
  CONTROL();
  s.capability[static_cast<size_t>(device)] = {major, minor};
}
FAKE_API void fake_set_version(int version) {
  CONTROL();
  s.version = version;
}
FAKE_API void fake_fail(const char* function, int result, int after, int times) {
  CONTROL();
  s.failures[index_of(function)] = {result, after, times};
}
FAKE_API int fake_calls(const char* function) {
  CONTROL();
  return s.calls[index_of(function)];
}
FAKE_API int fake_all_calls() {
  CONTROL();
  int sum = 0;
  for (int c : s.calls) sum += c;
  return sum;
}
FAKE_API int fake_launches() {
  CONTROL();
  return s.launches;
}
FAKE_API const FakeLaunch* fake_launch(int index) {
  CONTROL();
  return &s.ring[static_cast<size_t>(index) % s.ring.size()];
}
FAKE_API void fake_register(const char* name, FakeKernel kernel) {
  CONTROL();
  s.kernels[name] = kernel;
}
FAKE_API void fake_set_logs(const char* info, const char* error) {
  CONTROL();
  s.info_log = info;
  s.error_log = error;
}
FAKE_API void fake_set_function(int registers, int local_bytes, int static_shared, int max_threads) {
  CONTROL();
  s.registers = registers;
  s.local_bytes = local_bytes;
  s.static_shared = static_shared;
  s.max_threads = max_threads;
}
FAKE_API void* fake_make_context(int device) {
  CONTROL();
  return make_context(s, device);
}
FAKE_API void fake_destroy_context(void* context) {
  CONTROL();
  static_cast<Context*>(context)->alive = false;
}
FAKE_API void fake_set_current(void* context) {
  context_stack().clear();
  if (context) context_stack().push_back(static_cast<Context*>(context));
}
FAKE_API void* fake_current() { return current(); }
FAKE_API void fake_capture(void* stream, int on) {
  CONTROL();
  s.captured = stream;
  s.capturing = on != 0;
}
FAKE_API int fake_forbidden_calls() {
  CONTROL();
  return s.forbidden;
}
FAKE_API int fake_calls_without_context() {
  CONTROL();
  return s.without_context;
}
FAKE_API int fake_loaded_modules() {
  CONTROL();
  return static_cast<int>(s.modules.size());
}
FAKE_API int fake_allocations() {
  CONTROL();
  return static_cast<int>(s.memory.size());
}
FAKE_API int fake_pooled(void* stream) {
  CONTROL();
  return pooled(s, stream);
}
FAKE_API int fake_shared_allowed() {
  CONTROL();
  return s.shared_allowed;
}
FAKE_API void fake_set_clusters(int resident) {
  CONTROL();
  s.clusters = resident;
}
FAKE_API void fake_slow_load(int ms) {
  CONTROL();
  s.load_ms = ms;
}
