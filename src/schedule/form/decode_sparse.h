// Sparse products as products of expanded operands, where instructions do not do them: before the product a
// parallel loop puts the values of A where its words say, and zeros elsewhere: in registers where no two
// warps share rows of A, else in shared memory, so that each element is made once. Where instructions do,
// words in registers are copied to shared memory, where every lane finds those that its instruction takes.
//
//   gemm_sparse Av, B, meta -> acc  ->  parallel i, k in 64, 64 {
//                                         expanded[i, k] = Av's second or first value of k's four, or 0
//                                       }
//                                       gemm expanded, B -> acc
//
// requires: a checked program. ensures: the same meaning, bit for bit; the product keeps its statement, and
// the loop's path stands below its own ("k/ko/gemm_sparse#0/decode#0").
// why here: planning, lowering and simulation then know products of whole operands, and of words in memory.
#pragma once

#include <set>
#include <vector>

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

std::vector<ir::StmtId> sparse_products(const ir::Program& p);

struct DecodedOperand {
  ir::StmtId product, loop;
};
// In place; of `expanded` the operands, of others the words.
std::vector<DecodedOperand> decode_sparse(ir::Program& p, const target::Target& t,
                                          const std::set<ir::StmtId>& expanded);
// Of a program as written and what is given for it, what its schedule says of them.
std::vector<plan::Note> decoding_notes(const ir::Program& p, const target::Target& t,
                                       const plan::Schedule* given = nullptr);

}  // namespace tilegen::schedule
