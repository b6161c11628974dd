// Work of the expressions of a parallel loop's body, by the points that each part of them differs along: what
// is the same for a row of points is computed once for it.
#pragma once

#include <functional>

#include "cost/work.h"
#include "ir/program.h"
#include "layout/fragment.h"
#include "target/target.h"

namespace tilegen::cost {

// A node of the body's expressions; what is the same is one node.
struct BodyNode {
  const ir::ExprNode& node;
  bool element = false;  // an element is read at it or below
  uint32_t along = 0;    // a bit for each variable of the loop that it differs along
  bool fused = false;    // its user does it: a product before a sum, what cuts a field of bits out
  bool mask = false;     // a select whose condition reads no element
  bool field = false;    // a field of bits of an integer that becomes a 16-bit float
};
// Operands before their users.
void for_each_body_node(const ir::Program& p, const ir::Loop& loop, const target::Target& t,
                        const std::function<void(const BodyNode&)>& visit);
// Extent of each variable of the loop, all constant.
std::vector<double> loop_extents(const ir::Program& p, const ir::Loop& loop);

// Instructions of the node, as the targets' code generators write it out.
double instructions_of(const ir::ExprPool& e, const ir::ExprNode& n);

// `iteration`: of the loop's points over the block's threads; null: every thread's share is that of the
// block's points over all of them. `unmasked`: conditions on indices hold, as far as versions of the code
// leave them out.
Work loop_work(const ir::Program& p, const ir::Loop& loop, const layout::Fragment* iteration, int64_t threads,
               bool unmasked, const target::Target& t);

}  // namespace tilegen::cost
