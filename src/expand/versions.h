// Versions of operations in a scheduled program: the branches that OpPlan::full_tile_version,
// unmasked_version and skip_if_identity ask for.
//
// requires: statements as expanded; an operation's plan.
// ensures: what Run or Issue of such an operation was is a Version of it; the factor's is outermost, then the
//   mask's, then the full tile's.
// why here: last step of expansion; versions of an operation do not change what it waits for.
#pragma once

#include "expand/scheduled_kernel.h"

namespace tilegen::expand {

void add_versions(ScheduledKernel& k);

// What is wrong with the versions in `b`: other operations than their own, or other ways of doing it; empty:
// nothing.
std::string broken_version(const Block& b);

// `work` for every list of statements below `b`, and for itself, inner lists first.
template <class B, class Work>
void for_each_block(B& b, const Work& work) {
  for (auto& s : b)
    std::visit(
        [&](auto& node) {
          if constexpr (requires { node.body; }) for_each_block(node.body, work);
          if constexpr (requires { node.before_last; }) for_each_block(node.before_last, work);
          if constexpr (requires { node.then_body; }) for_each_block(node.then_body, work);
          if constexpr (requires { node.else_body; }) for_each_block(node.else_body, work);
          if constexpr (requires { node.bodies; })
            for (auto& one : node.bodies) for_each_block(one, work);
          if constexpr (requires { node.cases; })
            for (auto& one : node.cases) for_each_block(one, work);
        },
        s.node);
  work(b);
}

}  // namespace tilegen::expand
