// The fake CUDA driver: launches, tensor maps, streams and memory.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "fake_state.h"

using namespace fake;

namespace {
int launch(State& s, void* function, unsigned cluster, bool dependent, unsigned gx, unsigned gy, unsigned gz,
           unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes, void* stream, void** parameters,
           void** extra) {
  auto* f = static_cast<FunctionObject*>(function);
  if (!has_context(s) || current() != f->module->context) return kInvalidContext;
  if (gx == 0 || gy == 0 || gz == 0 || bx * by * bz == 0 || bx * by * bz > 1024) return kInvalidValue;
  if (shared_bytes > static_cast<unsigned>(f->dynamic_shared)) return kInvalidValue;
  FakeLaunch& record = s.ring[static_cast<size_t>(s.launches++) % s.ring.size()];
  std::memcpy(record.name, f->name, sizeof record.name);
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  std::copy(grid, grid + 3, record.grid);
  std::copy(block, block + 3, record.block);
  record.shared_bytes = shared_bytes;
  record.cluster = cluster;
  record.dependent = dependent;
  // a driver would run it beside what it depends on
  if (dependent && !f->parameters.waits) return kInvalidValue;
  s.stuck |= s.endless == f->name;
  record.stream = stream;
  record.pooled = pooled(s, stream);
  record.context = current();
  record.parameters = f->parameters.slots;
  record.maps = f->parameters.maps;
  if (parameters && extra) return kInvalidValue;
  // a driver may lay aligned parameters out in another way
  if (extra && f->parameters.maps > 0) return kInvalidValue;
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
  record.behind = 0;
  if (f->parameters.behind > 1) return kInvalidValue;
  if (f->parameters.behind > 0)
    std::memcpy(&record.behind, parameters[f->parameters.slots + f->parameters.maps], sizeof record.behind);
  for (const auto& [name, kernel] : s.kernels)
    if (name == f->name) kernel(&record);
  return kSuccess;
}
}  // namespace
FAKE_API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared_bytes, void* stream, void** parameters,
                            void** extra) {
  ENTER();
  return launch(s, function, 1, false, gx, gy, gz, bx, by, bz, shared_bytes, stream, parameters, extra);
}
#ifndef FAKE_CUDA_OLD
namespace {
// CUlaunchConfig and CUlaunchAttribute, as the driver's documentation lays them out.
struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
  };
};
struct LaunchConfig {
  unsigned gx, gy, gz, bx, by, bz, shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned count;
};
// What attributes ask for; false: something that is none of the fake's.
struct Asked {
  unsigned cluster = 1;  // blocks, all along x
  bool dependent = false;
};
bool read(const LaunchConfig* c, const void* function, Asked& asked) {
  for (unsigned a = 0; a < c->count; ++a) {
    const LaunchAttribute& attribute = c->attributes[a];
    if (attribute.id == 6 && attribute.cluster.x <= 1) {
      asked.dependent = attribute.cluster.x == 1;
    } else if (attribute.id == 4 && attribute.cluster.y == 1 && attribute.cluster.z == 1) {
      asked.cluster = attribute.cluster.x;
    } else {
      return false;
    }
  }
  const unsigned largest = static_cast<const FunctionObject*>(function)->large_clusters ? 16 : 8;
  return asked.cluster <= largest && asked.cluster > 0 && c->gx % asked.cluster == 0;
}
}  // namespace
FAKE_API int cuLaunchKernelEx(const LaunchConfig* c, void* function, void** parameters, void** extra) {
  ENTER();
  Asked asked;
  if (!read(c, function, asked)) return kInvalidValue;
  return launch(s, function, asked.cluster, asked.dependent, c->gx, c->gy, c->gz, c->bx, c->by, c->bz,
                c->shared_bytes, c->stream, parameters, extra);
}
FAKE_API int cuOccupancyMaxActiveClusters(int* clusters, void* function, const LaunchConfig* c) {
  ENTER();
  Asked asked;
  if (!read(c, function, asked) ||
      c->shared_bytes > static_cast<unsigned>(static_cast<FunctionObject*>(function)->dynamic_shared))
    return kInvalidValue;
  *clusters = s.clusters;
  return kSuccess;
}
// The rules are those of the driver's documentation, "Tensor Map Object Management".
FAKE_API int cuTensorMapEncodeTiled(void* out, int type, uint32_t rank, void* address,
                                    const uint64_t* extents, const uint64_t* strides, const uint32_t* box,
                                    const uint32_t* element_strides, int interleave, int swizzle,
                                    int promotion, int fill) {
  ENTER();
  if (!has_context(s)) return kInvalidContext;
  static constexpr int kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  static constexpr int kWidest[] = {0, 32, 64, 128};  // inner box by swizzle
  static_assert(sizeof(FakeTensorMap) <= 128);
  if (reinterpret_cast<uintptr_t>(out) % 64 != 0 || reinterpret_cast<uintptr_t>(address) % 16 != 0)
    return kInvalidValue;
  if (type < 0 || type > 12 || rank < 1 || rank > 5 || interleave != 0 || swizzle < 0 || swizzle > 3)
    return kInvalidValue;
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
#ifndef FAKE_CUDA_OLD
// Every thread's default stream of its own has a number of its own.
FAKE_API int cuStreamGetId(void* stream, unsigned long long* id) {
  ENTER();
  if (!stream && !has_context(s)) return kInvalidContext;
  FAKE_THREAD_LOCAL static char own = 0;
  void* const key = stream == reinterpret_cast<void*>(2) ? &own : stream;
  *id = s.stream_ids.try_emplace(key, s.stream_ids.size() + 1).first->second;
  return kSuccess;
}
#endif
FAKE_API int cuStreamCreate(void** stream, unsigned flags) {
  ENTER();
  if (!has_context(s)) return kInvalidContext;
  if (flags != 1) return kInvalidValue;  // one that waits for the default stream would spoil captures
  s.streams.push_back(std::make_unique<Stream>());
  *stream = s.streams.back().get();
  return kSuccess;
}
FAKE_API int cuStreamDestroy_v2(void* stream) {
  ENTER();
  return std::any_of(s.streams.begin(), s.streams.end(),
                     [&](const auto& known) { return known.get() == stream; })
             ? kSuccess
             : kInvalidValue;
}
FAKE_API int cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER();
  std::swap(*mode, capture_mode());
  return kSuccess;
}
FAKE_API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  ENTER();
  if (!has_context(s)) return kInvalidContext;
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return kSuccess;
}
#ifndef FAKE_CUDA_OLD
FAKE_API int cuStreamIsCapturing(void* stream, int* status) {
  ENTER();
  if (!stream && !has_context(s)) return kInvalidContext;
  if (s.capturing && !stream && s.captured) return kCaptureImplicit;
  *status = s.capturing && stream == s.captured ? 1 : 0;
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
  if (!has_context(s)) return kInvalidContext;
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
#ifndef FAKE_CUDA_OLD
namespace {
struct PoolProperties {  // CUmemPoolProps
  int kind, handles, location, device;
  void* security;
  char reserved[64];
};
}  // namespace
FAKE_API int cuMemPoolCreate(void** pool, const PoolProperties* p) {
  ENTER();
  if (p->kind != 1 || p->handles != 0 || p->location != 1 || p->device < 0 || p->device >= s.devices)
    return kInvalidValue;
  for (char c : p->reserved)
    if (c != 0) return kInvalidValue;
  s.pools.push_back(std::make_unique<Pool>());
  s.pools.back()->device = p->device;
  *pool = s.pools.back().get();
  return kSuccess;
}
FAKE_API int cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
  ENTER();
  if (!pool || attribute != 4) return kInvalidValue;
  std::memcpy(&static_cast<Pool*>(pool)->kept, value, sizeof(uint64_t));
  return kSuccess;
}
FAKE_API int cuMemAllocFromPoolAsync(uint64_t* address, size_t bytes, void* pool, void* stream) {
  ENTER();
  if (!has_context(s)) return kInvalidContext;
  if (!pool || bytes == 0) return kInvalidValue;
  if (bytes > (size_t{1} << 30)) return kOutOfMemory;
  *address = reinterpret_cast<uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  s.pooled[*address] = stream;
  return kSuccess;
}
// Here only in the order of the stream that has the memory.
FAKE_API int cuMemFreeAsync(uint64_t address, void* stream) {
  ENTER();
  const auto at = s.pooled.find(address);
  if (!has_context(s) || at == s.pooled.end() || at->second != stream) return kInvalidValue;
  s.pooled.erase(at);
  std::free(reinterpret_cast<void*>(address));
  return kSuccess;
}
#endif
FAKE_API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void*) {
  ENTER();
  if (!has_context(s)) return kInvalidContext;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}
