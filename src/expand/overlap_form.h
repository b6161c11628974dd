// The form of a kernel whose last tiles lie within their tensors, over a part of the tiles before them:
//
//   kernel gemm(by, bx)                          first = min(by * 128, max(m - 128, 0))
//     copy A[by * 128 :+ 128, ..] -> As     ->   copy A[first :+ 128, ..] -> As
//     ..                                         ..
//     copy acc -> C[by * 128 :+ 128, ..]         copy acc -> C[first :+ 128, ..]
//
// The copy engine fills what a tile has beyond a tensor with zeros, more slowly than it loads
// (bench/gpu/outside.py). Rows that two blocks have both make are the same twice.
//
// requires: a checked program, in canonical form or not.
// ensures: the same meaning (analysis/independent_rows.h). Statements keep their paths, the hash is the
//   program's as written.
// why here: a program and its schedule give the form, as with split_form.h, of which this one is made first.
// refuses: with the reason as text, kernels whose rows are not independent of each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::expand {

struct Overlap {
  std::vector<std::string> along;  // block indices
  std::string refusal;             // of a block index whose last tile would gain by it
};
// Of the block indices by which the copy engine may load tiles that reach beyond their tensor.
Overlap find_overlap(const ir::Program& p, int kernel, const target::Target& t);

// Why the kernel cannot have that form; empty: it can.
std::string overlap_refusal(const ir::Program& p, int kernel, const std::string& along);

ir::Program overlap_form(const ir::Program& p, int kernel, const std::vector<std::string>& along);

// The program as the schedule has it planned: each kernel with its overlap and its split. Nothing where none
// has either.
std::optional<ir::Program> scheduled_form(const ir::Program& p, const plan::Schedule& s);

}  // namespace tilegen::expand
