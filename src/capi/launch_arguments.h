// tl_arg and DLPack descriptions to launch arguments. Nothing here allocates unless it refuses.
#pragma once

#include <span>

#include "runtime/arguments.h"
#include "runtime/inline_array.h"
#include "support/diagnostic.h"
#include "tilelang.h"

namespace tilegen::capi {

using LaunchArguments = runtime::InlineArray<runtime::Argument, 24>;

// Refuses a null array and absurd counts; behind it LaunchArguments(count) is safe to make.
Checked check_argument_array(const void* array, size_t count, const char* name);

// out[i] = args[i]; shapes and strides stay the caller's.
Checked convert_arguments(const tl_arg* args, std::span<runtime::Argument> out);
Checked convert_tensors(const struct DLTensor* const* tensors, std::span<runtime::Argument> out);

}  // namespace tilegen::capi
