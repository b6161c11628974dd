#include "runtime/devices.h"

#include <algorithm>
#include <charconv>

#include "runtime/cuda/contexts.h"
#include "runtime/cuda/driver.h"
#include "runtime/executable.h"
#include "runtime/host/host_runtime.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

// The targets whose code CUDA devices load, without simulated ones.
std::vector<target::Target> cuda_targets() {
  std::vector<target::Target> all;
  for (const std::string& name : target::target_names()) {
    auto t = target::find_target(name);
    if (t && !t->simulated && t->code == target::CodeFormat::ptx) all.push_back(std::move(*t));
  }
  return all;
}

}  // namespace

// Code is compatible upwards, except for what only one capability has.
bool can_run(const DeviceInfo& device, const target::Target& target) {
  if (device.code != target.code || device.capability < target.capability) return false;
  if (target.tensor_copy && !device.tensor_maps) return false;
  return !target.one_capability || device.capability == target.capability;
}

// The newest with a table that the device can run, and of these the one made for it; "" where there is none.
std::string best_target_name(const DeviceInfo& device) {
  const target::Target* best = nullptr;
  const std::vector<target::Target> all = cuda_targets();
  const auto rank = [](const target::Target& t) { return std::pair(t.capability, t.one_capability); };
  for (const target::Target& t : all)
    if (can_run(device, t) && (!best || rank(*best) < rank(t))) best = &t;
  return best ? best->name : "";
}

namespace {

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
    info.kind = DeviceKind::cuda;
    info.code = target::CodeFormat::ptx;
    info.driver_ordinal = d.ordinal;
    info.name = d.name;
    info.capability = 10 * d.major + d.minor;
    info.tensor_maps = (*driver)->api().tensor_map != nullptr;
    info.target_name = best_target_name(info);
    info.features = "capability " + std::to_string(d.major) + "." + std::to_string(d.minor);
    info.cores = d.multiprocessors;
    info.memory_bytes = static_cast<int64_t>(d.memory_bytes);
    info.driver_version = (*driver)->version();
    all.push_back(std::move(info));
  }
  return all;
}

bool runs(const DeviceInfo& device, const target::Target& target) {
  return target.simulated ? device.kind == DeviceKind::host : can_run(device, target);
}

bool is_cuda_code(const target::Target& target) { return target.code == target::CodeFormat::ptx; }

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
  if (target.code == target::CodeFormat::hsaco)
    return Error(
        DiagCode::device_absent, "",
        "this library does not launch on AMD devices: " + target.name + " code is compiled, not loaded",
        "load TL_SECTION_HSACO with hipModuleLoadData and launch its kernels as docs/hip.md says, or "
        "compile for 'host'");
  if (is_cuda_code(target))
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
  // No device is one of AMD's, whatever its number.
  if (target.code == target::CodeFormat::hsaco && !target.simulated) return no_device(target);
  if (ordinal == kAnyDevice) {
    const DeviceInfo* first = nullptr;
    const int current = is_cuda_code(target) ? current_cuda_device() : -1;
    for (const DeviceInfo& d : devices()) {
      if (!runs(d, target)) continue;
      if (!first || d.driver_ordinal == current) first = &d;
    }
    if (first) return first;
    return no_device(target);
  }
  if (ordinal >= devices().size()) {
    // Where the driver is what is missing, that is the news.
    if (is_cuda_code(target))
      if (auto driver = cuda::machine_driver(); !driver) return driver.error();
    return Error(DiagCode::device_absent, "", "there is no device " + std::to_string(ordinal),
                 "see tl_device_count; device 0 is the host");
  }
  const DeviceInfo& device = devices()[ordinal];
  if (runs(device, target)) return &device;
  return Error(DiagCode::device_absent, "",
               "the artifact is for " + target.name + ", device " + std::to_string(ordinal) + " is " +
                   (ordinal == 0 ? "the host" : device.name + " (" + device.features + ")"),
               ordinal == 0 && is_cuda_code(target) ? "compile for 'host', or load on TL_DEVICE_ANY"
               : device.target_name.empty()         ? "compile for 'host'"
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
  if (device.target_name.empty()) {
    const std::vector<target::Target> all = cuda_targets();
    const target::Target& oldest = *std::min_element(
        all.begin(), all.end(), [](const auto& a, const auto& b) { return a.capability < b.capability; });
    return Error(DiagCode::device_absent, std::string(name),
                 device.name + " has " + device.features + ", the oldest supported is " +
                     std::to_string(oldest.capability / 10) + "." + std::to_string(oldest.capability % 10) +
                     " (" + oldest.name + ")",
                 "compile for 'host'");
  }
  return target::find_target(device.target_name);
}

Expected<target::Target> best_target() {
  for (const DeviceInfo& d : devices())
    if (d.kind == DeviceKind::cuda && !d.target_name.empty()) return target::find_target(d.target_name);
  return target::find_target("host");
}

}  // namespace tilegen::runtime
