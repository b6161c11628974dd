#include <cstdio>

#include "command_line.h"
#include "commands.h"
#include "library.h"

namespace tool {

int devices_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {}, {"none"});
  if (!line.words().empty()) fail_usage("devices takes no arguments");
  for (size_t i = 0; i < tl_device_count(); ++i) {
    tl_device_info info{};
    info.struct_size = sizeof info;
    require(tl_device_describe(i, &info), nullptr, "describing a device");
    std::printf("device %zu   %s\n  target   %s\n  threads  %u\n  features %s\n", i, info.name, info.target,
                info.cores, info.features);
  }
  std::printf("targets   ");
  for (size_t i = 0; i < tl_target_count(); ++i) std::printf("%s%s", i ? ", " : "", tl_target_name_at(i));
  std::printf("\n");
  return 0;
}

}  // namespace tool
