// Memory for what LLVM cannot leave behind.
//
// Why: LLVM is built without exceptions, so an allocation that fails inside it throws past its frames, and
// what they hold stays as it is. The objects of one compile are then abandoned. What the process shares is
// another matter: a mutex would stay locked and a registry half changed for every later compile. LLVM touches
// such things only under a mutex, the guard of a static local or a once flag. Memory asked for under one of
// them, within a GuardedScope, comes from a reserve when the system has none, so nothing is thrown from
// there.
//
// How: the linker leads the library's own calls of malloc, pthread_mutex_lock and the like here (--wrap, see
// cmake/TilegenReserve.cmake). Outside of a scope they only pass on. Sanitizers have a malloc of their own;
// their builds go without.
#pragma once

namespace tilegen::codegen {

// Calls of LLVM by this thread, until the end of the block. Scopes nest.
class GuardedScope {
 public:
  GuardedScope() noexcept;
  ~GuardedScope();
  GuardedScope(const GuardedScope&) = delete;
  GuardedScope& operator=(const GuardedScope&) = delete;

 private:
  int outer_held_;
};

// As if a lock were held: no allocation of the block fails while the reserve lasts. For set-up that is done
// once, and for destructors.
class ReserveScope {
 public:
  ReserveScope() noexcept;
  ~ReserveScope();
  ReserveScope(const ReserveScope&) = delete;
  ReserveScope& operator=(const ReserveScope&) = delete;
};

}  // namespace tilegen::codegen
