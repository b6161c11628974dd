#include "analysis/written_operand.h"

#include <algorithm>
#include <optional>

#include "analysis/exchange.h"
#include "analysis/projection.h"
#include "analysis/run_ahead.h"
#include "analysis/warpgroup_operand.h"
#include "ir/op_kinds.h"

namespace tilegen::analysis {

using plan::Engine;

namespace {

// Rows of a tile that one warpgroup's product reads: `each` of dimension `dim`, as many for every warpgroup.
struct OwnRows {
  int dim = 0;
  int64_t each = 0;
  bool operator==(const OwnRows&) const = default;
};

class Finder {
 public:
  Finder(const ir::Program& p, const KernelOps& ops, const target::Target& t, int64_t threads, OpPlans plans,
         ValuePlans values, const std::vector<plan::ConversionPlan>& conversions)
      : p_(p),
        ops_(ops),
        target_(t),
        threads_(threads),
        plans_(plans),
        values_(values),
        conversions_(conversions) {}

  std::vector<ThreadWrittenOperand> run() const {
    std::vector<ThreadWrittenOperand> list;
    for (OpId i : ops_.ops.ids()) {
      if (plans_[i].engine != Engine::warpgroup_mma) continue;
      for (int side = 0; side < 2; ++side)
        if (read_by_instructions(i, side))
          note(list, ops_.ops[i].accesses[static_cast<size_t>(side)].value, i);
    }
    std::erase_if(list, [](const ThreadWrittenOperand& w) { return w.writers.empty(); });
    for (ThreadWrittenOperand& w : list) {
      w.lone = w.writers.size() == 1 && !touched_otherwise(w) && same_thread_each_time(w.writers[0], w.value);
      w.own_rows = w.lone && own_rows(w);
    }
    return list;
  }

 private:
  const ir::TileOp& tile_op(OpId op) const { return *p_.as<ir::TileOp>(ops_.ops[op].stmt); }

  MatrixDims dims(OpId product, int side) const {
    const ir::TileOp& op = tile_op(product);
    return matrix_dims(p_, op.operands[static_cast<size_t>(side)],
                       op.flag(side == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b));
  }

  // In shared memory, and not copied on the way.
  bool read_by_instructions(OpId product, int side) const {
    const ValueId value = ops_.ops[product].accesses[static_cast<size_t>(side)].value;
    if (!value.valid() || !values_[value].memory) return false;
    const auto instruction = target::find_warpgroup_atom(target_, plans_[product].atom);
    return instruction && !needs_k_major_copy(*instruction->atom, dims(product, side), side);
  }

  void note(std::vector<ThreadWrittenOperand>& list, ValueId value, OpId product) const {
    auto known = std::find_if(list.begin(), list.end(),
                              [&](const ThreadWrittenOperand& w) { return w.value == value; });
    if (known == list.end()) {
      ThreadWrittenOperand w;
      w.value = value;
      for (OpId i : ops_.ops.ids())
        if (plans_[i].engine != Engine::tensor_copy && writes(i, value)) w.writers.push_back(i);
      known = list.insert(list.end(), std::move(w));
    }
    if (known->products.empty() || known->products.back() != product) known->products.push_back(product);
  }

  bool writes(OpId op, ValueId value) const {
    const auto& accesses = ops_.ops[op].accesses;
    return std::any_of(accesses.begin(), accesses.end(),
                       [&](const OpAccess& a) { return a.write && a.value == value; });
  }

  bool own_rows(const ThreadWrittenOperand& w) const {
    if (threads_ == target_.warpgroup) return true;
    std::optional<OwnRows> rows;
    for (OpId product : w.products)
      for (int side = 0; side < 2; ++side) {
        if (ops_.ops[product].accesses[static_cast<size_t>(side)].value != w.value) continue;
        const auto own = rows_of(product, side);
        if (!own || (rows && !(*rows == *own))) return false;
        rows = own;
      }
    return rows && writes_own(w.writers[0], w.value, *rows);
  }

  bool touched_otherwise(const ThreadWrittenOperand& w) const {
    for (const auto& [where, value] : ops_.scalar_reads)
      if (value == w.value) return true;
    for (OpId i : ops_.ops.ids()) {
      if (std::find(w.products.begin(), w.products.end(), i) != w.products.end()) continue;
      const bool writer = i == w.writers[0];
      for (const OpAccess& a : ops_.ops[i].accesses)
        if (a.value == w.value && (!writer || a.read)) return true;
    }
    return false;
  }

  // Nothing where a warpgroup reads rows of others: of B, and where warpgroups split columns.
  std::optional<OwnRows> rows_of(OpId product, int side) const {
    const GemmShape shape = analysis::gemm_shape(p_, tile_op(product));
    const bool swapped = swaps_operands(shape, target_);
    const plan::OpPlan& plan = plans_[product];
    const int64_t groups_m = (swapped ? plan.warps_n : plan.warps_m) / target_.warpgroup_warps(),
                  groups_n = swapped ? plan.warps_m : plan.warps_n;
    if ((side == 1) != swapped || groups_n != 1 || groups_m * target_.warpgroup != threads_)
      return std::nullopt;
    const MatrixDims d = dims(product, side);
    return OwnRows{side == 0 ? d.row : d.col, (swapped ? shape.n : shape.m) / groups_m};
  }

