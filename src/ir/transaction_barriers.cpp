#include "ir/transaction_barriers.h"

#include <algorithm>
#include <charconv>

#include "ir/op_kinds.h"

namespace tilegen::ir {

namespace {

std::optional<int64_t> number_of(const Buffer& tile, std::string_view key) {
  for (const Annotation& a : tile.annotations) {
    if (a.key != key) continue;
    const std::string& text = a.values.front();
    int64_t arrivals = 0;
    std::from_chars(text.data(), text.data() + text.size(), arrivals);
    return arrivals;
  }
  return std::nullopt;
}

std::vector<BufferId> annotated(const Program& p, int kernel, std::string_view key) {
  std::vector<BufferId> found;
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].kernel == kernel && number_of(p.buffers[b], key)) found.emplace_back(b);
  return found;
}

}  // namespace

std::optional<int64_t> barrier_arrivals(const Buffer& tile) { return number_of(tile, kArrivals); }
std::vector<BufferId> barriers_of(const Program& p, int kernel) { return annotated(p, kernel, kArrivals); }

std::optional<int64_t> barrier_participants(const Buffer& tile) { return number_of(tile, kParticipants); }
std::vector<BufferId> named_barriers_of(const Program& p, int kernel) {
  return annotated(p, kernel, kParticipants);
}

bool is_named_barrier_op(OpKind kind) {
  return kind == OpKind::barrier_arrive || kind == OpKind::barrier_sync;
}
bool is_barrier_op(OpKind kind) {
  return kind == OpKind::mbarrier_arrive || kind == OpKind::mbarrier_wait || is_named_barrier_op(kind);
}

bool orders_threads(OpKind kind) {
  return is_barrier_op(kind) || kind == OpKind::commit_group || kind == OpKind::wait_group;
}

ThreadRange threads_of(const TileOp& op, const Kernel& kernel) {
  using namespace mbarrier_wait_attr;
  static_assert(static_cast<int>(mbarrier_arrive_attr::first) == static_cast<int>(first) &&
                static_cast<int>(mbarrier_arrive_attr::threads) == static_cast<int>(threads));
  static_assert(static_cast<int>(barrier_arrive_attr::first) == static_cast<int>(first) &&
                static_cast<int>(barrier_arrive_attr::threads) == static_cast<int>(threads));
  static_assert(static_cast<int>(barrier_sync_attr::first) == static_cast<int>(first) &&
                static_cast<int>(barrier_sync_attr::threads) == static_cast<int>(threads));
  if (op.attrs[threads] == 0) return {0, kernel.threads};
  return {op.attrs[first], op.attrs[threads]};
}

}  // namespace tilegen::ir
