// The fake CUDA driver: its start, errors, devices and contexts.
#include <cstring>

#include "fake_state.h"

using namespace fake;

namespace {

struct ErrorName {
  int result;
  const char *name, *text;
};
constexpr ErrorName kErrors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"}};

int find_error(int error, const char** out, const char* ErrorName::*text) {
  for (const ErrorName& e : kErrors)
    if (e.result == error) return *out = e.*text, kSuccess;
  *out = nullptr;
  return kInvalidValue;
}

int attribute_of(const State& s, int attribute, int device) {
  switch (attribute) {
    case 1:
      return 1024;
    case 5:
      return 0x7fffffff;
    case 6:
    case 7:
      return 65535;
    case 16:
      return 132;
    case 39:
      return 2048;
    case 75:
      return s.capability[static_cast<size_t>(device)][0];
    case 76:
      return s.capability[static_cast<size_t>(device)][1];
    case 81:
      return 228 << 10;
    case 97:
      return 227 << 10;
    case 106:
      return 32;
    case 111:
      return 1 << 10;
  }
  return -1;
}

}  // namespace

FAKE_API int cuInit(unsigned flags) {
  ENTER();
  if (flags != 0) return kInvalidValue;
  if (s.devices == 0) return kNoDevice;
  s.initialized = true;
  return kSuccess;
}
FAKE_API int cuDriverGetVersion(int* version) {
  ENTER();
  *version = s.version;
  return kSuccess;
}
FAKE_API int cuGetErrorName(int error, const char** text) {
  ENTER();
  return find_error(error, text, &ErrorName::name);
}
FAKE_API int cuGetErrorString(int error, const char** text) {
  ENTER();
  return find_error(error, text, &ErrorName::text);
}
FAKE_API int cuDeviceGetCount(int* count) {
  ENTER();
  *count = s.devices;
  return s.initialized ? kSuccess : kNotInitialized;
}
FAKE_API int cuDeviceGet(int* device, int ordinal) {
  ENTER();
  if (ordinal < 0 || ordinal >= s.devices) return kInvalidDevice;
  *device = 100 + ordinal;  // a handle is not the ordinal
  return kSuccess;
}
FAKE_API int cuDeviceGetName(char* name, int size, int device) {
  ENTER();
  std::strncpy(name, device == 100 ? "Fake H200" : "Fake L4", static_cast<size_t>(size));
  return kSuccess;
}
FAKE_API int cuDeviceTotalMem_v2(size_t* bytes, int) {
  ENTER();
  *bytes = size_t{1} << 30;
  return kSuccess;
}
FAKE_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER();
  *value = attribute_of(s, attribute, device - 100);
  return *value < 0 ? kInvalidValue : kSuccess;
}
FAKE_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER();
  Context*& primary = s.primary[static_cast<size_t>(device - 100)];
  if (!primary) primary = make_context(s, device - 100);
  *context = primary;
  return kSuccess;
}
FAKE_API int cuCtxGetCurrent(void** context) {
  ENTER();
  *context = current();
  return kSuccess;
}
FAKE_API int cuCtxPushCurrent_v2(void* context) {
  ENTER();
  if (!context || !static_cast<Context*>(context)->alive) return kInvalidContext;
  return context_stack().push_back(static_cast<Context*>(context)) ? kSuccess : kOutOfMemory;
}
FAKE_API int cuCtxPopCurrent_v2(void** context) {
  ENTER();
  if (context_stack().empty()) return kInvalidContext;
  *context = context_stack().back();
  context_stack().pop_back();
  return kSuccess;
}
FAKE_API int cuCtxGetDevice(int* device) {
  ENTER();
  if (!has_context(s)) return kInvalidContext;
  *device = 100 + current()->device;
  return kSuccess;
}
#ifndef FAKE_CUDA_OLD
FAKE_API int cuCtxGetId(void* context, unsigned long long* id) {
  ENTER();
  if (!context && !has_context(s)) return kInvalidContext;
  const Context* const asked = context ? static_cast<Context*>(context) : current();
  if (!asked || !asked->alive) return kInvalidContext;
  *id = asked->id;
  return kSuccess;
}
#endif
