// What a stage decided, in a few words for the log.
#pragma once

#include <span>
#include <string>

#include "expand/scheduled_kernel.h"
#include "plan/schedule.h"
#include "thread/thread_program.h"

namespace tilegen::driver {

// "gemm: 256 threads and 32 of a producer, wgmma.m64n128k16.f32.f16.f16, 4 stages, persistent"
std::string words_of(const plan::KernelSchedule& plan);
// "gemm: 2 roles, 1 pipeline"
std::string words_of(const expand::ScheduledKernel& scheduled);
// "gemm: 121 statements, 163904 bytes of shared memory, 8 guards"
std::string words_of(const thread::ThreadProgram& code);

// Those of the first few, `words(i)` each, and how many more there are.
template <class Words>
std::string words_of_kernels(size_t count, const Words& words) {
  constexpr size_t kFew = 4;
  std::string text;
  for (size_t i = 0; i < count && i < kFew; ++i) text += (i == 0 ? "" : "; ") + words(i);
  if (count > kFew) text += "; and " + std::to_string(count - kFew) + " more";
  return text;
}

}  // namespace tilegen::driver
