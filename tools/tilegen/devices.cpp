#include <cstdio>
#include <set>
#include <sstream>
#include <string>

#include "command_line.h"
#include "commands.h"
#include "library.h"

namespace tool {

namespace {

// "+avx2,-amx-tile,+fma" -> "avx2 fma": what the device has.
std::string present(const std::string& features) {
  std::string out;
  std::istringstream list(features);
  for (std::string feature; std::getline(list, feature, ',');)
    if (!feature.empty() && feature[0] != '-')
      out += (out.empty() ? "" : " ") + (feature[0] == '+' ? feature.substr(1) : feature);
  return out;
}

// What GPUs are called, and the target that stands for the first of them.
struct Gpus {
  tl_device_kind kind;
  const char *name, *target;
};
constexpr Gpus kGpus[] = {{TL_DEVICE_CUDA, "CUDA", "cuda"}, {TL_DEVICE_HIP, "HIP", "hip"}};

std::string why_none(const Gpus& gpus) {
  tl_target* target = nullptr;
  tl_error* error = nullptr;
  tl_target_parse(gpus.target, &target, &error);
  const Target owned(target);
  const std::string why = tl_error_message(error);
  tl_error_release(error);
  return why;
}

}  // namespace

int devices_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {}, {"none"});
  if (!line.words().empty()) fail_usage("devices takes no arguments");
  std::set<tl_device_kind> found;
  for (size_t i = 0; i < tl_device_count(); ++i) {
    tl_device_info info{};
    info.struct_size = sizeof info;
    require(tl_device_describe(i, &info), nullptr, "describing a device");
    found.insert(info.kind);
    const Gpus* gpu = nullptr;
    for (const Gpus& gpus : kGpus)
      if (gpus.kind == info.kind) gpu = &gpus;
    std::printf("device %zu   %s\n  target   %s\n  %s  %u\n  features %s\n", i, info.name,
                *info.target ? info.target : "none", gpu ? "cores  " : "threads", info.cores,
                gpu ? info.features : present(info.features).c_str());
    if (gpu)
      std::printf("  memory   %.1f GiB\n  driver   %s %u.%u\n",
                  static_cast<double>(info.memory_bytes) / (1024.0 * 1024 * 1024), gpu->name,
                  info.driver_version / 1000, info.driver_version % 1000 / 10);
  }
  for (const Gpus& gpus : kGpus)
    if (!found.count(gpus.kind)) std::printf("no %-8s%s\n", gpus.name, why_none(gpus).c_str());
  std::printf("targets   ");
  for (size_t i = 0; i < tl_target_count(); ++i) std::printf("%s%s", i ? ", " : "", tl_target_name_at(i));
  std::printf("\n");
  return 0;
}

}  // namespace tool
