// Programs of a text and values of its compile-time parameters.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "capi/objects.h"

namespace tilegen::capi {

// Read and checked.
Expected<std::shared_ptr<const ir::Program>> checked_program(const Limits& limits, std::string_view text,
                                                             const std::string& file,
                                                             std::span<const ir::ParamBinding> bindings,
                                                             const Cancellation* cancellation,
                                                             const ir::IncludeText& include = {});

// An error for a program with compile-time parameters that a builder made.
Checked has_text_to_bind(const tl_program& program);

// `source`: null for a program without compile-time parameters.
void hand_out_program(std::shared_ptr<const ir::Program> program, std::shared_ptr<const ProgramSource> source,
                      tl_program** out_program);

}  // namespace tilegen::capi
