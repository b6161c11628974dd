// The fake HIP runtime: its start, errors and devices.
#include <cstring>

#include "fake_state.h"

using namespace fake;

namespace {

struct ErrorName {
  int result;
  const char *name, *text;
};
constexpr ErrorName kErrors[] = {
    {0, "hipSuccess", "no error"},
    {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"},
    {9, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {100, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {101, "hipErrorInvalidDevice", "invalid device ordinal"},
    {200, "hipErrorInvalidImage", "device kernel image is invalid"},
    {209, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {218, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {303, "hipErrorSharedObjectInitFailed", "shared object initialization failed"},
    {400, "hipErrorInvalidHandle", "invalid resource handle"},
    {500, "hipErrorNotFound", "named symbol not found"},
    {700, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "hipErrorLaunchOutOfResources", "out of resources"},
    {719, "hipErrorLaunchFailure", "unspecified launch failure"},
    {900, "hipErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {906, "hipErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"}};

int find_error(int error, const char** out, const char* ErrorName::*text) {
  for (const ErrorName& e : kErrors)
    if (e.result == error) return *out = e.*text, kSuccess;
  return kInvalidValue;
}

// Of an MI300X; the numbers of attributes are hipDeviceAttribute_t's.
int attribute_of(const State& s, int attribute) {
  if (const auto set = s.attributes.find(attribute); set != s.attributes.end()) return set->second;
  constexpr struct {
    int attribute, value;
  } kRows[] = {{25, 32},  {29, 0x7fffffff}, {30, 65536}, {31, 65536}, {56, 1024},       {57, 2048},
               {63, 304}, {74, 64 << 10},   {87, 64},    {88, 1},     {10002, 64 << 10}};
  for (const auto& row : kRows)
    if (row.attribute == attribute) return row.value;
  return -1;
}

}  // namespace

FAKE_API int hipInit(unsigned flags) {
  return call("hipInit", InCapture::yes, [&](State& s) {
    if (flags != 0) return kInvalidValue;
    if (s.devices == 0) return kNoDevice;
    s.initialized = true;
    return kSuccess;
  });
}
FAKE_API int hipRuntimeGetVersion(int* version) {
  return call("hipRuntimeGetVersion", InCapture::yes, [&](State& s) {
    *version = s.version;
    return kSuccess;
  });
}
FAKE_API int hipDrvGetErrorName(int error, const char** text) {
  return call("hipDrvGetErrorName", InCapture::yes,
              [&](State&) { return find_error(error, text, &ErrorName::name); });
}
FAKE_API int hipDrvGetErrorString(int error, const char** text) {
  return call("hipDrvGetErrorString", InCapture::yes,
              [&](State&) { return find_error(error, text, &ErrorName::text); });
}
FAKE_API int hipGetLastError() {
  const int error = last_error();
  return call("hipGetLastError", InCapture::yes,
              [&](State&) {
                last_error() = kSuccess;
                return kSuccess;
              }) == kSuccess
             ? error
             : kNotInitialized;
}
FAKE_API int hipGetDeviceCount(int* count) {
  return call("hipGetDeviceCount", InCapture::yes, [&](State& s) {
    *count = s.devices;
    return s.initialized ? kSuccess : kNotInitialized;
  });
}
FAKE_API int hipDeviceGet(int* device, int ordinal) {
  return call("hipDeviceGet", InCapture::yes, [&](State& s) {
    if (ordinal < 0 || ordinal >= s.devices) return kInvalidDevice;
    *device = ordinal;
    return kSuccess;
  });
}
FAKE_API int hipDeviceGetName(char* name, int size, int device) {
  return call("hipDeviceGetName", InCapture::yes, [&](State&) {
    std::strncpy(name, device == 0 ? "Fake MI300X" : "Fake MI250X", static_cast<size_t>(size));
    return kSuccess;
  });
}
FAKE_API int hipDeviceTotalMem(size_t* bytes, int) {
  return call("hipDeviceTotalMem", InCapture::yes, [&](State&) {
    *bytes = size_t{1} << 30;
    return kSuccess;
  });
}
FAKE_API int hipDeviceGetAttribute(int* value, int attribute, int device) {
  return call("hipDeviceGetAttribute", InCapture::yes, [&](State& s) {
    if (device < 0 || device >= s.devices) return kInvalidDevice;
    *value = attribute_of(s, attribute);
    return *value < 0 ? kInvalidValue : kSuccess;
  });
}
// hipDeviceProp_t of HIP 6: 1472 bytes, gcnArchName[256] at 1160, warpSize at 308.
FAKE_API int hipGetDevicePropertiesR0600(char* properties, int device) {
  return call("hipGetDevicePropertiesR0600", InCapture::yes, [&](State& s) {
    if (device < 0 || device >= s.devices) return kInvalidDevice;
    std::memset(properties, 0, 1472);
    const int warp = attribute_of(s, 87);
    std::memcpy(properties + 308, &warp, sizeof warp);
    std::strncpy(properties + 1160, s.architecture[static_cast<size_t>(device)].c_str(), 255);
    return kSuccess;
  });
}
FAKE_API int hipGetDevice(int* device) {
  return call("hipGetDevice", InCapture::yes, [&](State&) {
    *device = current_device();
    return kSuccess;
  });
}
FAKE_API int hipSetDevice(int device) {
  return call("hipSetDevice", InCapture::yes, [&](State& s) {
    if (device < 0 || device >= s.devices) return kInvalidDevice;
    current_device() = device;
    return kSuccess;
  });
}
