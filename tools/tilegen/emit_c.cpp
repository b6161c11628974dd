#include "command_line.h"
#include "commands.h"
#include "files.h"
#include "library.h"

namespace tool {

int emit_c_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {}, {"param"});
  const Context context = make_context();
  const Program program = read_program(context, line);
  tl_blob* blob = nullptr;
  tl_error* error = nullptr;
  require(tl_program_emit_c(program.get(), &blob, &error), error, line.file());
  const Blob made(blob);
  write_file("-", {tl_blob_data(blob), tl_blob_size(blob)});
  return 0;
}

}  // namespace tool
