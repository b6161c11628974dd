// A library that looks like libcuda.so.1 to a program that loads it: it hands out handles, keeps "device" memory
// on the host, records what is called, and fails where it is told to. Written from the driver's documentation,
// without CUDA headers and without the headers of the code under test.
//
// TILEGEN_FAKE_CUDA in the environment sets it up for programs that cannot call the controls:
// "devices=2,version=10020,fail=cuInit:100,endless=KERNEL".
#include "fake_cuda.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

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

// Every function, with whether a capture allows it.
struct Function {
  const char* name;
  bool in_capture;
};
constexpr Function kFunctions[] = {
    {"cuInit", true},
    {"cuDriverGetVersion", true},
    {"cuGetErrorName", true},
    {"cuGetErrorString", true},
    {"cuDeviceGetCount", true},
    {"cuDeviceGet", true},
    {"cuDeviceGetName", true},
    {"cuDeviceTotalMem_v2", true},
    {"cuDeviceGetAttribute", true},
    {"cuDevicePrimaryCtxRetain", false},
    {"cuCtxGetCurrent", true},
    {"cuCtxPushCurrent_v2", true},
    {"cuCtxPopCurrent_v2", true},
    {"cuCtxGetDevice", true},
    {"cuCtxGetId", true},
    {"cuModuleLoadDataEx", false},
    {"cuModuleUnload", false},
    {"cuModuleGetFunction", false},
    {"cuFuncGetAttribute", true},
    {"cuFuncSetAttribute", false},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", true},
    {"cuLaunchKernel", true},
    {"cuStreamIsCapturing", true},
    {"cuStreamSynchronize", false},
    {"cuMemAlloc_v2", false},
    {"cuMemFree_v2", false},
    {"cuMemcpyAsync", false},
    {"cuTensorMapEncodeTiled", true},
};
constexpr size_t kCount = std::size(kFunctions);

struct Context {
  int device = 0;
  unsigned long long id = 0;
  bool alive = true;
};
struct Module;
// The parameters of an entry: 8-byte slots, then tensor maps.
struct Entry {
  size_t slots = 0, maps = 0;
  size_t bytes() const { return maps == 0 ? 8 * slots : (8 * slots + 63) / 64 * 64 + 128 * maps; }
};
struct FunctionObject {
  char name[128];
  Entry parameters;
  Module* module = nullptr;
  int dynamic_shared = 48 << 10;
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
  std::array<int, kCount> calls{};
  std::array<Failure, kCount> failures{};
  int forbidden = 0;
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
  void* captured = nullptr;
  bool capturing = false;
  int shared_allowed = 0, load_ms = 0;
  std::string endless;  // name of a function that never ends once it was launched
  bool stuck = false;
};

State& state() {
  static State* const s = new State;
  return *s;
}

thread_local std::vector<Context*> t_stack;

size_t index_of(const char* name) {
  for (size_t i = 0; i < kCount; ++i)
    if (!std::strcmp(kFunctions[i].name, name)) return i;
  std::abort();  // a test names a function that is not here
}

void reset(State& s) {
  s.devices = 1;
  s.version = 12080;
  for (auto& c : s.capability) c = {9, 0};
  s.calls.fill(0);
  s.failures.fill({});
  s.forbidden = s.launches = 0;
  s.kernels.clear();
  s.info_log = "ptxas info    : Used 32 registers, 400 bytes cmem[0]";
  s.error_log.clear();
  s.registers = 32;
  s.local_bytes = s.static_shared = 0;
  s.max_threads = 1024;
  s.primary.fill(nullptr);
  for (Module* m : s.modules) delete m;
  s.modules.clear();
  for (auto& [address, bytes] : s.memory) std::free(reinterpret_cast<void*>(address));
  s.memory.clear();
  s.captured = nullptr;
  s.capturing = false;
  s.shared_allowed = s.load_ms = 0;
  t_stack.clear();
}

