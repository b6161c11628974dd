#include "files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tool {

namespace {

std::string read_all(int file, const std::string& shown, size_t most) {
  std::string bytes;
  for (;;) {
    const size_t have = bytes.size();
    bytes.resize(std::min(most + 1, std::max(have * 2, size_t{1} << 16)));
    const ssize_t got = read(file, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) {
      bytes.resize(have);
      continue;
    }
    if (got < 0) fail_file(shown + ": cannot be read: " + std::strerror(errno));
    bytes.resize(have + static_cast<size_t>(got));
    if (got == 0) return bytes;
    if (bytes.size() > most)
      fail_file(shown + ": has more than the " + std::to_string(most) + " bytes that are read");
  }
}

[[noreturn]] void fail_output(const std::string& shown) {
  fail_file(shown + ": cannot be written" + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
}

}  // namespace

void fail_file(const std::string& message) {
  std::fprintf(stderr, "tilegen: %s\n", message.c_str());
  std::exit(2);
}

std::string read_file(const std::string& path, size_t most) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input", most);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_file(path + ": cannot be read: " + std::strerror(errno));
  std::string bytes = read_all(file, path, most);
  close(file);
  return bytes;
}

void write_file(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);  // close_output looks whether it arrived
    return;
  }
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) fail_output(path);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written) fail_output(path);
}

// A descriptor opened for the wrong direction fails like a closed one.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 &&
        open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
      std::exit(2);
}

int close_output(int status) {
  errno = 0;
  const bool failed = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0 || failed) fail_output("standard output");
  if (std::fclose(stdout) != 0) fail_output("standard output");
  return status;
}

}  // namespace tool
