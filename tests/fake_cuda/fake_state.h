// What the parts of the fake CUDA driver share: its state, and how every call begins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_cuda.h"

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace fake {

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNotFound = 500,
  kIllegalAddress = 700,
  kCaptureUnsupported = 900,
  kCaptureImplicit = 906
};

constexpr size_t kFunctionCount = 39;  // of the driver

struct Context {
  int device = 0;
  unsigned long long id = 0;
  bool alive = true;
};
struct Module;
// The parameters of an entry: 8-byte slots, then tensor maps, then slots.
struct Entry {
  size_t slots = 0, maps = 0, behind = 0;
  bool waits = false;  // for the kernel before it
  size_t bytes() const {
    return (maps == 0 ? 8 * slots : (8 * slots + 63) / 64 * 64 + 128 * maps) + 8 * behind;
  }
};
struct Stream {
  unsigned long long id = 0;
};
struct Pool {
  int device = 0;
  uint64_t kept = 0;
};
struct FunctionObject {
  char name[128];
  Entry parameters;
  Module* module = nullptr;
  int dynamic_shared = 48 << 10;
  bool large_clusters = false;  // more than 8 blocks may be asked for
};
struct Module {
  Context* context = nullptr;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::unique_ptr<FunctionObject>> functions;
};
struct Failure {
  int result = 0, after = 0, times = 0;
};

struct State {
  std::mutex mutex;
  bool initialized = false;
  int devices = 1, version = 12080;
  std::array<std::array<int, 2>, 16> capability;
  std::array<int, kFunctionCount> calls{};
  std::array<Failure, kFunctionCount> failures{};
  int forbidden = 0, without_context = 0;
  std::array<FakeLaunch, 64> ring{};
  int launches = 0;
  std::map<std::string, FakeKernel> kernels;
  std::string info_log = "ptxas info    : Used 32 registers, 400 bytes cmem[0]", error_log;
  int registers = 32, local_bytes = 0, static_shared = 0, max_threads = 1024;
  std::vector<std::unique_ptr<Context>> contexts;  // never freed: stale handles stay readable
  std::array<Context*, 16> primary{};
  unsigned long long next_id = 1;
  std::set<Module*> modules;
  std::map<uint64_t, size_t> memory;
  std::vector<std::unique_ptr<Stream>> streams;  // never freed
  std::map<void*, unsigned long long> stream_ids;
  std::vector<std::unique_ptr<Pool>> pools;  // never freed
  std::map<uint64_t, void*> pooled;          // memory of pools that a stream has
  void* captured = nullptr;
  bool capturing = false;
  int shared_allowed = 0, load_ms = 0, clusters = 3;
  std::string endless;  // name of a function that never ends once it was launched
  bool stuck = false;
};

// What a thread has of its own lies in memory that the library reserves as it is loaded, and needs no
// destructor: the system ends a process that finds no memory for either later on.
#define FAKE_THREAD_LOCAL [[gnu::tls_model("initial-exec")]] constinit thread_local

// The contexts that a thread has pushed.
class ContextStack {
 public:
  bool empty() const { return size_ == 0; }
  Context* back() const { return items_[size_ - 1]; }
  bool push_back(Context* context) {
    if (size_ == items_.size()) return false;
    items_[size_++] = context;
    return true;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }

 private:
  std::array<Context*, 8> items_{};
  size_t size_ = 0;
};

State& state();
int pooled(const State& s, void* stream);  // pieces of pools' memory that it has
ContextStack& context_stack();             // of this thread
int& capture_mode();                       // of this thread
inline Context* current() { return context_stack().empty() ? nullptr : context_stack().back(); }
// For calls that need a current context; counts those that come without.
inline bool has_context(State& s) {
  if (!current()) ++s.without_context;
  return current() != nullptr;
}
Context* make_context(State& s, int device);
size_t index_of(const char* function);
void reset(State& s);
// Counts a call; what it must give at once, or success.
int enter(State& s, size_t function);

}  // namespace fake

#define ENTER()                                            \
  State& s = state();                                      \
  static const size_t function_index = index_of(__func__); \
  std::unique_lock<std::mutex> lock(s.mutex);              \
  if (const int r = enter(s, function_index)) return r
