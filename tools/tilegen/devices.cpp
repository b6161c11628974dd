#include <cstdio>
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

std::string why_no_cuda() {
  tl_target* target = nullptr;
  tl_error* error = nullptr;
  tl_target_parse("cuda", &target, &error);
  const Target owned(target);
  const std::string why = tl_error_message(error);
  tl_error_release(error);
  return why;
}

}  // namespace

int devices_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {}, {"none"});
  if (!line.words().empty()) fail_usage("devices takes no arguments");
  bool any_cuda = false;
  for (size_t i = 0; i < tl_device_count(); ++i) {
    tl_device_info info{};
    info.struct_size = sizeof info;
    require(tl_device_describe(i, &info), nullptr, "describing a device");
    const bool cuda = info.kind == TL_DEVICE_CUDA;
    std::printf("device %zu   %s\n  target   %s\n  %s  %u\n  features %s\n", i, info.name,
                *info.target ? info.target : "none", cuda ? "cores  " : "threads", info.cores,
                cuda ? info.features : present(info.features).c_str());
    if (cuda)
      std::printf("  memory   %.1f GiB\n  driver   CUDA %u.%u\n",
                  static_cast<double>(info.memory_bytes) / (1024.0 * 1024 * 1024), info.driver_version / 1000,
                  info.driver_version % 1000 / 10);
    any_cuda |= cuda;
  }
  if (!any_cuda) std::printf("no CUDA    %s\n", why_no_cuda().c_str());
  std::printf("targets   ");
  for (size_t i = 0; i < tl_target_count(); ++i) std::printf("%s%s", i ? ", " : "", tl_target_name_at(i));
  std::printf("\n");
  return 0;
}

}  // namespace tool
