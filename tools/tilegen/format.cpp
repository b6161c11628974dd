#include <cstdio>

#include "command_line.h"
#include "commands.h"
#include "files.h"
#include "library.h"

namespace tool {

int format_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {"write", "check"}, {"write", "check"});
  if (line.words().empty()) fail_usage("a program file is expected (- for standard input)");
  const bool write = line.has("write"), check = line.has("check");
  if (!write && !check && line.words().size() > 1) fail_usage("several files go with --write or --check");
  const Context context = make_context();
  int status = 0;
  for (const std::string& path : line.words()) {
    const std::string text = read_text(context, path);
    tl_blob* blob = nullptr;
    tl_error* error = nullptr;
    const Reading how(context, line, path);
    require(tl_text_format_with(context.get(), text.data(), text.size(), how.options(), &blob, &error), error,
            path);
    const Blob made(blob);
    const std::string_view laid_out(static_cast<const char*>(tl_blob_data(blob)), tl_blob_size(blob));
    if (!write && !check) write_file("-", laid_out);
    if (laid_out == text) continue;
    if (check) {
      std::printf("%s: not as `tilegen format` lays it out\n", path.c_str());
      status = 1;
    }
    if (write) write_file(path, laid_out);
  }
  return status;
}

}  // namespace tool