void read_environment(State& s) {
  const char* text = std::getenv("TILEGEN_FAKE_CUDA");
  std::istringstream list(text ? text : "");
  for (std::string item; std::getline(list, item, ',');) {
    const std::string key = item.substr(0, item.find('=')), value = item.substr(item.find('=') + 1);
    if (key == "devices") s.devices = std::atoi(value.c_str());
    if (key == "version") s.version = std::atoi(value.c_str());
    if (key == "capability") s.capability.fill({std::atoi(value.c_str()) / 10, std::atoi(value.c_str()) % 10});
    if (key == "endless") s.endless = value;
    if (key == "fail")
      s.failures[index_of(value.substr(0, value.find(':')).c_str())] = {
          std::atoi(value.c_str() + value.find(':') + 1), 0, -1};
  }
}

[[maybe_unused]] const bool g_ready = [] {
  reset(state());
  read_environment(state());
  return true;
}();

// Counts a call; what it must give at once, or success.
int enter(State& s, size_t i) {
  ++s.calls[i];
  if (s.capturing && !kFunctions[i].in_capture) {
    ++s.forbidden;
    return kCaptureUnsupported;
  }
  Failure& f = s.failures[i];
  if (f.times == 0) return kSuccess;
  if (f.after > 0) {
    --f.after;
    return kSuccess;
  }
  if (f.times > 0) --f.times;
  return f.result;
}

#define ENTER()                                           \
  State& s = state();                                     \
  static const size_t function_index = index_of(__func__); \
  std::unique_lock<std::mutex> lock(s.mutex);             \
  if (const int r = enter(s, function_index)) return r

Context* current() { return t_stack.empty() ? nullptr : t_stack.back(); }

Context* make_context(State& s, int device) {
  s.contexts.push_back(std::make_unique<Context>());
  s.contexts.back()->device = device;
  s.contexts.back()->id = s.next_id++;
  return s.contexts.back().get();
}

// Names and parameters of the `.entry` declarations of a PTX text.
[[maybe_unused]] std::map<std::string, Entry> entries_of(const std::string& ptx) {
  std::map<std::string, Entry> found;
  for (size_t at = ptx.find(".entry"); at != std::string::npos; at = ptx.find(".entry", at + 1)) {
    size_t begin = at + 6;
    while (begin < ptx.size() && std::isspace(static_cast<unsigned char>(ptx[begin]))) ++begin;
    size_t end = begin;
    while (end < ptx.size() && (std::isalnum(static_cast<unsigned char>(ptx[end])) || ptx[end] == '_')) ++end;
    Entry& parameters = found[ptx.substr(begin, end - begin)];
    const size_t open = ptx.find_first_of("({", end);
    if (open == std::string::npos || ptx[open] == '{') continue;
    const size_t close = ptx.find(')', open);
    for (size_t p = ptx.find(".param", open); p < close; p = ptx.find(".param", p + 1)) {
      const size_t comma = std::min(ptx.find(',', p), close);
      ++(ptx.substr(p, comma - p).find("[128]") == std::string::npos ? parameters.slots : parameters.maps);
    }
  }
  return found;
}

