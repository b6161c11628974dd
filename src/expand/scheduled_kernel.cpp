#include "expand/scheduled_kernel.h"

#include <algorithm>

namespace tilegen::expand {

bool fed_by_producer(const ScheduledKernel& k, StmtId loop) {
  return std::any_of(k.pipelines.begin(), k.pipelines.end(), [&](const Pipeline& line) {
    return line.transport == Transport::tensor_copy && line.loop == loop;
  });
}

}  // namespace tilegen::expand
