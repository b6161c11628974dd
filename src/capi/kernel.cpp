// Devices, and kernels loaded on them.
#include <algorithm>

#include "capi/guard.h"
#include "capi/launch_arguments.h"
#include "runtime/host/host_runtime.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

struct HostDevice {
  target::Target target;
  std::string name, features;
};

HostDevice describe_host() {
  HostDevice host;
  auto found = target::find_target("host");
  if (!found) return host;
  host.target = std::move(*found);
  host.name = "host (" + host.target.cpu + ")";
  for (const std::string& f : host.target.features) host.features += (host.features.empty() ? "" : ",") + f;
  return host;
}

const HostDevice& host_device() {
  static const HostDevice host = describe_host();
  return host;
}

// Code for a wider machine would die on its first instruction, so it is refused when it is loaded.
Checked runs_here(const target::Target& t) {
  const target::Target& host = host_device().target;
  std::string missing;
  for (const std::string& f : t.features)
    if (!f.empty() && f[0] == '+' &&
        std::find(host.features.begin(), host.features.end(), f) == host.features.end())
      missing += (missing.empty() ? "" : ", ") + f.substr(1);
  if (missing.empty() && t.vector_bytes > host.vector_bytes)
    missing = std::to_string(8 * t.vector_bytes) + "-bit vectors";
  if (missing.empty()) return Unit{};
  return Error(DiagCode::device_absent, "",
               "the artifact is for " + t.name + ", this machine (" + host.cpu + ") lacks " + missing,
               "compile for the target 'host'");
}

Checked loadable(const driver::Artifact& artifact, size_t ordinal) {
  if (ordinal >= tl_device_count())
    return Error(DiagCode::device_absent, "", "there is no device " + std::to_string(ordinal),
                 "see tl_device_count; device 0 is the host");
  if (!artifact.target.is_host())
    return Error(DiagCode::device_absent, "",
                 "the artifact is for " + artifact.target.name + ", device 0 is the host",
                 "compile for 'host'");
  if (Checked here = runs_here(artifact.target); !here) return here;
  if (!artifact.host_code)
    return Error(DiagCode::target_unsupported, "", "the artifact has a schedule and no code",
                 "compile without the option 'plan_only'");
  return Unit{};
}

Expected<int> max_threads(const tl_launch* launch) {
  if (!launch) return 0;
  auto value = read_struct(launch);
  if (!value) return value.error();
  if (value->stream)
    return Error(DiagCode::launch_device, "", "the host has no streams, launch.stream is set",
                 "set stream to NULL");
  return static_cast<int>(std::min<uint32_t>(value->max_threads, 1u << 16));
}

}  // namespace

extern "C" {

size_t tl_device_count(void) { return 1; }

tl_status tl_device_describe(size_t ordinal, tl_device_info* out_info) {
  return guard("tl_device_describe", nullptr, [&]() -> Checked {
    if (!out_info) return null_argument("out_info");
    if (ordinal >= tl_device_count())
      return Error(DiagCode::device_absent, "", "there is no device " + std::to_string(ordinal),
                   "see tl_device_count");
    tl_device_info info{};
    info.kind = TL_DEVICE_HOST;
    info.cores = static_cast<uint32_t>(runtime::host_threads());
    info.name = host_device().name.c_str();
    info.target = "host";
    info.features = host_device().features.c_str();
    return fill_struct(out_info, info);
  });
}

tl_status tl_kernel_load(const tl_context* context, const tl_artifact* artifact, size_t ordinal,
                         tl_kernel** out_kernel, tl_error** out_error) {
  return guard("tl_kernel_load", out_error, [&]() -> Checked {
    if (out_kernel) *out_kernel = nullptr;
    if (!context) return null_argument("context");
    if (!artifact || !out_kernel) return null_argument(artifact ? "out_kernel" : "artifact");
    if (Checked good = loadable(*artifact->artifact, ordinal); !good) return good;
    auto made = std::make_unique<tl_kernel>();
    made->artifact = artifact->artifact;
    *out_kernel = made.release();
    return Unit{};
  });
}

void tl_kernel_retain(tl_kernel* kernel) { retain(kernel); }
void tl_kernel_release(tl_kernel* kernel) { release(kernel); }

tl_status tl_kernel_launch(const tl_kernel* kernel, const tl_launch* launch, const tl_arg* args, size_t count,
                           tl_error** out_error) {
  return guard("tl_kernel_launch", out_error, [&]() -> Checked {
    if (!kernel) return null_argument("kernel");
    auto threads = max_threads(launch);
    if (!threads) return threads.error();
    auto slots = bind_launch_arguments(*kernel->artifact->program, args, count);
    if (!slots) return slots.error();
    return runtime::run_host(*kernel->artifact, *slots, *threads);
  });
}

tl_status tl_kernel_launch_dlpack(const tl_kernel* kernel, const tl_launch* launch,
                                  const struct DLTensor* const* tensors, size_t count, tl_error** out_error) {
  return guard("tl_kernel_launch_dlpack", out_error, [&]() -> Checked {
    if (!kernel) return null_argument("kernel");
    auto threads = max_threads(launch);
    if (!threads) return threads.error();
    auto slots = bind_tensors(*kernel->artifact->program, tensors, count);
    if (!slots) return slots.error();
    return runtime::run_host(*kernel->artifact, *slots, *threads);
  });
}

}  // extern "C"
