#define _POSIX_C_SOURCE 200112L
#include "element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tl_dtype element_dtype(const char* name) {
  tl_dtype dtype;
  for (dtype = 1; *tl_dtype_name(dtype) != '\0'; ++dtype)
    if (strcmp(tl_dtype_name(dtype), name) == 0) return dtype;
  return 0;
}

size_t element_bytes(tl_dtype dtype) { return tl_dtype_bits(dtype) / 8; }

static int is_float8(tl_dtype dtype) {
  return dtype == TL_E4M3 || dtype == TL_E5M2 || dtype == TL_E4M3FNUZ || dtype == TL_E5M2FNUZ;
}

int element_is_float(tl_dtype dtype) {
  return dtype == TL_F16 || dtype == TL_BF16 || dtype == TL_F32 || dtype == TL_F64 || is_float8(dtype);
}

static int is_unsigned(tl_dtype dtype) {
  return dtype == TL_U8 || dtype == TL_U16 || dtype == TL_U32 || dtype == TL_U64;
}

double element_rounding(tl_dtype dtype) {
  switch (dtype) {
    case TL_F16:
      return ldexp(1.0, -11);
    case TL_BF16:
      return ldexp(1.0, -8);
    case TL_F32:
      return ldexp(1.0, -24);
    case TL_F64:
      return ldexp(1.0, -53);
    case TL_E4M3:
    case TL_E4M3FNUZ:
      return ldexp(1.0, -4);
    case TL_E5M2:
    case TL_E5M2FNUZ:
      return ldexp(1.0, -3);
    default:
      return 0.0;
  }
}

/* 16-bit floats of `mantissa` stored bits, the rest being sign and exponent. */
static double decode16(uint16_t bits, int mantissa) {
  const int bias = (1 << (14 - mantissa)) - 1;
  const int exponent = (bits & 0x7fff) >> mantissa;
  const int fraction = bits & ((1 << mantissa) - 1);
  double value;
  if (exponent == 2 * bias + 1)
    value = fraction != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    value = ldexp(fraction, 1 - bias - mantissa);
  else
    value = ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  return bits & 0x8000 ? -value : value;
}

static uint16_t encode16(double value, int mantissa) {
  const int bias = (1 << (14 - mantissa)) - 1;
  const uint32_t infinity = (uint32_t)(2 * bias + 1) << mantissa;
  const uint32_t sign = signbit(value) ? 0x8000 : 0;
  const double magnitude = fabs(value);
  uint32_t code;
  if (isnan(value)) return (uint16_t)(sign | infinity | (1u << (mantissa - 1)));
  if (magnitude < ldexp(1.0, 1 - bias)) {
    code = (uint32_t)nearbyint(ldexp(magnitude, mantissa + bias - 1));
  } else if (magnitude >= ldexp(1.0, bias + 1)) {
    code = infinity;
  } else {
    const int exponent = ilogb(magnitude);
    const uint32_t rounded = (uint32_t)nearbyint(ldexp(magnitude, mantissa - exponent));
    code = ((uint32_t)(exponent + bias) << mantissa) + rounded -
           (1u << mantissa); /* a carry reaches the exponent */
  }
  return (uint16_t)(sign | (code < infinity ? code : infinity));
}

/* 8-bit floats: of OCP, and of the FNUZ kind, whose exponents are one lower. */
static double decode8(tl_dtype dtype, uint8_t bits) {
  const int fnuz = dtype == TL_E4M3FNUZ || dtype == TL_E5M2FNUZ;
  const int mantissa = dtype == TL_E4M3 || dtype == TL_E4M3FNUZ ? 3 : 2;
  const int bias = (1 << (6 - mantissa)) - (fnuz ? 0 : 1);
  const int magnitude = bits & 0x7f, exponent = magnitude >> mantissa;
  const int fraction = magnitude & ((1 << mantissa) - 1);
  double value;
  if (fnuz ? bits == 0x80 : magnitude > (dtype == TL_E4M3 ? 0x7e : 0x7c)) return NAN;
  if (dtype == TL_E5M2 && magnitude == 0x7c)
    value = INFINITY;
  else if (exponent == 0)
    value = ldexp(fraction, 1 - bias - mantissa);
  else
    value = ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  return bits & 0x80 ? -value : value;
}

