// What leaves a kernel by tensor copies, and how the tiles lie that no engine touches.
#include <algorithm>
#include <utility>

#include "ir/statement_paths.h"
#include "schedule/kernel_planner.h"
#include "schedule/memory/tile_layouts.h"

namespace tilegen::schedule {

// Which fragments and tiles leave by tensor copies, and the stages of the loops beside them.
void KernelPlanner::choose_stores() {
  stores_.clear();
  stages_share_ = false;
  not_stored_.clear();
  if (target_.tensor_copy) find_stores();
  fit_stores();
  widen_epilogue_tiles();
  for (const StagedStore& s : stores_) {
    plan::OpPlan& plan = layouts_.ops[s.op];
    plan.engine = Engine::tensor_copy;
    plan.iteration.reset();
    plan.vector = 0;
    plan.epilogue_columns = s.pass;
    const plan::OpPlan* given = given_op(s.op);
    plan.computed_first = given && given->computed_first ? *given->computed_first : computed_by_threads(s.op);
    plan.reason = "staged in shared memory, " + std::to_string(s.pass) + " of " +
                  std::to_string(s.stage.columns) + " columns of a warpgroup at once" +
                  (stages_share_ ? ", in a place that is another's before and after" : "");
  }
}

// A loop over elements writes what the copy stores.
bool KernelPlanner::computed_by_threads(OpId copy) const {
  return std::any_of(ops_.ops.begin(), ops_.ops.end(), [&](const KernelOp& op) {
    return !p_.as<ir::TileOp>(op.stmt) &&
           std::any_of(op.accesses.begin(), op.accesses.end(), [&](const analysis::OpAccess& a) {
             return a.write && a.value == ops_.ops[copy].accesses[0].value;
           });
  });
}

void KernelPlanner::find_stores() {
  for (OpId i : ops_.ops.ids()) {
    const auto* copy = p_.as<ir::TileOp>(ops_.ops[i].stmt);
    if (!copy || !ops::is_transfer(*copy) ||
        p_.buffer(copy->operands[1].buffer).scope != ir::MemScope::global ||
        !ops_.ops[i].accesses[0].value.valid())
      continue;
    const plan::OpPlan* g = given_op(i);
    if (g && g->engine && g->engine != Engine::tensor_copy) continue;
    if (produced_.empty() && !(g && g->engine == Engine::tensor_copy)) continue;
    std::string why =
        options_.tensor_copies == TensorCopies::loads_and_stores
            ? store_refusal(p_, kernel_, ops_, i, layouts_.values, layouts_.conversions, target_)
            : "planned without them";
    plan::ValuePlan& source = layouts_.values[ops_.ops[i].accesses[0].value];
    if (why.empty() && source.memory) {
      store_tile(i, source);
      continue;
    }
    StagedStore s;
    if (why.empty()) {
      s.op = i;
      s.stage = *analysis::epilogue_tile(p_, ops_.ops[i], *source.fragment, target_, nullptr);
      s.pass = s.stage.least_columns;
      if (g && g->epilogue_columns > 0) {
        s.given = true;
        s.pass = g->epilogue_columns;
        if (s.pass % s.stage.least_columns != 0 || s.stage.columns % s.pass != 0)
          why = "epilogue tiles of " + std::to_string(s.pass) + " columns do not divide " +
                std::to_string(s.stage.columns) + " into multiples of " +
                std::to_string(s.stage.least_columns);
      }
    }
    if (why.empty()) {
      stores_.push_back(std::move(s));
    } else {
      not_stored_[i] = why;
      notes_.push_back({ops_.ops[i].path, "no tensor copies: " + why});
    }
  }
}

void KernelPlanner::store_tile(OpId op, plan::ValuePlan& tile) {
  if (auto boxed = store_tile_layout(p_, ops_.ops[op], tile)) {
    tile.memory = std::move(*boxed);
    tile.reason = "boxes of the copy engine: no instruction asks for another form";
  }
  plan::OpPlan& plan = layouts_.ops[op];
  plan.engine = Engine::tensor_copy;
  plan.iteration.reset();
  plan.vector = 0;
  plan.reason = "the copy engine stores the tile in boxes";
  engine_values_.insert(ops_.ops[op].accesses[0].value);
}

// Loops keep two stages beside staged stores, or the one that they ask for; or the stores share a place; or
// they are plain.
void KernelPlanner::fit_stores() {
  bool lost = false;
  const auto crowded = [&] {
    plan_loops();
    const auto& products = tensor_loads_.products;
    lost = std::any_of(products.begin(), products.end(), [&](const auto& f) {
      const ir::StmtId loop = f.second.loop;
      return one_stage(loop) && p_.as<ir::Loop>(loop)->num_stages != 1;
    });
    return lost || arena(pipelines_.slots) > target_.shared_bytes;
  };
  if (!crowded() || stores_.empty()) return;
  stages_share_ = true;
  if (!crowded()) return;
  stages_share_ = false;
  const bool two = lost || std::any_of(pipelines_.loops.begin(), pipelines_.loops.end(),
                                       [](const plan::LoopPlan& l) { return l.num_stages > 1; });
  for (const StagedStore& s : stores_) {
    const std::string why = "its staged tile of " + std::to_string(s.bytes(s.pass)) +
                            " bytes does not fit beside " +
                            (two ? "two stages of the loop's tiles" : "the loop's tiles");
    not_stored_[s.op] = why;
    notes_.push_back({ops_.ops[s.op].path, "no tensor copies: " + why});
  }
  stores_.clear();
  plan_loops();
}

// The widest passes that leave the loops their stages.
void KernelPlanner::widen_epilogue_tiles() {
  for (StagedStore& s : stores_) {
    const int64_t least = s.pass;
    for (int64_t pass = s.stage.columns; !s.given && pass > least; pass -= s.stage.least_columns) {
      if (s.stage.columns % pass != 0) continue;
      s.pass = pass;
      if (arena(pipelines_.slots) <= target_.shared_bytes) break;
      s.pass = least;
    }
  }
}

// Tiles of threads: another layout takes no stage of a loop away, and the block's shared memory holds it.
void KernelPlanner::lay_out_tiles() {
  const auto stages = [](const PipelineResult& r) {
    std::vector<int64_t> list;
    for (const plan::LoopPlan& l : r.loops) list.push_back(l.num_stages);
    return list;
  };
  const IdVector<ValueId, int64_t> before = value_bytes(p_, ops_, layouts_.values, target_);
  const PipelineResult loops = pipelines_;
  const TileFits fits = [&](ValueId value, const layout::Layout& l) {
    std::optional<layout::Layout>& memory = layouts_.values[value].memory;
    const std::optional<layout::Layout> own = std::exchange(memory, l);
    if (l.output_extent(0) != own->output_extent(0)) plan_loops();
    const bool same = pipelines_.slots == loops.slots && stages(pipelines_) == stages(loops);
    const bool fit = same && arena(loops.slots) <= target_.shared_bytes;
    memory = own;
    pipelines_ = loops;
    return fit;
  };
  plan_tile_layouts(p_, ops_, target_, engine_values_, fits, layouts_);
  if (value_bytes(p_, ops_, layouts_.values, target_) != before) plan_loops();
}

}  // namespace tilegen::schedule
