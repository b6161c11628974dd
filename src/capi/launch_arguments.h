// tl_arg and DLPack descriptions to launch arguments. Nothing here allocates unless it refuses.
#pragma once

#include <span>

#include "runtime/arguments.h"
#include "runtime/inline_array.h"
#include "support/diagnostic.h"
#include "tilelang.h"

namespace tilegen::capi {

using LaunchArguments = runtime::InlineArray<runtime::Argument, 24>;

constexpr size_t kMaxArguments = 1u << 16;

// Of a null array or an absurd count there is nothing to convert; behind it LaunchArguments(count) is safe to make.
inline bool sane_argument_array(const void* array, size_t count) { return count == 0 || (array && count <= kMaxArguments); }
Error absurd_argument_array(const void* array, size_t count, const char* name);

// out[i] = args[i]; shapes and strides stay the caller's. False: `unconverted` says why.
bool convert_arguments(const tl_arg* args, std::span<runtime::Argument> out);
bool convert_tensors(const struct DLTensor* const* tensors, std::span<runtime::Argument> out);
Error unconverted(std::span<const tl_arg> args);
Error unconverted(std::span<const struct DLTensor* const> tensors);

}  // namespace tilegen::capi
