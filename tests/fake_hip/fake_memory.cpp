// The fake HIP runtime: memory and its pools. Where a capture allocates, the memory lasts as long as the
// process: its graph may run at any time.
#include <cstdlib>
#include <cstring>

#include "fake_state.h"

using namespace fake;

namespace {

constexpr size_t kMost = size_t{1} << 30;

uint64_t allocate(State& s, size_t bytes, bool of_pool, void* stream) {
  const auto address = reinterpret_cast<uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  std::memset(reinterpret_cast<void*>(address), 0xff, bytes);  // NaNs to floats
  s.memory[address] = {bytes, current_device(), of_pool, stream};
  return address;
}

}  // namespace

FAKE_API int hipMalloc(uint64_t* address, size_t bytes) {
  return call("hipMalloc", InCapture::no, [&](State& s) {
    if (bytes > kMost) return kOutOfMemory;
    *address = allocate(s, bytes, false, nullptr);
    return kSuccess;
  });
}
FAKE_API int hipFree(uint64_t address) {
  return call("hipFree", InCapture::no, [&](State& s) {
    if (!s.memory.erase(address)) return kInvalidValue;
    std::free(reinterpret_cast<void*>(address));
    return kSuccess;
  });
}
FAKE_API int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void*) {
  return call("hipMemcpyAsync", InCapture::no, [&](State& s) {
    if (kind != 4) return kInvalidValue;  // hipMemcpyDefault
    if (!s.fault.empty()) return kIllegalAddress;
    std::memmove(to, from, bytes);
    return kSuccess;
  });
}
FAKE_API int hipMemsetD8Async(void* to, unsigned char value, size_t bytes, void*) {
  return call("hipMemsetD8Async", InCapture::no, [&](State&) {
    std::memset(to, value, bytes);
    return kSuccess;
  });
}
#ifndef FAKE_HIP_INCOMPLETE
namespace {
struct PoolProperties {  // hipMemPoolProps
  int kind, handles, location, device;
  void* security;
  size_t most;
  char reserved[56];
};
}  // namespace
FAKE_API int hipMemPoolCreate(void** pool, const PoolProperties* p) {
  return call("hipMemPoolCreate", InCapture::no, [&](State& s) {
    if (p->kind != 1 || p->handles != 0 || p->location != 1 || p->device < 0 || p->device >= s.devices)
      return kInvalidValue;
    if (p->most != 0) return kInvalidValue;
    for (char c : p->reserved)
      if (c != 0) return kInvalidValue;
    s.pools.push_back(std::make_unique<Pool>(Pool{p->device}));
    *pool = s.pools.back().get();
    return kSuccess;
  });
}
FAKE_API int hipMemPoolSetAttribute(void* pool, int attribute, void*) {
  return call("hipMemPoolSetAttribute", InCapture::no,
              [&](State&) { return !pool || attribute != 4 ? kInvalidValue : kSuccess; });
}
FAKE_API int hipMallocFromPoolAsync(uint64_t* address, size_t bytes, void* pool, void* stream) {
  return call("hipMallocFromPoolAsync", InCapture::yes, [&](State& s) {
    if (!pool || bytes == 0) return kInvalidValue;
    if (bytes > kMost) return kOutOfMemory;
    *address = allocate(s, bytes, true, stream);
    return kSuccess;
  });
}
// Here only in the order of the stream that has the memory.
FAKE_API int hipFreeAsync(uint64_t address, void* stream) {
  return call("hipFreeAsync", InCapture::yes, [&](State& s) {
    const auto at = s.memory.find(address);
    if (at == s.memory.end() || !at->second.of_pool || at->second.stream != stream) return kInvalidValue;
    if (s.capturing && stream == s.captured) return at->second.stream = s.capturing.get(), kSuccess;
    s.memory.erase(at);
    std::free(reinterpret_cast<void*>(address));
    return kSuccess;
  });
}
#endif
