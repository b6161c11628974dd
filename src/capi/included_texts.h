// Texts that a program includes, of a caller's function, and what is kept of them to read the program anew.
#pragma once

#include <string>
#include <vector>

#include "ir/text_include.h"
#include "tilelang.h"

namespace tilegen::capi {

// What a program with compile-time parameters is read of.
struct ProgramSource {
  std::string text, file;
  std::vector<ir::IncludedText> included;  // what was given, in order

  // Gives the same once more, to one reader. Must not outlive this.
  ir::IncludeText again() const;
};

// Asks `fn`; what it gives is added to `given`, where a text of a name that was given before is left out.
ir::IncludeText texts_of(tl_include_fn fn, void* user, std::vector<ir::IncludedText>& given);

}  // namespace tilegen::capi
