/* NumPy .npy files, versions 1 to 3, little-endian f16, f32, f64, i8, u8, i32, i64 and bool.
 * NumPy has no bf16: it is written as '<u2' with the bits of each element, and '<u2' and '|V2' are read as
 * bf16. Arrays in Fortran order are turned into C order. */
#ifndef SAMPLES_NPY_H
#define SAMPLES_NPY_H

#include <stddef.h>
#include <stdint.h>
#include <tilelang.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPY_MAX_RANK 8
#define NPY_MESSAGE_SIZE 512

struct npy_array {
  tl_dtype dtype;
  int rank;
  int64_t shape[NPY_MAX_RANK];
  size_t count; /* elements */
  void* data;   /* C order, aligned to 64 bytes */
};

/* Returns 1, or 0 with a sentence that names the file in `message`. */
int npy_read(const char* path, struct npy_array* out, char message[NPY_MESSAGE_SIZE]);
int npy_write(const char* path, const struct npy_array* array, char message[NPY_MESSAGE_SIZE]);

/* An array of zeros; 0 when there is no memory or the size overflows. */
int npy_make(struct npy_array* out, tl_dtype dtype, int rank, const int64_t* shape);
void npy_free(struct npy_array* array);

#ifdef __cplusplus
}
#endif

#endif
