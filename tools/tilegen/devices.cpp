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

}  // namespace

int devices_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {}, {"none"});
  if (!line.words().empty()) fail_usage("devices takes no arguments");
  for (size_t i = 0; i < tl_device_count(); ++i) {
    tl_device_info info{};
    info.struct_size = sizeof info;
    require(tl_device_describe(i, &info), nullptr, "describing a device");
    std::printf("device %zu   %s\n  target   %s\n  threads  %u\n  features %s\n", i, info.name, info.target,
                info.cores, present(info.features).c_str());
  }
  std::printf("targets   ");
  for (size_t i = 0; i < tl_target_count(); ++i) std::printf("%s%s", i ? ", " : "", tl_target_name_at(i));
  std::printf("\n");
  return 0;
}

}  // namespace tool
