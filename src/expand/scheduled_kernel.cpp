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

}  // namespace tilegen::expand
