#include <cstdio>

#include "command_line.h"
#include "commands.h"
#include "library.h"
#include "result_forms.h"

namespace tool {

int measure_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {}, {"target", "schedule", "sizes"});
  const Context context = make_context();
  const Program program = read_program(context, line);
  const Target target = find_target(context, line.get_or("target", ""));
  const Options options = options_of(context, line);
  double microseconds = 0;
  tl_error* error = nullptr;
  require(tl_measure(context.get(), program.get(), target.get(), options.get(), &microseconds, &error), error,
          "measuring");
  std::printf("%.3f us\n", microseconds);
  return 0;
}

}  // namespace tool