struct ErrorName {
  int result;
  const char *name, *text;
};
constexpr ErrorName kErrors[] = {{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
                                 {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
                                 {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
                                 {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
                                 {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
                                 {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
                                  "the provided PTX was compiled with an unsupported toolchain."},
                                 {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
                                 {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
                                 {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
                                 {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
                                 {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
                                  "system has unsupported display driver / cuda driver combination"},
                                 {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
                                  "operation not permitted when stream is capturing"}};

int find_error(int error, const char** out, const char* ErrorName::*text) {
  for (const ErrorName& e : kErrors)
    if (e.result == error) return *out = e.*text, kSuccess;
  *out = nullptr;
  return kInvalidValue;
}

int attribute_of(const State& s, int attribute, int device) {
  switch (attribute) {
    case 1:
      return 1024;
    case 5:
      return 0x7fffffff;
    case 6:
    case 7:
      return 65535;
    case 16:
      return 132;
    case 39:
      return 2048;
    case 75:
      return s.capability[static_cast<size_t>(device)][0];
    case 76:
      return s.capability[static_cast<size_t>(device)][1];
    case 81:
      return 228 << 10;
    case 97:
      return 227 << 10;
    case 106:
      return 32;
    case 111:
      return 1 << 10;
  }
  return -1;
}

}  // namespace

// ------------------------------------------------------------------------------------------ the driver's functions

FAKE_API int cuInit(unsigned flags) {
  ENTER();
  if (flags != 0) return kInvalidValue;
  if (s.devices == 0) return kNoDevice;
  s.initialized = true;
  return kSuccess;
}
FAKE_API int cuDriverGetVersion(int* version) {
  ENTER();
  *version = s.version;
  return kSuccess;
}
FAKE_API int cuGetErrorName(int error, const char** text) {
  ENTER();
  return find_error(error, text, &ErrorName::name);
}
FAKE_API int cuGetErrorString(int error, const char** text) {
  ENTER();
  return find_error(error, text, &ErrorName::text);
}
FAKE_API int cuDeviceGetCount(int* count) {
  ENTER();
  *count = s.devices;
  return s.initialized ? kSuccess : kNotInitialized;
}
FAKE_API int cuDeviceGet(int* device, int ordinal) {
  ENTER();
  if (ordinal < 0 || ordinal >= s.devices) return kInvalidDevice;
  *device = 100 + ordinal;  // a handle is not the ordinal
  return kSuccess;
}
FAKE_API int cuDeviceGetName(char* name, int size, int device) {
  ENTER();
  std::strncpy(name, device == 100 ? "Fake H200" : "Fake L4", static_cast<size_t>(size));
  return kSuccess;
}
FAKE_API int cuDeviceTotalMem_v2(size_t* bytes, int) {
  ENTER();
  *bytes = size_t{1} << 30;
  return kSuccess;
}
FAKE_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER();
  *value = attribute_of(s, attribute, device - 100);
  return *value < 0 ? kInvalidValue : kSuccess;
}
FAKE_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  Context*& primary = s.primary[static_cast<size_t>(device - 100)];
  if (!primary) primary = make_context(s, device - 100);
  *context = primary;
  return kSuccess;
}
FAKE_API int cuCtxGetCurrent(void** context) {
  ENTER();
  *context = current();
  return kSuccess;
}
FAKE_API int cuCtxPushCurrent_v2(void* context) {
  ENTER();
  if (!context || !static_cast<Context*>(context)->alive) return kInvalidContext;
  t_stack.push_back(static_cast<Context*>(context));
  return kSuccess;
}
FAKE_API int cuCtxPopCurrent_v2(void** context) {
  ENTER();
  if (t_stack.empty()) return kInvalidContext;
  *context = t_stack.back();
  t_stack.pop_back();
  return kSuccess;
}
FAKE_API int cuCtxGetDevice(int* device) {
  ENTER();
  if (!current()) return kInvalidContext;
  *device = 100 + current()->device;
  return kSuccess;
}
#ifndef FAKE_CUDA_OLD
FAKE_API int cuCtxGetId(void* context, unsigned long long* id) {
  ENTER();
  if (!static_cast<Context*>(context)->alive) return kInvalidContext;
  *id = static_cast<Context*>(context)->id;
  return kSuccess;
}
FAKE_API int cuStreamIsCapturing(void* stream, int* status) {
  ENTER();
  if (s.capturing && !stream && s.captured) return kCaptureImplicit;
  *status = s.capturing && stream == s.captured ? 1 : 0;
  return kSuccess;
}
#endif
#ifndef FAKE_CUDA_INCOMPLETE
FAKE_API int cuModuleLoadDataEx(void** module, const void* image, unsigned count, const int* names, void** values) {
  State& s = state();
  std::unique_lock<std::mutex> lock(s.mutex);
  const int failed = enter(s, index_of(__func__));
  const std::string text(static_cast<const char*>(image));
  bool verbose = false;
  std::array<char*, 2> buffer{};
  std::array<size_t, 2> size{};
  for (unsigned i = 0; i < count; ++i) {
    if (names[i] == 3) buffer[0] = static_cast<char*>(values[i]);
    if (names[i] == 4) size[0] = reinterpret_cast<uintptr_t>(values[i]);
    if (names[i] == 5) buffer[1] = static_cast<char*>(values[i]);
    if (names[i] == 6) size[1] = reinterpret_cast<uintptr_t>(values[i]);
    if (names[i] == 12) verbose = values[i] != nullptr;
  }
  const std::string* logs[] = {&s.info_log, &s.error_log};
  for (size_t i = 0; i < 2; ++i)
    if (buffer[i] && (i == 1 || verbose))
      std::strncpy(buffer[i], logs[i]->c_str(), std::min(size[i], logs[i]->size() + 1));
  if (failed) return failed;
  if (!current()) return kInvalidContext;
  if (text.find(".version") == std::string::npos) return kInvalidImage;
  if (s.load_ms > 0) {
    lock.unlock();
    usleep(static_cast<useconds_t>(s.load_ms) * 1000);
    lock.lock();
  }
  auto* made = new Module;
  made->context = current();
  made->entries = entries_of(text);
  s.modules.insert(made);
  *module = made;
  return kSuccess;
}
#endif
FAKE_API int cuModuleUnload(void* module) {
  ENTER();
  auto* m = static_cast<Module*>(module);
  if (!s.modules.count(m) || current() != m->context) return kInvalidContext;
  s.modules.erase(m);
  delete m;
  return kSuccess;
}
FAKE_API int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER();
  auto* m = static_cast<Module*>(module);
  const auto entry = m->entries.find(name);
  if (entry == m->entries.end()) return kNotFound;
  auto& object = m->functions[name];
  if (!object) {
    object = std::make_unique<FunctionObject>();
    std::strncpy(object->name, name, sizeof object->name - 1);
    object->name[sizeof object->name - 1] = 0;
    object->parameters = entry->second;
    object->module = m;
  }
  *function = object.get();
  return kSuccess;
}
FAKE_API int cuFuncGetAttribute(int* value, int attribute, void*) {
  ENTER();
  switch (attribute) {
    case 0:
      return *value = s.max_threads, kSuccess;
    case 1:
      return *value = s.static_shared, kSuccess;
    case 3:
      return *value = s.local_bytes, kSuccess;
    case 4:
      return *value = s.registers, kSuccess;
  }
  return kInvalidValue;
}
FAKE_API int cuFuncSetAttribute(void* function, int attribute, int value) {
  ENTER();
  if (attribute != 8 || value > (227 << 10)) return kInvalidValue;
  static_cast<FunctionObject*>(function)->dynamic_shared = value;
  s.shared_allowed = std::max(s.shared_allowed, value);
  return kSuccess;
}
FAKE_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, size_t) {
  ENTER();
  *blocks = 2048 / std::max(threads, 1) / 2;
  return kSuccess;
}
FAKE_API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared_bytes, void* stream, void** parameters, void** extra) {
  ENTER();
  auto* f = static_cast<FunctionObject*>(function);
  if (!current() || current() != f->module->context) return kInvalidContext;
  if (gx == 0 || gy == 0 || gz == 0 || bx * by * bz == 0 || bx * by * bz > 1024) return kInvalidValue;
  if (shared_bytes > static_cast<unsigned>(f->dynamic_shared)) return kInvalidValue;
  FakeLaunch& record = s.ring[static_cast<size_t>(s.launches++) % s.ring.size()];
  std::memcpy(record.name, f->name, sizeof record.name);
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  std::copy(grid, grid + 3, record.grid);
  std::copy(block, block + 3, record.block);
  record.shared_bytes = shared_bytes;
  s.stuck |= s.endless == f->name;
  record.stream = stream;
  record.context = current();
  record.parameters = f->parameters.slots;
  record.maps = f->parameters.maps;
  if (parameters && extra) return kInvalidValue;
  if (extra && f->parameters.maps > 0) return kInvalidValue;  // a driver may lay aligned parameters out in another way
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** e = extra; e && *e; e += 2) {
    if (reinterpret_cast<uintptr_t>(e[0]) == 1) buffer = e[1];
    if (reinterpret_cast<uintptr_t>(e[0]) == 2) bytes = *static_cast<size_t*>(e[1]);
  }
  if (extra && bytes != f->parameters.bytes()) return kInvalidValue;
  for (size_t i = 0; i < std::min<size_t>(f->parameters.slots, 16); ++i)
    std::memcpy(&record.values[i], extra ? static_cast<const char*>(buffer) + 8 * i : parameters[i], 8);
  for (size_t i = 0; i < f->parameters.maps; ++i) {
    FakeTensorMap map;
    std::memcpy(&map, parameters[f->parameters.slots + i], sizeof map);
    if (map.magic != kFakeTensorMap) return kInvalidValue;
    if (i < 4) record.map[i] = map;
  }
  for (const auto& [name, kernel] : s.kernels)
    if (name == f->name) kernel(&record);
  return kSuccess;
}
#ifndef FAKE_CUDA_OLD
// The rules are those of the driver's documentation, "Tensor Map Object Management".
FAKE_API int cuTensorMapEncodeTiled(void* out, int type, uint32_t rank, void* address, const uint64_t* extents,
                                    const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                                    int interleave, int swizzle, int promotion, int fill) {
  ENTER();
  static constexpr int kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  static constexpr int kWidest[] = {0, 32, 64, 128};  // inner box by swizzle
  static_assert(sizeof(FakeTensorMap) <= 128);
  if (reinterpret_cast<uintptr_t>(out) % 64 != 0 || reinterpret_cast<uintptr_t>(address) % 16 != 0) return kInvalidValue;
  if (type < 0 || type > 12 || rank < 1 || rank > 5 || interleave != 0 || swizzle < 0 || swizzle > 3) return kInvalidValue;
  if (promotion < 0 || promotion > 3 || fill != 0) return kInvalidValue;
  FakeTensorMap map{};
  map.magic = kFakeTensorMap;
  map.rank = static_cast<uint16_t>(rank), map.type = static_cast<uint16_t>(type);
  map.swizzle = static_cast<uint16_t>(swizzle);
  map.address = reinterpret_cast<uint64_t>(address);
  for (uint32_t d = 0; d < rank; ++d) {
    if (extents[d] == 0 || extents[d] > (uint64_t{1} << 32)) return kInvalidValue;
    if (box[d] == 0 || box[d] > 256 || element_strides[d] != 1) return kInvalidValue;
    map.extents[d] = extents[d];
    map.box[d] = static_cast<uint16_t>(box[d]);
    if (d + 1 == rank) continue;
    if (strides[d] % 16 != 0 || strides[d] == 0 || strides[d] >= (uint64_t{1} << 40)) return kInvalidValue;
    map.strides[d] = strides[d];
  }
  const int inner = static_cast<int>(box[0]) * kBytes[type];
  if (inner % 16 != 0 || (swizzle > 0 && inner > kWidest[swizzle])) return kInvalidValue;
  std::memset(out, 0, 128);
  std::memcpy(out, &map, sizeof map);
  return kSuccess;
}
#endif
FAKE_API int cuStreamSynchronize(void*) {
  ENTER();
  lock.unlock();
  while (s.stuck) std::this_thread::sleep_for(std::chrono::hours(1));
  return kSuccess;
}
FAKE_API int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  ENTER();
  if (!current()) return kInvalidContext;
  if (bytes > (size_t{1} << 30)) return kOutOfMemory;
  *address = reinterpret_cast<uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  s.memory[*address] = bytes;
  return kSuccess;
}
FAKE_API int cuMemFree_v2(uint64_t address) {
  ENTER();
  if (!s.memory.erase(address)) return kInvalidValue;
  std::free(reinterpret_cast<void*>(address));
  return kSuccess;
}
FAKE_API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void*) {
  ENTER();
  if (!current()) return kInvalidContext;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}

// ------------------------------------------------------------------------------------------ the controls

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
  t_stack.clear();
  if (context) t_stack.push_back(static_cast<Context*>(context));
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
FAKE_API int fake_loaded_modules() {
  CONTROL();
  return static_cast<int>(s.modules.size());
}
FAKE_API int fake_allocations() {
  CONTROL();
  return static_cast<int>(s.memory.size());
}
FAKE_API int fake_shared_allowed() {
  CONTROL();
  return s.shared_allowed;
}
FAKE_API void fake_slow_load(int ms) {
  CONTROL();
  s.load_ms = ms;
}
