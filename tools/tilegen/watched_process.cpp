#include "watched_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "library.h"

extern char** environ;

namespace tool {

namespace {

using Clock = std::chrono::steady_clock;

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  int get() const { return number_; }
  void reset(int number = -1) {
    if (number_ >= 0) close(number_);
    number_ = number;
  }

 private:
  int number_;
};

[[noreturn]] void cannot(const char* what) {
  fail(std::string("a process that measures cannot be ") + what + ": " + std::strerror(errno));
}

struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) cannot("connected");
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
};

// A file without a name that holds `text`, at its beginning.
void hold(const std::string& text, Descriptor& out) {
  out.reset(memfd_create("input", MFD_CLOEXEC));
  for (size_t at = 0; out.get() >= 0 && at < text.size();) {
    const ssize_t wrote = write(out.get(), text.data() + at, text.size() - at);
    if (wrote < 0) cannot("given its input");
    at += static_cast<size_t>(wrote);
  }
  if (out.get() < 0 || lseek(out.get(), 0, SEEK_SET) < 0) cannot("given its input");
}

pid_t start(const std::vector<std::string>& arguments, int input, int output, int errors) {
  std::vector<char*> words;
  std::string name = "tilegen";
  words.push_back(name.data());
  for (const std::string& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  pid_t child = 0;
  errno = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, words.data(), environ);
  if (errno != 0) cannot("started");
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

// Reads what is there; closes at its end.
void drain(Descriptor& from, std::string& into) {
  char bytes[4096];
  const ssize_t got = read(from.get(), bytes, sizeof bytes);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) return from.reset();
  into.append(bytes, std::min(static_cast<size_t>(got), kMaxPrinted - into.size()));
}

// False: the limit is over.
bool read_to_the_end(Descriptor& output, Descriptor& errors, EndedProcess& out, Clock::time_point deadline) {
  while (output.get() >= 0 || errors.get() >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait[2] = {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
    if (poll(wait, 2, static_cast<int>(std::min<int64_t>(left, 1000))) < 0 && errno != EINTR)
      cannot("waited for");
    if (wait[0].revents) drain(output, out.output);
    if (wait[1].revents) drain(errors, out.errors);
  }
  return true;
}

// A process may close its streams and go on. False: the limit is over.
bool wait_until(pid_t child, int* status, Clock::time_point deadline) {
  for (;;) {
    const pid_t ended = waitpid(child, status, WNOHANG);
    if (ended == child) return true;
    if (ended < 0 && errno != EINTR) cannot("waited for");
    if (Clock::now() >= deadline) return false;
    usleep(200);
  }
}

}  // namespace

EndedProcess run_watched(const std::vector<std::string>& arguments, const std::string& input,
                         double limit_seconds) {
  Descriptor in;
  Pipe output, errors;
  hold(input, in);
  const auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * limit_seconds));
  const pid_t child = start(arguments, in.get(), output.write.get(), errors.write.get());
  output.write.reset();
  errors.write.reset();
  EndedProcess out;
  int status = 0;
  out.in_time =
      read_to_the_end(output.read, errors.read, out, deadline) && wait_until(child, &status, deadline);
  if (!out.in_time) {
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  out.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return out;
}

}  // namespace tool
