/* From a finished tile program to a timed run on the best device present: what every sample does in the same
 * way. */
#ifndef SAMPLES_RUNNER_H
#define SAMPLES_RUNNER_H

#include <stddef.h>
#include <tilelang.h>

#include "npy.h"

#define RUNNER_ARRAYS 8

struct runner {
  tl_context* context;
  tl_target* target;
  tl_artifact* artifact;
  tl_kernel* kernel;
  size_t device;
  const struct npy_array* arrays[RUNNER_ARRAYS]; /* that are launched on */
  void* memory[RUNNER_ARRAYS];                   /* their copies on the device */
  int array_count;
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

/* The launch argument of an array: of its data on the host, of a copy of it on another device. The array must
 * live until the runner is closed. */
int runner_array(struct runner* runner, tl_arg* arg, const struct npy_array* array);

/* What the device's memory holds, back into the arrays. */
int runner_fetch(const struct runner* runner);

/* Launches once, then until `repeats` samples or half a second are reached, and gives the median in
 * milliseconds. */
int runner_time(const struct runner* runner, const tl_arg* args, size_t count, int repeats, double* median_ms,
                int* samples);

/* The schedule in readable form on stdout. */
int runner_print_schedule(const struct runner* runner);

void runner_close(struct runner* runner);

/* Other arguments of a launch. */
tl_arg runner_i64(int64_t value);
tl_arg runner_f64(double value);

#endif
