// Programs one or a few small edits away from another: facts, constants, extents, operators, types, names,
// indices, loops, statements and attributes of its text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data.h"
#include "program_text.h"

namespace tilegen::differential {

// One edit at a random place. False: there is no such place.
using Mutation = bool (*)(ProgramText& text, Random& random);
std::span<const Mutation> token_mutations();
std::span<const Mutation> statement_mutations();

// requires: a text that parses. ensures: the text, as it is written or as ir::print_program writes it, of a
// program that passes check_program and is up to `edits` edits away; the same for the same state of `random`.
std::string mutated_program(const std::string& text, Random& random, int edits);

}  // namespace tilegen::differential
