#include "runtime/device_memory.h"

#include <cstdlib>
#include <cstring>

#include "runtime/devices.h"
#include "runtime/gpu/memory.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

constexpr size_t kAlignment = 256;

Checked check_device(size_t device) {
  if (device < devices().size()) return Unit{};
  return Error(DiagCode::device_absent, "", "there is no device " + std::to_string(device),
               "see tl_device_count; device 0 is the host");
}

// Runs `on_host` or `on_gpu` (which gets driver and device), by what device it is.
template <class R, class Host, class Gpu>
R on_device(size_t device, Host&& on_host, Gpu&& on_gpu) {
  if (Checked ok = check_device(device); !ok) return ok.error();
  const DeviceInfo& info = devices()[device];
  if (info.kind == DeviceKind::host) return on_host();
  auto driver = driver_of(info);
  if (!driver) return driver.error();
  return on_gpu(**driver, (*driver)->devices()[static_cast<size_t>(info.driver_ordinal)]);
}

}  // namespace

Expected<void*> allocate_memory(size_t device, size_t bytes) {
  return on_device<Expected<void*>>(
      device,
      [&]() -> Expected<void*> {
        if (bytes == 0) return nullptr;
        void* memory =
            bytes > SIZE_MAX - kAlignment
                ? nullptr
                : std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
        if (memory) return memory;
        return Error(DiagCode::limit_memory, "", "no memory for " + std::to_string(bytes) + " bytes",
                     "free memory and try again");
      },
      [&](const gpu::Driver& driver, const gpu::Device& on) { return gpu::allocate(driver, on, bytes); });
}

Checked free_memory(size_t device, void* memory) {
  return on_device<Checked>(
      device, [&]() -> Checked { return std::free(memory), Unit{}; },
      [&](const gpu::Driver& driver, const gpu::Device& on) { return gpu::free(driver, on, memory); });
}

Checked copy_memory(size_t device, void* to, const void* from, size_t bytes, void* stream) {
  return on_device<Checked>(
      device,
      [&]() -> Checked {
        if (bytes != 0) std::memmove(to, from, bytes);
        return Unit{};
      },
      [&](const gpu::Driver& driver, const gpu::Device& on) {
        return gpu::copy(driver, on, to, from, bytes, stream);
      });
}

Checked wait_for_stream(size_t device, void* stream) {
  return on_device<Checked>(
      device, []() -> Checked { return Unit{}; },
      [&](const gpu::Driver& driver, const gpu::Device& on) { return gpu::wait(driver, on, stream); });
}

}  // namespace tilegen::runtime
