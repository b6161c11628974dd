// tl_arg and DLPack descriptions to launch arguments. Nothing here allocates unless it refuses.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "capi/guard.h"
#include "runtime/arguments.h"
#include "runtime/inline_array.h"
#include "support/diag_codes.h"
#include "support/diagnostic.h"
#include "tilelang.h"

namespace tilegen::capi {

using LaunchArguments = runtime::InlineArray<runtime::Argument, 24>;

constexpr size_t kMaxArguments = 1u << 16;

// Of a null array or an absurd count there is nothing to convert; after it LaunchArguments(count) is safe to
// make.
inline bool sane_argument_array(const void* array, size_t count) {
  return count == 0 || (array && count <= kMaxArguments);
}
Error absurd_argument_array(const void* array, size_t count, const char* name);

// `timeout_ms` is the first field that the struct did not have when it came into the header.
inline Expected<tl_launch> read_launch(const tl_launch* launch) {
  auto how = read_struct(launch, offsetof(tl_launch, timeout_ms));
  if (how && how->timeout_ms < 0)
    return Error(DiagCode::unknown_option, "", "launch.timeout_ms is " + std::to_string(how->timeout_ms),
                 "give 0 for none, or the milliseconds that the call may take");
  return how;
}

// out[i] = args[i]; shapes and strides stay the caller's. False: `unconverted` says why.
bool convert_arguments(const tl_arg* args, std::span<runtime::Argument> out);
bool convert_tensors(const struct DLTensor* const* tensors, std::span<runtime::Argument> out);
Error unconverted(std::span<const tl_arg> args);
Error unconverted(std::span<const struct DLTensor* const> tensors);

}  // namespace tilegen::capi
