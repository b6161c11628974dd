// Texts that a text of the .tl form includes, from whoever has them: nothing here reads files.
//
//   include "lib/rows.tl"        what that text declares stands here
//
// requires: a function that answers for a path. ensures: the program is the one whose text has the others in
//   the place of their first include; texts of one name are one. Locations carry where a text is included.
// why here: names, limits and errors are those of one program, so that the parser takes all texts in turn.
// refuses: texts that are not given, that include themselves, kMaxIncludeDepth in each other, with a header
//   or open blocks; more bytes together than a text may have.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tilegen::ir {

constexpr int kMaxIncludeDepth = 64;     // in each other
constexpr size_t kMaxIncludePath = 256;  // bytes of a path
constexpr size_t kMaxTextName = 1024;    // and of the name that a text is given

struct IncludeRequest {
  std::string_view path, includer;
  uint32_t line = 0, column = 0;
  int depth = 0;  // 1: of the program's own text
};

struct IncludedText {
  std::string name;                 // empty: the path
  std::optional<std::string> text;  // none: it is refused
  std::string refusal;
};

using IncludeText = std::function<IncludedText(const IncludeRequest&)>;

}  // namespace tilegen::ir
