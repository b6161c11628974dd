// The devices of this machine and their memory.
#include <cstddef>

#include "capi/guard.h"
#include "runtime/device_memory.h"
#include "runtime/devices.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

constexpr size_t kFirstDeviceInfo = offsetof(tl_device_info, memory_bytes);  // up to version 0.1.0

tl_device_kind kind_of(runtime::DeviceKind kind) {
  switch (kind) {
    case runtime::DeviceKind::host:
      break;
    case runtime::DeviceKind::cuda:
      return TL_DEVICE_CUDA;
    case runtime::DeviceKind::hip:
      return TL_DEVICE_HIP;
  }
  return TL_DEVICE_HOST;
}

}  // namespace

extern "C" {

size_t tl_device_count(void) {
  return shielded<size_t>(0, [] { return runtime::devices().size(); });
}

tl_status tl_device_describe(size_t ordinal, tl_device_info* out_info) {
  return guard("tl_device_describe", nullptr, [&]() -> Checked {
    if (!out_info) return null_argument("out_info");
    if (ordinal >= runtime::devices().size())
      return Error(DiagCode::device_absent, "", "there is no device " + std::to_string(ordinal),
                   "see tl_device_count");
    const runtime::DeviceInfo& device = runtime::devices()[ordinal];
    tl_device_info info{};
    info.kind = kind_of(device.kind);
    info.cores = static_cast<uint32_t>(device.cores);
    info.name = device.name.c_str();
    info.target = device.target_name.c_str();
    info.features = device.features.c_str();
    info.memory_bytes = static_cast<uint64_t>(device.memory_bytes);
    info.driver_ordinal = static_cast<uint32_t>(device.driver_ordinal);
    info.driver_version = static_cast<uint32_t>(device.driver_version);
    return fill_struct(out_info, info, kFirstDeviceInfo);
  });
}

tl_status tl_device_allocate(size_t ordinal, size_t bytes, void** out_memory, tl_error** out_error) {
  return guard("tl_device_allocate", out_error, [&]() -> Checked {
    if (!out_memory) return null_argument("out_memory");
    *out_memory = nullptr;
    auto memory = runtime::allocate_memory(ordinal, bytes);
    if (!memory) return memory.error();
    *out_memory = *memory;
    return Unit{};
  });
}

tl_status tl_device_free(size_t ordinal, void* memory, tl_error** out_error) {
  return guard("tl_device_free", out_error, [&] { return runtime::free_memory(ordinal, memory); });
}

tl_status tl_device_copy(size_t ordinal, void* to, const void* from, size_t bytes, void* stream,
                         tl_error** out_error) {
  return guard("tl_device_copy", out_error, [&]() -> Checked {
    if (bytes > 0 && (!to || !from)) return null_argument(to ? "from" : "to");
    return runtime::copy_memory(ordinal, to, from, bytes, stream);
  });
}

tl_status tl_device_wait(size_t ordinal, void* stream, tl_error** out_error) {
  return guard("tl_device_wait", out_error, [&] { return runtime::wait_for_stream(ordinal, stream); });
}

}  // extern "C"
