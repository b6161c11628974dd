#include "sim/cluster_run.h"

#include <algorithm>
#include <iterator>

#include "layout/tensor_tile.h"
#include "support/checked.h"

namespace tilegen::sim {

namespace {

LaneMask lanes_below(int64_t n, int lanes) {
  const auto last = std::clamp<int64_t>(n, 0, lanes);
  return last == kMaxLanes ? ~LaneMask{0} : (LaneMask{1} << last) - 1;
}

// A swizzle moves bytes of the last row of a box by less.
constexpr size_t kSwizzleReach = std::end(layout::kBoxSwizzles)[-1];

// A multiple of the repeat of any swizzle, where several follow each other.
int64_t stride_of_arena(const thread::ThreadProgram& p) {
  const int64_t bytes = p.arena_bytes + static_cast<int64_t>(kSwizzleReach);
  return p.cluster > 1 ? ceil_div(bytes, layout::kSwizzleRepeat) * layout::kSwizzleRepeat : bytes;
}

}  // namespace

ClusterRun::ClusterRun(const Launch& l)
    : launch(l),
      code(*l.code),
      lanes(code.lanes),
      program(*l.code->program),
      options(*l.options),
      engines(program),
      arena_stride(stride_of_arena(program)),
      warps(static_cast<size_t>(engines.warps())),
      temporaries((size_t{code.temporaries} + 1) * static_cast<size_t>(lanes)),
      arena(static_cast<size_t>(arena_stride * program.cluster)),
      barriers(static_cast<size_t>(std::max(1, program.machine.named_barriers)) *
               static_cast<size_t>(program.cluster)),
      groups(static_cast<size_t>(engines.groups())),
      order(engines.warps(), engines.count()),
      history(arena_stride * program.cluster, l.granule),
      asked_by(static_cast<size_t>(engines.count())),
      unit_marks(static_cast<size_t>(arena.size() / 16 + 1)),
      sums(code.accesses.size()) {
  for (const thread::TransactionBarriers& b : program.barriers)
    transactions.emplace_back(static_cast<size_t>(b.count * program.cluster));
  for (size_t i = 0; i < warps.size(); ++i) {
    Warp& w = warps[i];
    w.index = static_cast<int>(i);
    w.rank = w.index / engines.block_warps();
    w.local = w.index % engines.block_warps();
    w.lanes = lanes;
    w.all = lanes_below(program.threads - int64_t{w.local} * lanes, lanes);
    w.kept.resize(size_t{code.kept} * static_cast<size_t>(lanes));
    w.registers.resize(size_t{code.registers} * static_cast<size_t>(lanes));
    w.written.resize(code.registers);
    if (options.places != nullptr) {
      w.origins.resize(size_t{code.registers} * static_cast<size_t>(lanes));
      w.products.resize(options.places->ops);
    }
    if (l.counts_loads) w.loads.of_register.resize(code.registers);
    w.in_product.resize(code.registers);
    w.touched_at.resize(code.registers);
    w.uniform = l.uniform;
    w.values = {w.uniform.data(), w.kept.data(), temporaries.data(), lanes};
  }
}

}  // namespace tilegen::sim