  // Each element, whenever the op runs.
  bool same_thread_each_time(OpId writer, ValueId value) const {
    const KernelOp& op = ops_.ops[writer];
    const plan::OpPlan& plan = plans_[writer];
    if (op.form != OpForm::element || !plan.iteration || !plan.through_memory.empty() ||
        !conversions_of(p_, ops_, op, values_, conversions_).empty())
      return false;
    int stores = 0;
    for (size_t a = 0; a < op.accesses.size(); ++a) {
      if (!op.accesses[a].write || op.accesses[a].value != value) continue;
      const ops::ElementAccess& access = op.view.accesses[a];
      for (size_t d = 0; d < access.dim_of.size(); ++d)
        if (access.dim_of[d] == ops::kIrregularIndex ||
            access.offset[d] == ops::ElementAccess::kUnknownOffset)
          return false;
      ++stores;
    }
    return stores == 1;
  }

  bool writes_own(OpId writer, ValueId value, const OwnRows& rows) const {
    const KernelOp& op = ops_.ops[writer];
    // A part of a fragment is walked by the threads that hold it.
    const auto held = [&](ValueId v) { return v.valid() && values_[v].fragment.has_value(); };
    if (part_of_fragment(p_, op, held) >= 0) return false;
    for (size_t a = 0; a < op.accesses.size(); ++a) {
      if (!op.accesses[a].write || op.accesses[a].value != value) continue;
      const ops::ElementAccess& access = op.view.accesses[a];
      const int along = access.dim_of[static_cast<size_t>(rows.dim)];
      return along >= 0 && threads_own(*plans_[writer].iteration, along,
                                       access.offset[static_cast<size_t>(rows.dim)], rows.each);
    }
    return false;
  }

  // Of every point the threads that walk it belong to the warpgroup of its row.
  bool threads_own(const layout::Fragment& iteration, int along, int64_t offset, int64_t each) const {
    std::vector<int64_t> point(iteration.shape().size(), 0);
    for (;;) {
      const int64_t group = (point[static_cast<size_t>(along)] + offset) / each;
      for (int64_t thread : iteration.holders(point))
        if (thread / target_.warpgroup != group) return false;
      size_t d = point.size();
      while (d > 0 && ++point[d - 1] == iteration.shape()[d - 1]) point[--d] = 0;
      if (d == 0) return true;
    }
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  const target::Target& target_;
  const int64_t threads_;
  const OpPlans plans_;
  const ValuePlans values_;
  const std::vector<plan::ConversionPlan>& conversions_;
};

bool stands_in(const ir::Block& block, ir::StmtId s) {
  return std::find(block.begin(), block.end(), s) != block.end();
}

// By every iteration, before its products.
bool overwritten_each_time(const ir::Program& p, const KernelOps& ops, const ThreadWrittenOperand& w,
                           const ir::Loop& loop) {
  if (!w.lone) return false;
  const KernelOp& writer = ops.ops[w.writers[0]];
  if (!stands_in(loop.body, writer.stmt)) return false;
  const size_t at =
      static_cast<size_t>(std::find(loop.body.begin(), loop.body.end(), writer.stmt) - loop.body.begin());
  for (OpId product : w.products) {
    const auto place = std::find(loop.body.begin(), loop.body.end(), ops.ops[product].stmt);
    if (place == loop.body.end() || static_cast<size_t>(place - loop.body.begin()) < at) return false;
  }
  if (const auto* elements = p.as<ir::Loop>(writer.stmt))
    for (ir::StmtId s : elements->body)
      if (const auto* store = p.as<ir::Store>(s); !store || store->old) return false;
  const std::vector<int64_t>& shape = ops.values[w.value].shape;
  for (size_t a = 0; a < writer.accesses.size(); ++a) {
    if (!writer.accesses[a].write || writer.accesses[a].value != w.value) continue;
    const ops::ElementAccess& access = writer.view.accesses[a];
    for (size_t d = 0; d < shape.size(); ++d) {
      const int along = access.dim_of[d];
      const int64_t extent = along >= 0 ? writer.view.extents[static_cast<size_t>(along)] : 1;
      if (access.offset[d] != 0 || extent != shape[d]) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<ThreadWrittenOperand> written_operands(const ir::Program& p, const KernelOps& ops,
                                                   const target::Target& t, int64_t threads, OpPlans plans,
                                                   ValuePlans values,
                                                   const std::vector<plan::ConversionPlan>& conversions) {
  return Finder(p, ops, t, threads, plans, values, conversions).run();
}

bool written_inside(const ir::Program& p, const KernelOps& ops, const ThreadWrittenOperand& w,
                    const ir::Loop& loop) {
  const auto inside = ops_inside(p, ops, loop);
  return std::any_of(w.writers.begin(), w.writers.end(), [&](OpId writer) {
    return std::find(inside.begin(), inside.end(), &ops.ops[writer]) != inside.end();
  });
}

bool may_double_buffer(const ir::Program& p, const KernelOps& ops, const ThreadWrittenOperand& w,
                       const ir::Loop& loop, const plan::LoopPlan& plan) {
  if (plan.num_stages < 2 || !overwritten_each_time(p, ops, w, loop)) return false;
  std::vector<OpId> users = w.products;
  users.push_back(w.writers[0]);
  return std::none_of(plan.stages.begin(), plan.stages.end(), [&](const auto& s) {
    return s.second >= plan.num_stages &&
           std::any_of(users.begin(), users.end(), [&](OpId op) { return ops.ops[op].path == s.first; });
  });
}

}  // namespace tilegen::analysis
