#include "fault_guard.h"

#include <setjmp.h>
#include <signal.h>

#include <array>

#include "amx_emulator.h"

namespace tilegen::differential {
namespace {

struct Signal {
  int number;
  const char* name;
};
constexpr std::array kSignals = {Signal{SIGSEGV, "SIGSEGV"}, Signal{SIGBUS, "SIGBUS"},
                                 Signal{SIGFPE, "SIGFPE"}, Signal{SIGILL, "SIGILL"},
                                 Signal{SIGABRT, "SIGABRT"}};
thread_local sigjmp_buf* active = nullptr;

void handle(int number, siginfo_t*, void* context) {
  if (number == SIGILL && amxemu::emulate_instruction(context)) return;
  if (active) siglongjmp(*active, number);
  signal(number, SIG_DFL);
  raise(number);
}

// On a stack of its own: the fault may be that the thread's stack is used up.
void install() {
  static thread_local std::array<char, 1 << 16> stack;
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (const Signal& s : kSignals) sigaction(s.number, &action, nullptr);
}

}  // namespace

std::optional<std::string> crash_of(const std::function<void()>& work) {
  static thread_local const bool installed = (install(), true);
  (void)installed;
  sigjmp_buf here;
  sigjmp_buf* const outer = active;
  if (const int number = sigsetjmp(here, 1); number != 0) {
    active = outer;
    for (const Signal& s : kSignals)
      if (s.number == number) return s.name;
    return "a signal";
  }
  active = &here;
  work();
  active = outer;
  return std::nullopt;
}

}  // namespace tilegen::differential
