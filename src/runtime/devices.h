// The devices of this machine: the host, then its CUDA devices, then its HIP devices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"
#include "target/target.h"

namespace tilegen::runtime {

namespace gpu {
class Driver;
}

enum class DeviceKind : uint8_t { host, cuda, hip };

struct DeviceInfo {
  DeviceKind kind = DeviceKind::host;
  target::CodeFormat code = target::CodeFormat::object;  // that it loads
  int driver_ordinal = 0;                                // GPUs: the driver's number
  std::string name;                                      // "host (znver4)", "NVIDIA H200"
  std::string target_name;   // best target of the device; "" where this library has none
  int capability = 0;        // CUDA: 10 * major + minor
  std::string architecture;  // HIP: "gfx942"
  bool tensor_maps = false;  // CUDA: the driver makes them, which a copy engine needs
  // host: as LLVM spells them; CUDA: "capability 9.0"; HIP: "gfx942:sramecc+:xnack-"
  std::string features;
  int cores = 0;             // host: threads a launch uses; GPUs: multiprocessors (compute units)
  int64_t memory_bytes = 0;  // GPUs
  int driver_version = 0;    // GPUs: 1000 * major + 10 * minor of CUDA or HIP
};

// Whether code of a target that is not simulated runs there, and the best such target; "" where none is.
bool can_run(const DeviceInfo& device, const target::Target& target);
std::string best_target_name(const DeviceInfo& device);

// Asked once; the host is first.
const std::vector<DeviceInfo>& devices();

// The driver of a device that is no host.
Expected<const gpu::Driver*> driver_of(const DeviceInfo& device);

// Number `ordinal`, or any for kAnyDevice, as the device for code of `target`. Refuses: device_absent for a
// number without device or one of another kind or generation; the driver's reason where there is no
// device of the vendor's at all.
Expected<const DeviceInfo*> find_device(const target::Target& target, size_t ordinal);

// Target by name as target::find_target knows it, and "cuda", "cuda:N", "hip" and "hip:N": the best target
// of a device of this machine. Refuses: no_such_target; driver_absent, device_absent.
Expected<target::Target> find_target(std::string_view name);

// The best target of this machine: that of the first CUDA device it has one for, else of the first such HIP
// device, else the host.
Expected<target::Target> best_target();

}  // namespace tilegen::runtime
