// The texts that a parser reads beside the program's own (ir/text_include.h).
#pragma once

#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/text_include.h"
#include "ir/text_lexer.h"

namespace tilegen::ir::text {

struct IncludedTexts {
  // A text that includes another one, where that begins.
  struct Open {
    Lexer lexer;
    std::string_view file;  // as locations have it
  };

  IncludeText ask;
  std::vector<Open> around;                 // of the text that is read, the program's first
  std::deque<std::string> texts, files;     // what tokens and locations refer to
  std::set<std::string, std::less<>> read;  // names of texts
};

}  // namespace tilegen::ir::text
