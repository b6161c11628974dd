#include "runtime/devices.h"

#include <algorithm>
#include <charconv>

#include "runtime/cuda/contexts.h"
#include "runtime/cuda/driver.h"
#include "runtime/executable.h"
#include "runtime/host/host_runtime.h"

namespace tilegen::runtime {
namespace {

// "sm_90" or "sm_90a", which has what only that generation has.
struct Generation {
  int version = -1;  // of what is no such name
  bool specific = false;
};

Generation generation_of(std::string_view name) {
  if (name.substr(0, 3) != "sm_") return {};
  Generation g;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + 3, last, g.version);
  g.specific = end + 1 == last && *end == 'a';
  if (error != std::errc() || (end != last && !g.specific)) return {};
  return g;
}

// The newest generation with a table that the device can run: its code is compatible upwards, except for what
// only one generation has. Such code needs a driver with tensor maps.
std::string best_sm(int capability, bool tensor_maps) {
  std::string best;
  Generation known;
  for (const std::string& name : target::target_names()) {
    const Generation g = generation_of(name);
    if (g.version < 0 || g.version > capability) continue;
    if (g.specific && (g.version != capability || !tensor_maps)) continue;
    if (g.version < known.version || (g.version == known.version && known.specific)) continue;
    known = g;
    best = name;
  }
  return best;
}

DeviceInfo describe_host() {
  DeviceInfo host;
  host.cores = host_threads();
  host.target_name = "host";
  host.name = "host";
  if (auto found = target::find_target("host")) {
    host.name = "host (" + found->cpu + ")";
    for (const std::string& f : found->features) host.features += (host.features.empty() ? "" : ",") + f;
  }
  return host;
}

std::vector<DeviceInfo> look() {
  std::vector<DeviceInfo> all{describe_host()};
  auto driver = cuda::machine_driver();
  if (!driver) return all;
  for (const cuda::Device& d : (*driver)->devices()) {
    DeviceInfo info;
    info.kind = target::Kind::nvidia;
    info.driver_ordinal = d.ordinal;
    info.name = d.name;
    info.target_name = best_sm(10 * d.major + d.minor, (*driver)->api().tensor_map != nullptr);
    info.features = "capability " + std::to_string(d.major) + "." + std::to_string(d.minor);
    info.cores = d.multiprocessors;
    info.memory_bytes = static_cast<int64_t>(d.memory_bytes);
    info.driver_version = (*driver)->version();
    all.push_back(std::move(info));
  }
  return all;
}

bool runs(const DeviceInfo& device, const target::Target& target) {
  if (target.simulated) return device.kind == target::Kind::host;
  if (device.kind != target.kind) return false;
  if (target.is_host()) return true;
  const Generation code = generation_of(target.name), own = generation_of(device.target_name);
  return code.specific ? own.specific && code.version == own.version : code.version <= own.version;
}

// The CUDA device whose context is current on this thread, -1 for none.
int current_cuda_device() {
  auto driver = cuda::machine_driver();
  cuda::CuContext context = nullptr;
  cuda::CuDevice handle = -1;
  if (!driver || (*driver)->api().context_current(&context) != cuda::kCuSuccess || !context) return -1;
  if ((*driver)->api().context_device(&handle) != cuda::kCuSuccess) return -1;
  for (const cuda::Device& d : (*driver)->devices())
    if (d.handle == handle) return d.ordinal;
  return -1;
}

Error no_device(const target::Target& target) {
  if (!target.is_host())
    if (auto driver = cuda::machine_driver(); !driver) return driver.error();
  return Error(DiagCode::device_absent, "", "no device of this machine runs code for " + target.name,
               "compile for 'cuda', which is the device of this machine, or for 'host'");
}

}  // namespace

const std::vector<DeviceInfo>& devices() {
  static const auto* const all = new std::vector<DeviceInfo>(look());
  return *all;
}

Expected<const DeviceInfo*> find_device(const target::Target& target, size_t ordinal) {
  if (ordinal == kAnyDevice) {
    const DeviceInfo* first = nullptr;
    const int current = target.is_host() ? -1 : current_cuda_device();
    for (const DeviceInfo& d : devices()) {
      if (!runs(d, target)) continue;
      if (!first || d.driver_ordinal == current) first = &d;
    }
    if (first) return first;
    return no_device(target);
  }
  if (ordinal >= devices().size()) {
    // Where the driver is what is missing, that is the news.
    if (!target.is_host())
      if (auto driver = cuda::machine_driver(); !driver) return driver.error();
    return Error(DiagCode::device_absent, "", "there is no device " + std::to_string(ordinal),
                 "see tl_device_count; device 0 is the host");
  }
  const DeviceInfo& device = devices()[ordinal];
  if (runs(device, target)) return &device;
  return Error(DiagCode::device_absent, "",
               "the artifact is for " + target.name + ", device " + std::to_string(ordinal) + " is " +
                   (ordinal == 0 ? "the host" : device.name + " (" + device.features + ")"),
               ordinal == 0 && !target.is_host() ? "compile for 'host', or load on TL_DEVICE_ANY"
               : device.target_name.empty()           ? "compile for 'host'"
                                                 : "compile for '" + device.target_name + "'");
}

Expected<target::Target> find_target(std::string_view name) {
  if (name.substr(0, 4) != "cuda" || (name.size() > 4 && name[4] != ':')) return target::find_target(name);
  auto driver = cuda::machine_driver();
  if (!driver) return driver.error();
  size_t wanted = 0;
  if (name.size() > 4) {
    const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), wanted);
    if (error != std::errc() || end != name.data() + name.size()) return target::find_target(name);
  }
  if (wanted + 1 >= devices().size())
    return Error(DiagCode::device_absent, std::string(name),
                 "there is no CUDA device " + std::to_string(wanted) + ", the driver finds " +
                     std::to_string(devices().size() - 1),
                 "see tl_device_count, and CUDA_VISIBLE_DEVICES");
  const DeviceInfo& device = devices()[wanted + 1];
  if (device.target_name.empty())
    return Error(DiagCode::device_absent, std::string(name),
                 device.name + " has " + device.features + ", the oldest supported is 8.0 (sm_80)",
                 "compile for 'host'");
  return target::find_target(device.target_name);
}

Expected<target::Target> best_target() {
  for (const DeviceInfo& d : devices())
    if (d.kind == target::Kind::nvidia && !d.target_name.empty()) return target::find_target(d.target_name);
  return target::find_target("host");
}

}  // namespace tilegen::runtime
