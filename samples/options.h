/* Command lines of the samples: `--name value`, flags `--name`, and leading sizes without a name. */
#ifndef SAMPLES_OPTIONS_H
#define SAMPLES_OPTIONS_H

#include <stdint.h>
#include <tilelang.h>

enum option_kind {
  OPTION_FLAG,  /* int *: set to 1 */
  OPTION_TEXT,  /* const char **: points into argv */
  OPTION_INT,   /* int64_t *, >= 0 */
  OPTION_REAL,  /* double * */
  OPTION_DTYPE, /* tl_dtype *, by name */
  OPTION_SIZE   /* int64_t *, >= 0: the next argument without a name; `name` is for messages */
};

struct option {
  const char* name; /* with the dashes */
  enum option_kind kind;
  void* out;
  const char* help;
};

/* Returns 1 when the program shall go on; 0 after --help (*exit_code 0) or a mistake that was reported on
 * stderr
 * (*exit_code 2). `about` is the first line of the help. */
int options_parse(int argc, char** argv, const struct option* options, int count, const char* about,
                  int* exit_code);

#endif
