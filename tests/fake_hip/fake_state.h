// What the parts of the fake HIP runtime share: its state, and how every call begins and ends.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "code_object.h"
#include "fake_hip.h"

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace fake {

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidConfiguration = 9,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kIllegalAddress = 700,
  kCaptureUnsupported = 900,
  kCaptureImplicit = 906
};

struct Module;
struct FunctionObject {
  std::string name;
  Module* module = nullptr;
};
struct Module {
  int device = 0;
  std::unique_ptr<tilegen::amdemu::CodeObject> code;
  std::map<std::string, FunctionObject> functions;
};
struct Allocation {
  size_t bytes = 0;
  int device = 0;
  bool of_pool = false;
  void* stream = nullptr;  // that has it, of a pool's
};
struct Pool {
  int device = 0;
};
struct Node {
  FunctionObject* function = nullptr;
  FakeHipLaunch launch{};
  std::vector<uint64_t> arguments;
};
struct Graph {
  std::vector<Node> nodes;
};
struct Failure {
  int result = 0, after = 0, times = 0;
};

struct State {
  std::mutex mutex;
  bool initialized = false, run_nothing = false;
  int devices = 1, version = 60'240'091;
  std::array<std::string, 8> architecture;
  std::map<int, int> attributes;  // that a test has set
  std::map<std::string, int> calls;
  std::map<std::string, Failure> failures;
  int all_calls = 0, forbidden = 0;
  std::vector<FakeHipLaunch> launches;
  std::set<Module*> modules;
  std::map<uint64_t, Allocation> memory;
  std::vector<std::unique_ptr<Pool>> pools;    // never freed
  std::vector<std::unique_ptr<char>> streams;  // never freed
  std::vector<std::unique_ptr<Graph>> graphs;  // never freed
  std::unique_ptr<Graph> capturing;
  void* captured = nullptr;
  std::string fault;  // of a launch: every device is lost with it
};

State& state();
void reset(State& s);
int pooled(const State& s, void* stream);  // pieces of pools' memory that it has

#define FAKE_THREAD_LOCAL constinit thread_local
int& current_device();  // of this thread
int& last_error();      // of this thread
int& capture_mode();    // of this thread

// Whether a capture allows a call.
enum class InCapture : bool { no, yes };

// Counts a call; what it must give at once, or success.
int enter(State& s, const char* name, InCapture allowed);

template <class Body>
int call(const char* name, InCapture allowed, Body&& body) {
  State& s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  int result = enter(s, name, allowed);
  if (result == kSuccess) result = body(s);
  if (result != kSuccess) last_error() = result;
  return result;
}

// Runs a node on the interpreter; sets the fault where it fails.
int run(State& s, const Node& node);

}  // namespace fake
