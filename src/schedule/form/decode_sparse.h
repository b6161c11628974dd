// Sparse products as products of expanded operands, for targets that have none: before the product a parallel
// loop puts the values of A where its words say, and zeros elsewhere: in registers where no two warps share
// rows of A, else in shared memory, so that each element is made once.
//
//   gemm_sparse Av, B, meta -> acc  ->  parallel i, k in 64, 64 {
//                                         expanded[i, k] = Av's second or first value of k's four, or 0
//                                       }
//                                       gemm expanded, B -> acc
//
// requires: a checked program. ensures: the same meaning, bit for bit; the product keeps its statement, and
// the loop's path stands below its own ("k/ko/gemm_sparse#0/decode#0").
// why here: planning, lowering and simulation then know products of whole operands only.
#pragma once

#include <vector>

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

struct DecodedOperand {
  ir::StmtId product, loop;
};
// In place.
std::vector<DecodedOperand> decode_sparse(ir::Program& p, const target::Target& t);
// Of a program as written, what its schedule says of them.
std::vector<plan::Note> decoding_notes(const ir::Program& p, const target::Target& t);

}  // namespace tilegen::schedule
