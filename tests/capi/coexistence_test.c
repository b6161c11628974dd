/* A host that already has another LLVM, globally visible, loads the library late, compiles, and finds its own
 * process as it left it: signal handlers, locale, working directory, floating-point mode. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tilelang.h"

static const char *const other_llvm[] = {
#include "other_llvm.inc"
    NULL};

static const char program_text[] =
    "tl 1 program scale\n"
    "dim n\n"
    "tensor X: f32[n] readonly\n"
    "tensor Y: f32[n]\n"
    "kernel scale grid(b: (n + 63) // 64) {\n"
    "  alloc t: fragment f32[64]\n"
    "  copy X[b * 64 :+ 64] -> t\n"
    "  parallel i in 64 {\n"
    "    t[i] = t[i] * 2.0f32\n"
    "  }\n"
    "  copy t -> Y[b * 64 :+ 64]\n"
    "}\n";

static void *library;
static int failures = 0;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "FAILED: %s: %s\n", what, why ? why : "");
  ++failures;
}

/* C has no cast from an object pointer to a function pointer. */
static void find(const char *name, void *function) {
  void *address = dlsym(library, name);
  if (!address) fail(name, dlerror());
  memcpy(function, &address, sizeof address);
}

static void compile_once(void) {
  tl_status (*context_create)(tl_context **, tl_error **);
  void (*context_release)(tl_context *);
  tl_status (*parse)(const tl_context *, const char *, size_t, const char *, tl_program **, tl_error **);
  void (*program_release)(tl_program *);
  tl_status (*find_target)(const char *, tl_target **, tl_error **);
  void (*target_release)(tl_target *);
  tl_status (*compile)(const tl_context*, const tl_program*, const tl_target*, const tl_options*,
                       tl_artifact**, tl_error**);
  void (*artifact_release)(tl_artifact *);
  tl_status (*load)(const tl_context *, const tl_artifact *, size_t, tl_kernel **, tl_error **);
  void (*kernel_release)(tl_kernel *);
  tl_status (*launch)(const tl_kernel *, const tl_launch *, const tl_arg *, size_t, tl_error **);
  const char *(*message)(const tl_error *);
  tl_error *error = NULL;
  tl_context *context = NULL;
  tl_program *program = NULL;
  tl_target *target = NULL;
  tl_artifact *artifact = NULL;
  tl_kernel *kernel = NULL;
  tl_arg args[3];
  float x[100], y[100];
  int i;
  find("tl_context_create", &context_create), find("tl_context_release", &context_release);
  find("tl_program_parse", &parse), find("tl_program_release", &program_release);
  find("tl_target_parse", &find_target), find("tl_target_release", &target_release);
  find("tl_compile", &compile), find("tl_artifact_release", &artifact_release);
  find("tl_kernel_load", &load), find("tl_kernel_release", &kernel_release);
  find("tl_kernel_launch", &launch), find("tl_error_message", &message);
  if (failures) return;
  for (i = 0; i < 100; ++i) x[i] = (float)i;
  memset(y, 0, sizeof y);
  memset(args, 0, sizeof args);
  args[0].kind = TL_ARG_I64, args[0].payload = 100;
  args[1].kind = TL_ARG_POINTER, args[1].payload = (uint64_t)(uintptr_t)x;
  args[2].kind = TL_ARG_POINTER, args[2].payload = (uint64_t)(uintptr_t)y;
  if (context_create(&context, &error) != TL_OK ||
      parse(context, program_text, strlen(program_text), "scale.tl", &program, &error) != TL_OK ||
      find_target("host", &target, &error) != TL_OK ||
      compile(context, program, target, NULL, &artifact, &error) != TL_OK ||
      load(context, artifact, 0, &kernel, &error) != TL_OK || launch(kernel, NULL, args, 3, &error) != TL_OK)
    fail("compile and launch", message(error));
  for (i = 0; i < 100 && !failures; ++i)
    if (y[i] != 2.0f * (float)i) fail("result", "wrong element");
  kernel_release(kernel);
  artifact_release(artifact);
  target_release(target);
  program_release(program);
  context_release(context);
}

struct process_state {
  struct sigaction handlers[NSIG];
  char locale[256], directory[4096];
  int rounding;
};

static void mark_handler(int signal_number) { (void)signal_number; }

static void read_state(struct process_state *state) {
  int s;
  memset(state, 0, sizeof *state);
  for (s = 1; s < NSIG; ++s) sigaction(s, NULL, &state->handlers[s]);
  snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
  if (!getcwd(state->directory, sizeof state->directory)) fail("getcwd", NULL);
  state->rounding = fegetround();
}

int main(void) {
  struct process_state before, after;
  int s, i, loaded = 0;
  for (i = 0; other_llvm[i]; ++i)
    if (dlopen(other_llvm[i], RTLD_NOW | RTLD_GLOBAL)) ++loaded;
  printf("%d other copies of LLVM are visible\n", loaded);
  signal(SIGUSR1, mark_handler);
  read_state(&before);
  library = dlopen(TILEGEN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fail("dlopen", dlerror());
    return 1;
  }
  compile_once();
  compile_once();
  read_state(&after);
  for (s = 1; s < NSIG; ++s)
    if (before.handlers[s].sa_handler != after.handlers[s].sa_handler ||
        before.handlers[s].sa_flags != after.handlers[s].sa_flags)
      fail("signal handler changed", strsignal(s));
  if (strcmp(before.locale, after.locale) != 0) fail("locale changed", after.locale);
  if (strcmp(before.directory, after.directory) != 0) fail("working directory changed", after.directory);
  if (before.rounding != after.rounding) fail("rounding mode changed", "");
  return failures != 0;
}
