#include "watched_items.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace tilegen::differential {
namespace {

constexpr size_t kDoingBytes = 256;
constexpr double kWaiting = 4;  // times its share of a processor an item may take on a busy machine

// Shared with the children.
char* doing() {
  static char* const text = static_cast<char*>(
      mmap(nullptr, kDoingBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return text;
}

bool write_all(int to, const void* data, size_t bytes) {
  for (auto* at = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t n = write(to, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

// The next item's share of this process's processor time; past it comes SIGXCPU.
void limit_processor(double seconds) {
  rusage used{};
  rlimit limit{};
  if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0) return;
  limit.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + seconds + 1);
  setrlimit(RLIMIT_CPU, &limit);
}

// The report of each item: its length and its bytes.
[[noreturn]] void run_child(const WatchedItems& items, uint64_t first, uint64_t last, int to) {
  bool goes_on = true;
  for (uint64_t item = first; item < last && goes_on; ++item) {
    limit_processor(items.seconds);
    const std::string text = items.work(item);
    const uint64_t length = text.size();
    goes_on =
        write_all(to, &length, sizeof length) && write_all(to, text.data(), text.size()) && text.empty();
  }
  std::fflush(nullptr);
  _exit(0);
}

enum class Read : uint8_t { done, ended, too_late };

Read read_all(int from, void* data, size_t bytes, std::chrono::steady_clock::time_point deadline) {
  for (auto* at = static_cast<char*>(data); bytes > 0;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{from, POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&wait, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Read::too_late;
    const ssize_t n = read(from, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Read::ended;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return Read::done;
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return std::string("SIG") + sigabbrev_np(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

// Items from `first` on in one child. The first one that it did not do.
uint64_t run_some(const WatchedItems& items, uint64_t first, uint64_t last) {
  int ends[2];
  std::fflush(nullptr);
  const bool piped = pipe(ends) == 0;
  const pid_t child = piped ? fork() : -1;
  if (child < 0) {
    items.report(first, "no process can be started");
    return last;
  }
  if (child == 0) {
    close(ends[0]);
    run_child(items, first, last, ends[1]);
  }
  close(ends[1]);
  uint64_t item = first;
  Read how = Read::done;
  for (bool goes_on = true; goes_on && item < last;) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(static_cast<int64_t>(items.seconds * kWaiting * 1000));
    uint64_t length = 0;
    std::string text;
    how = read_all(ends[0], &length, sizeof length, deadline);
    if (how != Read::done) break;
    text.resize(length);
    how = read_all(ends[0], text.data(), text.size(), deadline);
    if (how != Read::done) break;
    goes_on = text.empty();
    if (!text.empty()) items.report(item, text);
    ++item;
  }
  close(ends[0]);
  if (how == Read::too_late) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (how == Read::done) return item;
  const bool endless = how == Read::too_late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
  items.report(item, (endless ? "the process takes too long" : "the process ends in " + end_text(status)) +
                         " while " + doing());
  return item + 1;
}

}  // namespace

void watched_doing(const std::string& what) {
  const size_t length = std::min(what.size(), kDoingBytes - 1);
  std::memcpy(doing(), what.data(), length);
  doing()[length] = '\0';
}

void run_watched(const WatchedItems& items) {
  watched_doing("starting");
  const uint64_t last = items.first + items.count;
  for (uint64_t item = items.first; item < last;)
    item = run_some(items, item, std::min(last, item + items.items_of_one));
}

}  // namespace tilegen::differential
