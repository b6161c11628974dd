// The form of a kernel whose blocks share the iterations of a loop ("split k"): for grids that do not fill
// the machine.
//
//   kernel gemm(by, bx)                    kernel gemm(part in 0..4, by, bx)
//     fill acc, 0                            fill acc, 0
//     pipelined ko in 0..n { .. }     ->     pipelined ko in part * n/4 .. + n/4 { .. }
//     copy acc -> C                          copy acc -> C     where part is 0, of the sums of all parts
//
// Through a cluster: the blocks of a point are one, and expansion has the first sum what each of them has, in
// the order of `part` (ReduceParts of expand/scheduled_kernel.h), or each a share of it. Through a workspace:
// the block that comes last sums what all have left there, in that order (workspace_split.h).
// requires: a checked program, in canonical form or not.
// ensures: the same meaning, but for the order in which a sum is formed, which is the same for every launch
//   of the same sizes. Statements keep their paths, the hash is the program's as written.
// why here: a program and its schedule give the form; it is planned, and expanded, as another loop and
//   another grid, and nothing else is new.
// refuses: with the reason as text, loops that leave more than sums (analysis/split_loop.h); grids of three
//   dimensions; targets without clusters, or without blocks of threads; parts that are none.
#pragma once

#include <memory>
#include <string>

#include "analysis/kernel_ops.h"
#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::expand {

// cluster_shares: each block of the cluster does a share of what follows the loop (share_form.h).
enum class SplitThrough : uint8_t { cluster, cluster_shares, workspace };
constexpr bool through_cluster(SplitThrough through) { return through != SplitThrough::workspace; }

// Of a plan that says so; and of any: where it does not, through a cluster if the target forms one of so many
// blocks.
SplitThrough split_through(const plan::SplitPlan& plan);
SplitThrough split_through(const plan::SplitPlan& plan, const target::Target& t);
const char* split_through_name(SplitThrough through);

constexpr int64_t kMaxWorkspaceParts = 64;

// Empty: the kernel can have the form. `ops` where they have been collected, else null.
std::string split_refusal(const ir::Program& p, int kernel, const target::Target& t, ir::StmtId loop,
                          int64_t parts, SplitThrough through = SplitThrough::cluster,
                          const analysis::KernelOps* ops = nullptr);

// `written`: how `p` was written, for callers that make several forms; null where it is to be found.
using Written = std::shared_ptr<const ir::Program::Written>;
Written written_as(const ir::Program& p);
ir::Program split_form(const ir::Program& p, int kernel, ir::StmtId loop, int64_t parts,
                       SplitThrough through = SplitThrough::cluster, const Written& written = nullptr);

// The loop of that path; invalid: the kernel has none.
ir::StmtId loop_of_path(const ir::Program& p, int kernel, const std::string& path);

}  // namespace tilegen::expand
