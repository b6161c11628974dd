/* From a finished tile program to a timed run on the best device present: what every sample does in the same
 * way. */
#ifndef SAMPLES_RUNNER_H
#define SAMPLES_RUNNER_H

#include <stddef.h>
#include <tilelang.h>

struct runner {
  tl_context* context;
  tl_target* target;
  tl_artifact* artifact;
  tl_kernel* kernel;
  size_t device;
};

/* All return 1, or 0 after printing the library's diagnostics on stderr. A zeroed runner may be closed at any
 * time. */

/* Context and target; `target_name` NULL = the best target of this machine. */
int runner_open(struct runner* runner, const char* target_name);

/* True when blocks of the target have many threads (a GPU): it wants smaller tiles than a CPU core with its
 * cache. */
int runner_is_gpu(const struct runner* runner);

/* Ends `builder`, destroys it, compiles the program and loads it. Prints device, target and compile time. */
int runner_compile(struct runner* runner, tl_builder* builder);

/* Launches once, then until `repeats` samples or half a second are reached, and gives the median in
 * milliseconds. */
int runner_time(const struct runner* runner, const tl_arg* args, size_t count, int repeats, double* median_ms,
                int* samples);

/* The schedule in readable form on stdout. */
int runner_print_schedule(const struct runner* runner);

void runner_close(struct runner* runner);

/* Arguments of a launch. */
tl_arg runner_pointer(tl_dtype dtype, const void* data);
tl_arg runner_i64(int64_t value);
tl_arg runner_f64(double value);

#endif
