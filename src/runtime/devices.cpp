#include "runtime/devices.h"

#include <algorithm>
#include <charconv>

#include "runtime/cuda/driver.h"
#include "runtime/executable.h"
#include "runtime/hip/driver.h"
#include "runtime/host/host_runtime.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

// The targets whose code devices load, without simulated ones.
std::vector<target::Target> targets_of(target::CodeFormat code) {
  std::vector<target::Target> all;
  for (const std::string& name : target::target_names()) {
    auto t = target::find_target(name);
    if (t && !t->simulated && t->code == code) all.push_back(std::move(*t));
  }
  return all;
}

// A vendor's GPUs, in the order in which devices() lists them.
struct GpuVendor {
  DeviceKind kind;
  target::CodeFormat code;
  std::string_view prefix;      // of targets by device: "cuda:1"
  const char *title, *visible;  // "CUDA"; the variable that hides devices
  Expected<const gpu::Driver*> (*driver)();
};

template <class D>
Expected<const gpu::Driver*> as_gpu(const Expected<D*>& driver) {
  if (!driver) return driver.error();
  return *driver;
}

constexpr GpuVendor kVendors[] = {
    {DeviceKind::cuda, target::CodeFormat::ptx, "cuda", "CUDA", "CUDA_VISIBLE_DEVICES",
     [] { return as_gpu(cuda::machine_driver()); }},
    {DeviceKind::hip, target::CodeFormat::hsaco, "hip", "HIP", "HIP_VISIBLE_DEVICES",
     [] { return as_gpu(hip::machine_driver()); }},
};

const GpuVendor* vendor_of(const target::Target& target) {
  for (const GpuVendor& v : kVendors)
    if (v.code == target.code && !target.simulated) return &v;
  return nullptr;
}

}  // namespace

// NVIDIA's code is compatible upwards, except for what only one capability has; AMD's is for one
// architecture.
bool can_run(const DeviceInfo& device, const target::Target& target) {
  if (device.code != target.code) return false;
  if (device.kind == DeviceKind::hip) return device.architecture == target.cpu;
  if (device.capability < target.capability) return false;
  if (target.tensor_copy && !device.tensor_maps) return false;
  return !target.one_capability || device.capability == target.capability;
}

// The newest with a table that the device can run, and of these the one made for it; "" where there is none.
std::string best_target_name(const DeviceInfo& device) {
  const target::Target* best = nullptr;
  const std::vector<target::Target> all = targets_of(device.code);
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

DeviceInfo describe(const GpuVendor& vendor, const gpu::Driver& driver, const gpu::Device& d) {
  DeviceInfo info;
  info.kind = vendor.kind;
  info.code = vendor.code;
  info.driver_ordinal = d.ordinal;
  info.name = d.name;
  info.capability = 10 * d.major + d.minor;
  info.architecture = d.architecture;
  info.tensor_maps = driver.has_tensor_maps();
  info.target_name = best_target_name(info);
  info.features = d.architecture.empty()
                      ? "capability " + std::to_string(d.major) + "." + std::to_string(d.minor)
                      : d.architecture + (d.features.empty() ? "" : ":" + d.features);
  info.cores = d.multiprocessors;
  info.memory_bytes = static_cast<int64_t>(d.memory_bytes);
  info.driver_version = driver.version();
  return info;
}

std::vector<DeviceInfo> look() {
  std::vector<DeviceInfo> all{describe_host()};
  for (const GpuVendor& vendor : kVendors)
    if (auto driver = vendor.driver())
      for (const gpu::Device& d : (*driver)->devices()) all.push_back(describe(vendor, **driver, d));
  return all;
}

bool runs(const DeviceInfo& device, const target::Target& target) {
  return target.simulated ? device.kind == DeviceKind::host : can_run(device, target);
}

// Where the driver is what is missing, that is the news.
std::optional<Error> no_driver(const GpuVendor* vendor) {
  if (!vendor) return std::nullopt;
  auto driver = vendor->driver();
  if (driver) return std::nullopt;
  return driver.error();
}

Error no_device(const target::Target& target) {
  const GpuVendor* const vendor = vendor_of(target);
  if (auto error = no_driver(vendor)) return *error;
  const std::string own =
      vendor ? "'" + std::string(vendor->prefix) + "', which is the device of this machine, or for " : "";
  return Error(DiagCode::device_absent, "", "no device of this machine runs code for " + target.name,
               "compile for " + own + "'host'");
}

// The oldest target of the vendor's, for a device that is too old or too new for all.
Error no_target_for(const DeviceInfo& device, std::string_view name) {
  const std::vector<target::Target> all = targets_of(device.code);
  std::string supported;
  if (device.kind == DeviceKind::cuda) {
    const target::Target& oldest = *std::min_element(
        all.begin(), all.end(), [](const auto& a, const auto& b) { return a.capability < b.capability; });
    supported = "the oldest supported is " + std::to_string(oldest.capability / 10) + "." +
                std::to_string(oldest.capability % 10) + " (" + oldest.name + ")";
  } else {
    for (const target::Target& t : all) supported += (supported.empty() ? "supported are " : ", ") + t.name;
  }
  return Error(DiagCode::device_absent, std::string(name),
               device.name + " has " + (device.kind == DeviceKind::hip ? "architecture " : "") +
                   device.features + ", " + supported,
               "compile for 'host'");
}

Expected<target::Target> find_on(const GpuVendor& vendor, std::string_view name, size_t ordinal) {
  if (auto error = no_driver(&vendor)) return *error;
  size_t found = 0;
  for (const DeviceInfo& device : devices())
    if (device.kind == vendor.kind && found++ == ordinal)
      return device.target_name.empty() ? Expected<target::Target>(no_target_for(device, name))
                                        : target::find_target(device.target_name);
  return Error(DiagCode::device_absent, std::string(name),
               std::string("there is no ") + vendor.title + " device " + std::to_string(ordinal) +
                   ", the driver finds " + std::to_string(found),
               std::string("see tl_device_count, and ") + vendor.visible);
}

}  // namespace

