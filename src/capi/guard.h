// The wall between C callers and C++: every entry point runs inside guard() or shielded(), so nothing is
// thrown at a caller, and every failure becomes a status and an error object.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "capi/objects.h"
#include "support/diag_codes.h"
#include "support/worker.h"

namespace tilegen::capi {

inline constexpr char kOutOfMemory[] = "the process is out of memory";

// Hands an error out and returns its status. Diagnostics without an op or a stage get `call` and "api".
tl_status publish(const char* call, Error error, tl_error** out_error) noexcept;
// Always an error: where there is no memory for its words either, one that was made before.
tl_status publish_out_of_memory(const char* call, const char* what, tl_error** out_error) noexcept;
tl_status publish_defect(const char* call, const char* what, tl_error** out_error) noexcept;

Error null_argument(std::string_view what);

// `body` returns Checked.
template <class Body>
tl_status guard(const char* call, tl_error** out_error, Body&& body) noexcept {
  if (out_error) *out_error = nullptr;
  try {
    Checked result = body();
    return result ? TL_OK : publish(call, std::move(result.error()), out_error);
  } catch (const NoThread& e) {
    return publish_out_of_memory(call, e.what(), out_error);
  } catch (const std::bad_alloc&) {
    return publish_out_of_memory(call, kOutOfMemory, out_error);
  } catch (const std::exception& e) {
    return publish_defect(call, e.what(), out_error);
  } catch (...) {
    return publish_defect(call, "unknown exception", out_error);
  }
}

// For calls that report nothing: the fallback stands in for what could not be made.
template <class R, class Body>
R shielded(R fallback, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return fallback;
  }
}

constexpr uint32_t kMaxStruct = 1u << 12;  // a larger struct_size was never set

tl_diagnostic diagnostic_value(const Diagnostic& d);  // its strings are those of `d`
constexpr size_t kFirstDiagnostic = offsetof(tl_diagnostic, included_at);

// Copies a struct out as far as the caller's struct_size says; what the caller knows beyond us is zeroed.
// `first_version` is the size the struct had when it came into the header; a caller compiled then still fits.
template <class T>
Checked fill_struct(T* out, const T& value, size_t first_version = sizeof(T)) {
  const uint32_t size = out->struct_size;
  if (size < first_version || size > kMaxStruct)
    return Error(
        DiagCode::bad_struct_size, "",
        "struct_size is " + std::to_string(size) + ", expected " + std::to_string(first_version) + " or more",
        "set struct_size to sizeof the struct before the call");
  std::memset(out, 0, size);
  std::memcpy(out, &value, size < sizeof(T) ? size : sizeof(T));
  out->struct_size = size;
  return Unit{};
}

// Copies a struct in. A tail that this version does not know must be zero: it would ask for something we
// cannot do. What a caller compiled with an earlier version (of at least `first_version` bytes) does not know
// is zero.
template <class T>
Expected<T> read_struct(const T* in, size_t first_version = sizeof(T)) {
  const uint32_t size = in->struct_size;
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  bool good = size >= first_version && size <= kMaxStruct;
  for (size_t i = sizeof(T); good && i < size; ++i) good = bytes[i] == 0;
  if (!good)
    return Error(DiagCode::bad_struct_size, "",
                 size < first_version || size > kMaxStruct
                     ? "struct_size is " + std::to_string(size) + ", expected " +
                           std::to_string(first_version) + " or more"
                     : "the struct of " + std::to_string(size) +
                           " bytes sets fields that this version of the library does not know",
                 "set struct_size to sizeof the struct and zero what is not used");
  T value{};
  std::memcpy(&value, in, size < sizeof(T) ? size : sizeof(T));
  return value;
}

}  // namespace tilegen::capi
