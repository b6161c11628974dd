// Frees what a thread keeps when the thread ends. The destructor of a thread_local would do the same, but the
// system ends the process where it finds no memory to register one.
#pragma once

#include <pthread.h>

namespace tilegen::runtime {

class ThreadEnd {
 public:
  explicit ThreadEnd(void (*release)(void*)) : made_(pthread_key_create(&key_, release) == 0) {}

  // Calls release(object) when the calling thread ends. False: there is no memory to note it. A process that
  // has used up its keys keeps the objects of ended threads.
  bool watch(void* object) const { return !made_ || pthread_setspecific(key_, object) == 0; }

 private:
  pthread_key_t key_ = 0;
  bool made_;
};

}  // namespace tilegen::runtime