const std::vector<DeviceInfo>& devices() {
  static const auto* const all = new std::vector<DeviceInfo>(look());
  return *all;
}

Expected<const gpu::Driver*> driver_of(const DeviceInfo& device) {
  for (const GpuVendor& vendor : kVendors)
    if (vendor.kind == device.kind) return vendor.driver();
  return Error(DiagCode::internal_error, "", "the host has no driver", "report this");
}

Expected<const DeviceInfo*> find_device(const target::Target& target, size_t ordinal) {
  const GpuVendor* const vendor = vendor_of(target);
  if (ordinal == kAnyDevice) {
    const DeviceInfo* first = nullptr;
    int current = -1;
    if (vendor)
      if (auto driver = vendor->driver()) current = (*driver)->current_device();
    for (const DeviceInfo& d : devices()) {
      if (!runs(d, target)) continue;
      if (!first || d.driver_ordinal == current) first = &d;
    }
    if (first) return first;
    return no_device(target);
  }
  if (ordinal >= devices().size()) {
    if (auto error = no_driver(vendor)) return *error;
    return Error(DiagCode::device_absent, "", "there is no device " + std::to_string(ordinal),
                 "see tl_device_count; device 0 is the host");
  }
  const DeviceInfo& device = devices()[ordinal];
  if (runs(device, target)) return &device;
  return Error(DiagCode::device_absent, "",
               "the artifact is for " + target.name + ", device " + std::to_string(ordinal) + " is " +
                   (ordinal == 0 ? "the host" : device.name + " (" + device.features + ")"),
               ordinal == 0 && vendor       ? "compile for 'host', or load on TL_DEVICE_ANY"
               : device.target_name.empty() ? "compile for 'host'"
                                            : "compile for '" + device.target_name + "'");
}

Expected<target::Target> find_target(std::string_view name) {
  for (const GpuVendor& vendor : kVendors) {
    if (!name.starts_with(vendor.prefix)) continue;
    const std::string_view rest = name.substr(vendor.prefix.size());
    if (rest.empty()) return find_on(vendor, name, 0);
    size_t ordinal = 0;
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), ordinal);
    if (rest.front() != ':' || error != std::errc() || end != rest.data() + rest.size()) continue;
    return find_on(vendor, name, ordinal);
  }
  return target::find_target(name);
}

Expected<target::Target> best_target() {
  for (const DeviceInfo& d : devices())
    if (d.kind != DeviceKind::host && !d.target_name.empty()) return target::find_target(d.target_name);
  return target::find_target("host");
}

}  // namespace tilegen::runtime
