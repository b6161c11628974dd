// Annotations of a program (ir/program.h) and the table after annotations.def: which keys a kernel, a loop,
// an operation and a tile may have, and what kind of value each has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::ir {

enum class AnnotationPlace : uint8_t { kernel, loop, op, tile };
enum class AnnotationKind : uint8_t { flag, number, numbers, word, name, names, text, layout };

struct AnnotationRow {
  AnnotationPlace place;
  std::string_view key;
  AnnotationKind kind;
  int64_t least;            // of numbers
  std::string_view values;  // word: "first|second"
};
std::span<const AnnotationRow> annotation_rows();
const AnnotationRow* annotation_row(AnnotationPlace place, std::string_view key);
bool is_list(AnnotationKind kind);

// Where annotations of the statement are; none for a statement that has none.
std::optional<AnnotationPlace> annotation_place(const Program& p, StmtId s);

// "vector=8, engine=mma", as it stands between braces.
std::string print_annotations(const Annotations& list, AnnotationPlace place);

// Reads it. `what` names the owner in messages.
Expected<Annotations> parse_annotations(std::string_view text, AnnotationPlace place, std::string_view what,
                                        const Limits& limits);

// It has a label or annotations.
bool is_marked(const Stmt& s);
// The program says which thread runs which point of the loop: it stays a loop of its own, as written.
bool fixes_threads(const Stmt& s);
// A parallel loop whose copies are done where a wait_group says so.
bool is_asynchronous(const Stmt& s);

// (i, j) -> i * 72 + j: what the function gives for each index of `shape`, in row-major order. `text` is what
// the parser made canonical.
Expected<std::vector<int64_t>> index_function_values(std::string_view text, std::span<const int64_t> shape,
                                                     const Limits& limits);

}  // namespace tilegen::ir
