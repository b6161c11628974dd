#include "failing_malloc.h"

#include <link.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace tilegen::test {
namespace {

struct Code {
  uintptr_t begin = 0, end = 0;
};
std::array<Code, 16> g_spared;  // code of what has memory always
std::atomic<size_t> g_spared_count{0};
std::atomic<Fails> g_fails{Fails::never};
std::atomic<long> g_first{0}, g_count{0};

bool is_spared(const char* name) {
  return !*name || std::strstr(name, "libstdc++") || std::strstr(name, "libgtest") ||
         std::strstr(name, "fake_cuda");
}

int note_spared(dl_phdr_info* module, size_t, void*) {
  if (!is_spared(module->dlpi_name)) return 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto& part = module->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0 || g_spared_count >= g_spared.size()) continue;
    const uintptr_t begin = module->dlpi_addr + part.p_vaddr;
    g_spared[g_spared_count++] = {begin, begin + part.p_memsz};
  }
  return 0;
}

bool refused(const void* caller) {
  const Fails fails = g_fails.load(std::memory_order_relaxed);
  if (g_first.load(std::memory_order_relaxed) == 0) return false;
  const auto address = reinterpret_cast<uintptr_t>(caller);
  for (size_t i = 0; i < g_spared_count; ++i)
    if (address >= g_spared[i].begin && address < g_spared[i].end) return false;
  const long n = ++g_count;
  const bool now = fails == Fails::once ? n == g_first : fails == Fails::from_then_on && n >= g_first;
  if (now) errno = ENOMEM;
  return now;
}

}  // namespace

void fail_allocations(Fails how, long first) {
  g_spared_count = 0;
  dl_iterate_phdr(note_spared, nullptr);
  g_count = 0;
  g_fails = how;
  g_first = first;
}

long stop_failing() {
  g_first = 0;
  return g_count;
}

}  // namespace tilegen::test

using tilegen::test::refused;

extern "C" {

void* malloc(size_t size) { return refused(__builtin_return_address(0)) ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return refused(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return refused(__builtin_return_address(0)) ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return refused(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (refused(__builtin_return_address(0))) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}

}  // extern "C"
