// The .tl text as people write it, laid out: indentation by blocks, spaces between tokens, comments and line
// breaks kept.
//
//   parallel i,j in 128,64 {            parallel i, j in 128, 64 {
//   c [i,j]=c[i,j]*2 ;twice      ->       c[i, j] = c[i, j] * 2  ; twice
//   }                                   }
//
// requires: a text that the parser reads. ensures: the same tokens, hence the same program; formatting again
// changes nothing. Comments at the ends of neighbouring lines stand below each other.
// why here: it knows the lexer's tokens and the words of the grammar; it needs no program.
#pragma once

#include <string>
#include <string_view>

namespace tilegen::ir {

std::string format_text(std::string_view text);

}  // namespace tilegen::ir
