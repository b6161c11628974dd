// Loops whose iterations two warpgroups may have by turns.
//
//   pipelined k {                           iteration 0     iteration 1
//     scores  = gemm Q, K[k]   (cleared)    warpgroup 0     warpgroup 1
//     weights = exp2(scores - top), ..      warpgroup 0     warpgroup 1
//     sums   += gemm weights, V[k]          both            both: each has its columns
//   }
//
// The one makes scores and weights while products of the other, and of both, have the matrix units.
//
// requires: a checked program, collected ops.
// ensures: an iteration's `products` and `work`, done by one warpgroup in this order, and then `shared`, done
//   by both, come to what program order does, if `rows` go to the other warpgroup in between. `work` writes
//   fragments, and tiles that only `shared` reads.
// why here: layouts follow from it; whether tiles, engines and memory allow it is seen after them.
// refuses: with the reason as text.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analysis/kernel_ops.h"

namespace tilegen::analysis {

struct Alternation {
  // Of `work`, in this order. The other warpgroup's part of `work` begins with what the head has made, and
  // `shared` needs nothing of the tail.
  enum class Part : uint8_t { head, middle, tail };
  // A fragment of one dimension that `work` writes and others read.
  struct Row {
    ValueId value;
    bool carried = false;      // by the loop: the next iteration reads it
    Part part = Part::middle;  // behind which it is final
  };
  std::vector<OpId> products;  // whose sums an iteration begins anew, in program order
  std::vector<OpId> work;      // of threads, on these sums
  std::vector<OpId> shared;    // what the loop carries for both warpgroups
  std::vector<Row> rows;
  // As many of `work` are its head, which needs none of the iteration before but rows of its head; 0: there
  // are no such rows. Those from `tail` on are the tail.
  size_t head = 0, tail = 0;
  std::string refusal;  // empty: iterations may alternate
};
Alternation find_alternation(const ir::Program& p, const KernelOps& ops, ir::StmtId loop);

// The op of this path is in a loop of the plan whose iterations warpgroups have by turns.
bool has_turns(const plan::KernelSchedule& k, const std::string& op);

}  // namespace tilegen::analysis
