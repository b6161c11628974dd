#include "ir/transaction_barriers.h"

#include <algorithm>
#include <charconv>

#include "ir/op_kinds.h"

namespace tilegen::ir {

std::optional<int64_t> barrier_arrivals(const Buffer& tile) {
  for (const Annotation& a : tile.annotations) {
    if (a.key != kArrivals) continue;
    const std::string& text = a.values.front();
    int64_t arrivals = 0;
    std::from_chars(text.data(), text.data() + text.size(), arrivals);
    return arrivals;
  }
  return std::nullopt;
}

std::vector<BufferId> barriers_of(const Program& p, int kernel) {
  std::vector<BufferId> found;
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].kernel == kernel && barrier_arrivals(p.buffers[b])) found.emplace_back(b);
  return found;
}

bool is_barrier_op(OpKind kind) { return kind == OpKind::mbarrier_arrive || kind == OpKind::mbarrier_wait; }

bool orders_threads(OpKind kind) {
  return is_barrier_op(kind) || kind == OpKind::commit_group || kind == OpKind::wait_group;
}

ThreadRange threads_of(const TileOp& op, const Kernel& kernel) {
  using namespace mbarrier_wait_attr;
  static_assert(static_cast<int>(mbarrier_arrive_attr::first) == static_cast<int>(first) &&
                static_cast<int>(mbarrier_arrive_attr::threads) == static_cast<int>(threads));
  if (op.attrs[threads] == 0) return {0, kernel.threads};
  return {op.attrs[first], op.attrs[threads]};
}

}  // namespace tilegen::ir
