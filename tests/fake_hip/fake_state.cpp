// A library that looks like libamdhip64.so to a program that loads it: it keeps "device" memory on the
// host, runs what is launched on the interpreter of gfx942 and gfx90a machine code as soon as it is
// launched, records what is called, and fails where it is told to. Written from HIP's documentation,
// without its headers and without the headers of the code under test.
//
// TILEGEN_FAKE_HIP in the environment sets it up for programs that cannot call the controls:
// "devices=2,architecture=gfx90a,version=50700000,fail=hipMalloc:2".
#include "fake_state.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace fake {

State& state() {
  static State* const s = new State;
  return *s;
}

int pooled(const State& s, void* stream) {
  return static_cast<int>(std::count_if(s.memory.begin(), s.memory.end(), [&](const auto& piece) {
    return piece.second.of_pool && piece.second.stream == stream;
  }));
}

int& current_device() {
  FAKE_THREAD_LOCAL static int device = 0;
  return device;
}
int& last_error() {
  FAKE_THREAD_LOCAL static int error = 0;
  return error;
}
int& capture_mode() {
  FAKE_THREAD_LOCAL static int mode = 0;
  return mode;
}

void reset(State& s) {
  s.initialized = s.run_nothing = false;
  s.devices = 1;
  s.version = 60'240'091;
  s.architecture.fill("gfx942:sramecc+:xnack-");
  s.attributes.clear();
  s.calls.clear();
  s.failures.clear();
  s.all_calls = s.forbidden = 0;
  s.launches.clear();
  for (Module* m : s.modules) delete m;
  s.modules.clear();
  for (auto& [address, allocation] : s.memory) std::free(reinterpret_cast<void*>(address));
  s.memory.clear();
  s.capturing.reset();
  s.captured = nullptr;
  s.fault.clear();
  current_device() = last_error() = capture_mode() = 0;
}

int enter(State& s, const char* name, InCapture allowed) {
  ++s.calls[name];
  ++s.all_calls;
  constexpr int kRelaxed = 2;
  if (s.capturing && allowed == InCapture::no && capture_mode() != kRelaxed) {
    ++s.forbidden;
    return kCaptureUnsupported;
  }
  Failure& f = s.failures[name];
  if (f.times == 0) return kSuccess;
  if (f.after > 0) {
    --f.after;
    return kSuccess;
  }
  if (f.times > 0) --f.times;
  return f.result;
}

namespace {

void read_environment(State& s) {
  const char* text = std::getenv("TILEGEN_FAKE_HIP");
  std::istringstream list(text ? text : "");
  for (std::string item; std::getline(list, item, ',');) {
    const std::string key = item.substr(0, item.find('=')), value = item.substr(item.find('=') + 1);
    if (key == "devices") s.devices = std::atoi(value.c_str());
    if (key == "version") s.version = std::atoi(value.c_str());
    if (key == "architecture") s.architecture.fill(value);
    if (key == "fail")
      s.failures[value.substr(0, value.find(':'))] = {std::atoi(value.c_str() + value.find(':') + 1), 0, -1};
  }
}

[[maybe_unused]] const bool g_ready = [] {
  reset(state());
  read_environment(state());
  return true;
}();

}  // namespace
}  // namespace fake

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
FAKE_API void fake_set_architecture(int device, const char* name) {
  CONTROL();
  s.architecture[static_cast<size_t>(device)] = name;
}
FAKE_API void fake_set_attribute(int attribute, int value) {
  CONTROL();
  s.attributes[attribute] = value;
}
FAKE_API void fake_set_version(int version) {
  CONTROL();
  s.version = version;
}
FAKE_API void fake_fail(const char* function, int result, int after, int times) {
  CONTROL();
  s.failures[function] = {result, after, times};
}
FAKE_API int fake_calls(const char* function) {
  CONTROL();
  return s.calls[function];
}
FAKE_API int fake_all_calls() {
  CONTROL();
  return s.all_calls;
}
FAKE_API int fake_launches() {
  CONTROL();
  return static_cast<int>(s.launches.size());
}
FAKE_API const FakeHipLaunch* fake_launch(int index) {
  CONTROL();
  return &s.launches.at(static_cast<size_t>(index));
}
FAKE_API void fake_run_nothing(int on) {
  CONTROL();
  s.run_nothing = on != 0;
}
FAKE_API const char* fake_fault() {
  CONTROL();
  return s.fault.c_str();
}
FAKE_API void fake_set_current(int device) { current_device() = device; }
FAKE_API int fake_last_error() { return last_error(); }
FAKE_API void fake_begin_capture(void* stream) {
  CONTROL();
  s.capturing = std::make_unique<Graph>();
  s.captured = stream;
}
FAKE_API void* fake_end_capture() {
  CONTROL();
  s.captured = nullptr;
  s.graphs.push_back(std::move(s.capturing));
  return s.graphs.back().get();
}
FAKE_API int fake_replay(void* graph) {
  CONTROL();
  for (const Node& node : static_cast<Graph*>(graph)->nodes)
    if (const int result = run(s, node); result != kSuccess) return result;
  return kSuccess;
}
FAKE_API int fake_forbidden_calls() {
  CONTROL();
  return s.forbidden;
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
