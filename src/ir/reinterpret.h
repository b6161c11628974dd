// What is said where the bits of one type are to be read as another that cannot have them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/dtype.h"

namespace tilegen::ir {

struct BitsRefusal {
  std::string message, hint;
};
// Nothing where values of `from` may be read as `to`. `what`, which begins the message, does it.
std::optional<BitsRefusal> bits_refusal(std::string_view what, DType from, DType to);

}  // namespace tilegen::ir
