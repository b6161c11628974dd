/* Every function that the header declares exists, at an address of its own, inside libtilegen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef void (*tl_any_fn)(void);
struct tl_named_fn { const char *name; tl_any_fn address; };
extern const struct tl_named_fn tl_all_functions[];

int main(void) {
  int bad = 0, i, j;
  for (i = 0; tl_all_functions[i].name; ++i) {
    Dl_info info;
    void *address;
    memcpy(&address, &tl_all_functions[i].address, sizeof address);
    if (!address || !dladdr(address, &info) || !strstr(info.dli_fname, "libtilegen")) {
      fprintf(stderr, "%s is not in libtilegen\n", tl_all_functions[i].name);
      bad = 1;
    }
    for (j = 0; j < i; ++j)
      if (tl_all_functions[j].address == tl_all_functions[i].address) {
        fprintf(stderr, "%s and %s are one function\n", tl_all_functions[i].name, tl_all_functions[j].name);
        bad = 1;
      }
  }
  return bad || i < 80;
}
