#include "runtime/host/arena_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/thread_end.h"

namespace tilegen::runtime {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLargest = size_t{1}
                            << 40;  // beyond what any machine gives one thread; keeps sizes from wrapping

struct Arena {
  void* memory = nullptr;
  size_t bytes = 0;
};

// Reached without a call and without memory, in a library loaded late too.
[[gnu::tls_model("initial-exec")]] constinit thread_local Arena t_arena;

const ThreadEnd g_thread_end([](void* memory) {
  std::free(memory);
  t_arena = {};
});

}  // namespace

void* thread_arena(int64_t bytes) {
  // a kernel without an arena still gets a valid address
  size_t wanted = static_cast<size_t>(std::max<int64_t>(bytes, 64));
  Arena& a = t_arena;
  if (wanted <= a.bytes) return a.memory;
  const bool huge = wanted >= kHugePage;
  const size_t unit = huge ? kHugePage : 4096;
  if (wanted > kLargest) return nullptr;
  wanted = (wanted + unit - 1) / unit * unit;
  void* fresh = std::aligned_alloc(huge ? kHugePage : 64, wanted);
  if (!fresh) return nullptr;
  if (!g_thread_end.watch(fresh)) {
    std::free(fresh);
    return nullptr;
  }
  if (huge) madvise(fresh, wanted, MADV_HUGEPAGE);  // a wish: panels walk many pages
  std::free(a.memory);
  a.memory = fresh;
  a.bytes = wanted;
  return fresh;
}

}  // namespace tilegen::runtime
