#include "expand/scheduled_kernel.h"

#include <algorithm>

namespace tilegen::expand {

std::string name_of(const Pipeline& line) {
  return line.name + (line.parts > 1 ? " part " + std::to_string(line.part) : "");
}

bool fed_by_producer(const ScheduledKernel& k, StmtId loop) {
  return std::any_of(k.pipelines.begin(), k.pipelines.end(), [&](const Pipeline& line) {
    return line.transport == Transport::tensor_copy && line.loop == loop;
  });
}

StmtId operation_of(const Stmt& s) {
  if (const auto* run = std::get_if<Run>(&s.node)) return run->op;
  if (const auto* issue = std::get_if<Issue>(&s.node)) return issue->op;
  return StmtId();
}

bool has_preamble(const ScheduledKernel& k) {
  return std::any_of(k.roles.begin(), k.roles.end(), [](const Role& r) {
    return std::any_of(r.body.begin(), r.body.end(),
                       [](const Stmt& s) { return std::holds_alternative<Preamble>(s.node); });
  });
}

}  // namespace tilegen::expand