/* The nearest of all finite numbers, of two the even one. */
static uint8_t encode8(tl_dtype dtype, double value) {
  const int fnuz = dtype == TL_E4M3FNUZ || dtype == TL_E5M2FNUZ;
  const int last = fnuz ? 0x7f : dtype == TL_E4M3 ? 0x7e : 0x7b;
  const double magnitude = fabs(value);
  int code = 0;
  if (isnan(value)) return fnuz ? 0x80 : 0x7f;
  while (code < last) {
    const double low = decode8(dtype, (uint8_t)code), high = decode8(dtype, (uint8_t)(code + 1));
    const double middle = (low + high) / 2;
    if (magnitude < middle || (magnitude == middle && code % 2 == 0)) break;
    ++code;
  }
  return (uint8_t)(code | (signbit(value) && !(fnuz && code == 0) ? 0x80 : 0));
}

double element_get(tl_dtype dtype, const void* data, size_t index) {
  switch (dtype) {
    case TL_F16:
      return decode16(((const uint16_t*)data)[index], 10);
    case TL_BF16:
      return decode16(((const uint16_t*)data)[index], 7);
    case TL_F32:
      return ((const float*)data)[index];
    case TL_F64:
      return ((const double*)data)[index];
    case TL_I8:
      return ((const int8_t*)data)[index];
    case TL_U8:
      return ((const uint8_t*)data)[index];
    case TL_I32:
      return ((const int32_t*)data)[index];
    case TL_I64:
      return (double)((const int64_t*)data)[index];
    case TL_BOOL:
      return ((const uint8_t*)data)[index] != 0;
    case TL_I16:
      return ((const int16_t*)data)[index];
    case TL_U16:
      return ((const uint16_t*)data)[index];
    case TL_U32:
      return ((const uint32_t*)data)[index];
    case TL_U64:
      return (double)((const uint64_t*)data)[index];
    default:
      return is_float8(dtype) ? decode8(dtype, ((const uint8_t*)data)[index]) : 0.0;
  }
}

void element_set(tl_dtype dtype, void* data, size_t index, double value) {
  switch (dtype) {
    case TL_F16:
      ((uint16_t*)data)[index] = encode16(value, 10);
      break;
    case TL_BF16:
      ((uint16_t*)data)[index] = encode16(value, 7);
      break;
    case TL_F32:
      ((float*)data)[index] = (float)value;
      break;
    case TL_F64:
      ((double*)data)[index] = value;
      break;
    case TL_I8:
      ((int8_t*)data)[index] = (int8_t)(int64_t)value;
      break;
    case TL_U8:
      ((uint8_t*)data)[index] = (uint8_t)(int64_t)value;
      break;
    case TL_I32:
      ((int32_t*)data)[index] = (int32_t)(int64_t)value;
      break;
    case TL_I64:
      ((int64_t*)data)[index] = (int64_t)value;
      break;
    case TL_BOOL:
      ((uint8_t*)data)[index] = value != 0;
      break;
    case TL_I16:
      ((int16_t*)data)[index] = (int16_t)(int64_t)value;
      break;
    case TL_U16:
      ((uint16_t*)data)[index] = (uint16_t)(int64_t)value;
      break;
    case TL_U32:
      ((uint32_t*)data)[index] = (uint32_t)(int64_t)value;
      break;
    case TL_U64:
      ((uint64_t*)data)[index] = (uint64_t)value;
      break;
    default:
      if (is_float8(dtype)) ((uint8_t*)data)[index] = encode8(dtype, value);
      break;
  }
}

void* element_alloc(tl_dtype dtype, size_t count) {
  const size_t bytes = element_bytes(dtype);
  void* data = NULL;
  if (bytes == 0 || count > (SIZE_MAX - 64) / bytes) return NULL;
  if (posix_memalign(&data, 64, count * bytes + 64) != 0) return NULL;
  memset(data, 0, count * bytes);
  return data;
}

static uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

void element_random(tl_dtype dtype, void* data, size_t count, uint64_t seed) {
  size_t i;
  for (i = 0; i < count; ++i) {
    const uint64_t bits = next_random(&seed);
    if (element_is_float(dtype))
      element_set(dtype, data, i, ldexp((double)(bits >> 11), -52) - 1.0);
    else if (dtype == TL_BOOL)
      element_set(dtype, data, i, (double)(bits >> 63));
    else
      element_set(dtype, data, i, (double)(bits >> 60) - (is_unsigned(dtype) ? 0 : 8));
  }
}
