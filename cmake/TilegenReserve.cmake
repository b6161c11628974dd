# Leads the library's own calls of these functions, LLVM's among them, through src/codegen/llvm/guarded_memory.cpp, which says
# why. A sanitizer has a malloc of its own.
if(NOT TILEGEN_SANITIZE)
  foreach(function malloc calloc realloc aligned_alloc posix_memalign free pthread_mutex_lock pthread_mutex_trylock
          pthread_mutex_unlock pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock pthread_once
          __cxa_guard_acquire __cxa_guard_release __cxa_guard_abort)
    target_link_options(tilegen_core INTERFACE LINKER:--wrap=${function} LINKER:--undefined=__wrap_${function})
  endforeach()
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/codegen/llvm/guarded_memory.cpp PROPERTIES
    COMPILE_DEFINITIONS TILEGEN_RESERVE=1)
endif()
