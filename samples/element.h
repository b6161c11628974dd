/* Elements of every dtype in host memory: conversion to and from double, random data, allocation. */
#ifndef SAMPLES_ELEMENT_H
#define SAMPLES_ELEMENT_H

#include <stddef.h>
#include <stdint.h>
#include <tilelang.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Dtype of a name ("f16"), 0 when there is none. */
tl_dtype element_dtype(const char* name);
size_t element_bytes(tl_dtype dtype);
int element_is_float(tl_dtype dtype);

/* Half the distance from 1 to the next number: the relative error of one rounding. 0 for integers. */
double element_rounding(tl_dtype dtype);

double element_get(tl_dtype dtype, const void* data, size_t index);
void element_set(tl_dtype dtype, void* data, size_t index,
                 double value); /* rounds to nearest even; integers wrap */

/* `count` zeroed elements aligned to 64 bytes (a valid pointer for 0 elements too), or NULL. Release with
 * free. */
void* element_alloc(tl_dtype dtype, size_t count);

/* Repeatable data: floats uniform in [-1, 1), signed integers in [-8, 7], u8 in [0, 15], bools. */
void element_random(tl_dtype dtype, void* data, size_t count, uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
