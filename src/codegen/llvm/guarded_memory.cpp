#include "codegen/llvm/guarded_memory.h"

#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tilegen::codegen {
namespace {

// Of the calling thread. Reached without a call and without memory, in a library loaded late too.
struct ThreadState {
  int scopes = 0;
  int held = 0;  // locks, guards and once flags taken within the scopes
};
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadState t_state;

}  // namespace

GuardedScope::GuardedScope() noexcept : outer_held_(t_state.held) { ++t_state.scopes; }
GuardedScope::~GuardedScope() {
  --t_state.scopes;
  t_state.held = outer_held_;
}

ReserveScope::ReserveScope() noexcept {
  ++t_state.scopes;
  ++t_state.held;
}
ReserveScope::~ReserveScope() {
  --t_state.held;
  --t_state.scopes;
}

}  // namespace tilegen::codegen

#if TILEGEN_RESERVE

namespace {

using tilegen::codegen::t_state;

bool may_not_fail() { return t_state.scopes > 0 && t_state.held > 0; }
void enter() {
  if (t_state.scopes > 0) ++t_state.held;
}
void leave() {
  if (t_state.scopes > 0 && t_state.held > 0) --t_state.held;
}

// Untouched pages cost nothing. Blocks of one power of two are kept in a list and given out again.
constexpr size_t kReserveBytes = size_t{4} << 20;
constexpr int kClasses = 23;
alignas(4096) std::byte g_reserve[kReserveBytes];

struct Block {  // stands before its payload
  size_t bytes;
  Block* next;
};
static_assert(sizeof(Block) == 16);

class Reserve {
 public:
  static bool has(const void* p) { return p >= g_reserve && p < g_reserve + kReserveBytes; }
  static size_t bytes_of(const void* p) { return static_cast<const Block*>(p)[-1].bytes; }

  void* take(size_t bytes, size_t alignment) {
    const int size_class = std::bit_width(std::max<size_t>(bytes, 32) - 1);
    if (bytes > kReserveBytes / 2 || size_class >= kClasses) return nullptr;
    lock();
    void* out = reuse(size_class, alignment);
    if (!out) out = append(size_t{1} << size_class, std::max<size_t>(alignment, 16));
    unlock();
    return out;
  }
  void give_back(void* p) {
    Block* block = static_cast<Block*>(p) - 1;
    lock();
    Block*& first = free_[std::bit_width(block->bytes - 1)];
    block->next = first;
    first = block;
    unlock();
  }

 private:
  void* reuse(int size_class, size_t alignment) {
    for (Block** at = &free_[size_class]; *at; at = &(*at)->next)
      if (reinterpret_cast<uintptr_t>(*at + 1) % alignment == 0) {
        Block* block = *at;
        *at = block->next;
        return block + 1;
      }
    return nullptr;
  }
  void* append(size_t bytes, size_t alignment) {
    const size_t at = (used_ + sizeof(Block) + alignment - 1) / alignment * alignment;
    if (at + bytes > kReserveBytes) return nullptr;
    used_ = at + bytes;
    auto* block = reinterpret_cast<Block*>(g_reserve + at) - 1;
    block->bytes = bytes;
    return block + 1;
  }
  void lock() {
    while (busy_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { busy_.clear(std::memory_order_release); }

  std::atomic_flag busy_;
  size_t used_ = 0;
  Block* free_[kClasses] = {};
};
constinit Reserve g_blocks;

void* or_reserve(void* p, size_t bytes, size_t alignment = 16) {
  return p || !may_not_fail() ? p : g_blocks.take(bytes, alignment);
}

}  // namespace

extern "C" {

void* __real_malloc(size_t);
void* __real_calloc(size_t, size_t);
void* __real_realloc(void*, size_t);
void* __real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void**, size_t, size_t);
void __real_free(void*);
int __real_pthread_mutex_lock(pthread_mutex_t*);
int __real_pthread_mutex_trylock(pthread_mutex_t*);
int __real_pthread_mutex_unlock(pthread_mutex_t*);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t*);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t*);
int __real_pthread_rwlock_unlock(pthread_rwlock_t*);
int __real_pthread_once(pthread_once_t*, void (*)());
int __real___cxa_guard_acquire(int64_t*);
void __real___cxa_guard_release(int64_t*);
void __real___cxa_guard_abort(int64_t*);

void* __wrap_malloc(size_t bytes) { return or_reserve(__real_malloc(bytes), bytes); }

void* __wrap_calloc(size_t count, size_t size) {
  void* p = __real_calloc(count, size);
  size_t bytes = 0;
  if (p || !may_not_fail() || __builtin_mul_overflow(count, size, &bytes)) return p;
  p = g_blocks.take(bytes, 16);
  return p ? std::memset(p, 0, bytes) : nullptr;
}

void* __wrap_realloc(void* old, size_t bytes) {
  if (!Reserve::has(old)) {
    void* p = __real_realloc(old, bytes);
    if (p || bytes == 0 || !may_not_fail()) return p;
  }
  void* p = __wrap_malloc(bytes);
  if (!p || !old) return p;
  const size_t had = Reserve::has(old) ? Reserve::bytes_of(old) : malloc_usable_size(old);
  std::memcpy(p, old, std::min(had, bytes));
  Reserve::has(old) ? g_blocks.give_back(old) : __real_free(old);
  return p;
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return or_reserve(__real_aligned_alloc(alignment, bytes), bytes, alignment);
}

int __wrap_posix_memalign(void** out, size_t alignment, size_t bytes) {
  const int failed = __real_posix_memalign(out, alignment, bytes);
  if (failed != ENOMEM || !may_not_fail()) return failed;
  void* p = g_blocks.take(bytes, alignment);
  if (p) *out = p;
  return p ? 0 : failed;
}

void __wrap_free(void* p) { Reserve::has(p) ? g_blocks.give_back(p) : __real_free(p); }

int __wrap_pthread_mutex_lock(pthread_mutex_t* m) {
  enter();
  return __real_pthread_mutex_lock(m);
}
int __wrap_pthread_mutex_trylock(pthread_mutex_t* m) {
  const int failed = __real_pthread_mutex_trylock(m);
  if (!failed) enter();
  return failed;
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t* m) {
  leave();
  return __real_pthread_mutex_unlock(m);
}
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* m) {
  enter();
  return __real_pthread_rwlock_rdlock(m);
}
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* m) {
  enter();
  return __real_pthread_rwlock_wrlock(m);
}
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t* m) {
  leave();
  return __real_pthread_rwlock_unlock(m);
}
int __wrap_pthread_once(pthread_once_t* once, void (*work)()) {
  enter();
  struct Leave {
    ~Leave() { leave(); }
  } leave_at_end;
  return __real_pthread_once(once, work);
}
int __wrap___cxa_guard_acquire(int64_t* guard) {
  const int first = __real___cxa_guard_acquire(guard);
  if (first) enter();
  return first;
}
void __wrap___cxa_guard_release(int64_t* guard) {
  leave();
  __real___cxa_guard_release(guard);
}
void __wrap___cxa_guard_abort(int64_t* guard) {
  leave();
  __real___cxa_guard_abort(guard);
}

}  // extern "C"

#endif
