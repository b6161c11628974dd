// Names of texts in locations. That of a text which another one includes carries where that is, so that each
// stage hands it on with the location.
//
// requires: names without zero bytes. ensures: `file` of a SourceLocation is the name as C strings end, then,
// of an included text, a zero byte and the places of the includes, the innermost first, kShownPlaces at most.
#pragma once

#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tilegen {

constexpr size_t kShownPlaces = 4;

// `file` of the locations in a text of that name which is included at `at`.
std::string included_file(std::string_view name, const SourceLocation& at);

std::string_view file_name(const SourceLocation& at);
// "lib/rows.tl:2:1, main.tl:4:1"; "" of a text that no other includes.
std::string_view included_at(const SourceLocation& at);
// "main.tl:4:1"; without a file "4:1".
std::string place_text(const SourceLocation& at);

}  // namespace tilegen
