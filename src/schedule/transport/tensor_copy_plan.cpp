#include "schedule/transport/tensor_copy_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "analysis/block_tree.h"
#include "analysis/epilogue_tile.h"
#include "analysis/exchange.h"
#include "analysis/run_ahead.h"
#include "analysis/store_order.h"
#include "analysis/tensor_copy.h"
#include "analysis/tile_parts.h"
#include "ir/op_kinds.h"
#include "ir/statement_paths.h"
#include "layout/tensor_tile.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpAccess;
using analysis::OpId;
using analysis::ValueId;
using plan::Engine;

namespace {

// Of a copy that has been found to be one.
analysis::TensorCopyDims dims_of(const ir::Program& p, const KernelOp& copy) {
  return *analysis::tensor_copy_dims(p, *p.as<ir::TileOp>(copy.stmt), nullptr);
}

}  // namespace

Refusals unfit_products(const ir::Program& p, const KernelOps& ops, const target::Target& t,
                        const TensorLoads& loads, const std::map<OpId, plan::GemmPlan>& gemms,
                        const plan::KernelSchedule* given) {
  Refusals unfit;
  if (!t.tensor_copy) return unfit;
  // A producer loads all of its tiles that come from tensors in the loop.
  const auto is_loaded_for = [&](const KernelOp& product, const std::vector<const KernelOp*>& inside) {
    return std::all_of(inside.begin(), inside.end(), [&](const KernelOp* op) {
      return !analysis::is_tile_load(p, *op) || loads.tiles.count(ops.id_of(*op)) ||
             std::none_of(product.accesses.begin(), product.accesses.end(),
                          [&](const OpAccess& a) { return a.value == analysis::written_value(*op); });
    });
  };
  for (const auto& [product, load] : loads.products) {
    if (gemms.at(product).engine != Engine::warpgroup_mma) continue;
    const auto refuse_beside = [&](const KernelOp& other, const char* where, const char* advice = "") {
      const auto gemm = gemms.find(ops.id_of(other));
      if (gemm != gemms.end() && gemm->second.engine != Engine::warpgroup_mma)
        unfit[product] = other.path + where + " is not done by warpgroups" + advice;
    };
    std::vector<const KernelOp*> inside;
    if (load.loop.valid()) inside = analysis::ops_inside(p, ops, *p.as<ir::Loop>(load.loop));
    const plan::OpPlan* own = given ? plan::find_op(*given, ops.ops[product].path) : nullptr;
    const bool asked = own && own->engine == Engine::warpgroup_mma;
    const char* const advice = asked ? ", and no producer loads for it: the schedule may give it 'mma'" : "";
    for (const KernelOp* other : inside)
      if (!asked || !is_loaded_for(*other, inside)) refuse_beside(*other, " of the same loop", advice);
    for (OpId copy : load.copies)
      for (const KernelOp& other : ops.ops)
        for (const OpAccess& a : other.accesses)
          if (a.read && a.value == analysis::written_value(ops.ops[copy]))
            refuse_beside(other, ", which reads its tile too,");
  }
  return unfit;
}

Refusals unfit_layouts(const ir::Program& p, const KernelOps& ops, const TensorLoads& loads,
                       const std::map<OpId, plan::GemmPlan>& gemms, const infer::InferResult& layouts) {
  const analysis::ValuePlans values = layouts.values;
  Refusals unfit;
  for (const auto& [product, load] : loads.products) {
    const plan::GemmPlan& gemm = gemms.at(product);
    if (gemm.engine != Engine::warpgroup_mma) continue;
    const KernelOp& op = ops.ops[product];
    const auto& tile_op = *p.as<ir::TileOp>(op.stmt);
    for (const analysis::OpConversion& c : analysis::conversions_of(p, ops, op, values, layouts.conversions))
      unfit[product] = "'" + values[c.value].value + "' is held otherwise";
    for (int side = 0; side < 2; ++side) {
      if (!(side == 0 ? gemm.a_memory : gemm.b_memory)) continue;
      const plan::ValuePlan& v = values[op.accesses[static_cast<size_t>(side)].value];
      const auto& want = side == 0 ? gemm.a_memory : gemm.b_memory;
      if (!v.memory || !v.memory->equivalent(*want))
        unfit[product] = "tile '" + p.buffer(tile_op.operands[static_cast<size_t>(side)].buffer).name +
                         "' lies as " +
                         (v.origin == plan::Origin::given ? "the schedule says" : "another product wants it");
    }
    for (OpId copy : load.copies) {
      const auto& v = values[analysis::written_value(ops.ops[copy])];
      const auto& type = p.buffer(p.as<ir::TileOp>(ops.ops[copy].stmt)->operands[1].buffer).type;
      std::string why;
      if (v.memory &&
          !analysis::tensor_boxes(dims_of(p, ops.ops[copy]), *v.memory, ir::dtype_bytes(type), &why))
        unfit[product] = ops.ops[copy].path + " cannot be a tensor copy: " + why;
    }
  }
  return unfit;
}

namespace {

// Tiles that are filled in one block and used by the same ops, or by copies into registers that follow one
// another: they are handed over and given back together.
struct Group {
  const ir::Block* home = nullptr;
  ir::StmtId loop;  // whose body that is; invalid: filled once, whenever the block runs
  std::set<OpId> users;
  std::set<ValueId> values;
};

// Runs of copies into registers in the block, with nothing of the threads' between them: by op the run.
std::map<OpId, int> runs_of_copies(const ir::Program& p, const KernelOps& ops, const TensorLoads& loads,
                                   const ir::Block& block) {
  std::set<OpId> filled;
  for (const auto& [copy, load] : loads.tiles) filled.insert(copy);
  for (const auto& [product, load] : loads.products) filled.insert(load.copies.begin(), load.copies.end());
  std::map<ir::StmtId, OpId> op_of;
  for (OpId i : ops.ops.ids()) op_of[ops.ops[i].stmt] = i;
  std::map<OpId, int> runs;
  int run = 0;
  for (ir::StmtId id : block) {
    const auto op = op_of.find(id);
    if (op != op_of.end() && filled.count(op->second)) continue;
    const auto* tile = p.as<ir::TileOp>(id);
    const bool copies = op != op_of.end() && tile && tile->kind == ir::OpKind::copy &&
                        p.buffer(tile->operands[1].buffer).scope == ir::MemScope::fragment;
    if (copies)
      runs[op->second] = run;
    else
      ++run;
  }
  return runs;
}

// One wait and one meeting serve what the threads fetch at once.
void join_copied_groups(const ir::Program& p, const KernelOps& ops, const TensorLoads& loads,
                        std::vector<Group>& groups) {
  std::map<const ir::Block*, std::map<OpId, int>> runs;
  for (const Group& g : groups)
    if (!runs.count(g.home)) runs[g.home] = runs_of_copies(p, ops, loads, *g.home);
  const auto run_of = [&](const Group& g) {
    int found = -1;
    for (OpId user : g.users) {
      const auto at = runs[g.home].find(user);
      if (at == runs[g.home].end() || (found >= 0 && at->second != found)) return -1;
      found = at->second;
    }
    return found;
  };
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t j = i + 1; run_of(groups[i]) >= 0 && j < groups.size();) {
      Group& other = groups[j];
      if (other.home != groups[i].home || run_of(other) != run_of(groups[i])) {
        ++j;
        continue;
      }
      groups[i].values.insert(other.values.begin(), other.values.end());
      groups[i].users.insert(other.users.begin(), other.users.end());
      groups.erase(groups.begin() + static_cast<ptrdiff_t>(j));
    }
}

// `joined`: also what a schedule may have apart.
std::vector<Group> pipeline_groups(const ir::Program& p, int kernel, const KernelOps& ops,
                                   const TensorLoads& loads, bool joined) {
  const analysis::BlockTree tree(p, p.kernels[static_cast<size_t>(kernel)]);
  std::map<ValueId, Group> users;
  for (const auto& [product, load] : loads.products)
    for (OpId copy : load.copies) {
      Group& g = users[analysis::written_value(ops.ops[copy])];
      g.home = &tree.block_of(ops.ops[copy].stmt);
      g.loop = tree.loop_of(ops.ops[copy].stmt);
      g.users.insert(product);
    }
  for (const auto& [copy, load] : loads.tiles)
    users[analysis::written_value(ops.ops[copy])] = {
        &tree.block_of(ops.ops[copy].stmt), load.loop, load.readers, {}};
  std::vector<Group> groups;
  for (auto& [value, user] : users) {
    auto g = std::find_if(groups.begin(), groups.end(), [u = &user](const Group& other) {
      return other.home == u->home && other.users == u->users;
    });
    if (g == groups.end()) g = groups.insert(g, user);
    g->values.insert(value);
  }
  if (joined) join_copied_groups(p, ops, loads, groups);
  return groups;
}

std::set<std::string> names_of(const plan::PipelinePlan& c) { return {c.values.begin(), c.values.end()}; }

}  // namespace

Expected<std::vector<plan::PipelinePlan>> plan_copy_pipelines(const ir::Program& p, int kernel,
                                                              const KernelOps& ops, const TensorLoads& loads,
                                                              const plan::KernelSchedule* given) {
  const ir::KernelPaths paths(p, kernel);
  std::vector<plan::PipelinePlan> pipelines;
  const bool is_given = given && !given->pipelines.empty();
  const std::vector<Group> groups = pipeline_groups(p, kernel, ops, loads, !is_given);
  for (const Group& g : groups) {
    const auto beside =
        std::count_if(groups.begin(), groups.end(), [&](const Group& o) { return o.loop == g.loop; });
    plan::PipelinePlan c;
    if (g.loop) c.loop = paths[g.loop.value];
    c.name = g.loop ? c.loop : p.kernels[static_cast<size_t>(kernel)].name;
    if (!g.loop || beside > 1) {
      const std::string& value = ops.values[*g.values.begin()].name;
      c.name += value.substr(value.find(':'));
    }
    for (ValueId v : g.values) c.values.push_back(ops.values[v].name);
    pipelines.push_back(std::move(c));
  }
  if (!is_given) return pipelines;
  std::set<std::string> planned, covered, names;
  for (const plan::PipelinePlan& c : pipelines) planned.insert(c.values.begin(), c.values.end());
  bool fits = true;
  for (const plan::PipelinePlan& g : given->pipelines) {
    const std::set<std::string> values = names_of(g);
    fits = fits && !values.empty() && values.size() == g.values.size() && names.insert(g.name).second;
    for (const plan::PipelinePlan& c : pipelines) {
      const std::set<std::string> own = names_of(c);
      const bool holds = std::includes(values.begin(), values.end(), own.begin(), own.end());
      const bool meets =
          std::any_of(own.begin(), own.end(), [&](const std::string& v) { return values.count(v) > 0; });
      fits = fits && (holds || !meets) && (!meets || c.loop == g.loop);
    }
    for (const std::string& v : values) fits = fits && planned.count(v) && covered.insert(v).second;
  }
  if (!fits || covered != planned)
    return Error(DiagCode::schedule_illegal, p.kernels[static_cast<size_t>(kernel)].name,
                 "the given pipelines do not hold each tile that comes by tensor copies once, together with "
                 "the tiles of "
                 "its loop",
                 "leave `pipelines` out to have them planned");
  pipelines = given->pipelines;
  for (plan::PipelinePlan& c : pipelines) c.slots = 1;
  return pipelines;
}

namespace {

std::string tile_store_refusal(const ir::Program& p, const ir::TileOp& copy, const plan::ValuePlan& tile) {
  const ir::Buffer &from = p.buffer(copy.operands[0].buffer), &to = p.buffer(copy.operands[1].buffer);
  if (from.type != to.type)
    return std::string("the copy casts ") + ir::dtype_name(from.type) + " to " + ir::dtype_name(to.type);
  if (copy.operands[0].extents != p.tile_shape(copy.operands[0].buffer))
    return "it copies a part of its tile";
  std::string why;
  const auto dims = analysis::tensor_copy_dims(p, copy, &why);
  if (!dims) return why;
  return analysis::tensor_boxes(*dims, *tile.memory, ir::dtype_bytes(from.type), &why) ? "" : why;
}

}  // namespace

std::string store_refusal(const ir::Program& p, const ir::Kernel& kernel, const KernelOps& ops, OpId op,
                          analysis::ValuePlans values, const std::vector<plan::ConversionPlan>& conversions,
                          const target::Target& t) {
  const KernelOp& store = ops.ops[op];
  const auto& copy = *p.as<ir::TileOp>(store.stmt);
  if (std::string why = analysis::order_refusal(p, kernel, ops, op); !why.empty()) return why;
  if (!analysis::conversions_of(p, ops, store, values, conversions).empty())
    return "its source is converted for it";
  const plan::ValuePlan& source = values[store.accesses[0].value];
  if (source.memory) return tile_store_refusal(p, copy, source);
  std::string why;
  return analysis::epilogue_tile(p, store, *source.fragment, t, &why) ? "" : why;
}

std::optional<layout::Layout> store_tile_layout(const ir::Program& p, const KernelOp& op,
                                                const plan::ValuePlan& held) {
  const auto& copy = *p.as<ir::TileOp>(op.stmt);
  if (held.origin != plan::Origin::free || !held.memory || !held.memory->swizzle().none())
    return std::nullopt;
  const auto dims = analysis::tensor_copy_dims(p, copy, nullptr);
  if (!dims) return std::nullopt;
  const std::vector<int64_t>& shape = held.memory->shape();
  if (!held.memory->equivalent(layout::Layout::row_major(shape))) return std::nullopt;
  const int bytes = ir::dtype_bytes(p.buffer(copy.operands[0].buffer).type);
  return layout::widest_boxed_tile(shape, dims->tile_inner, dims->tile_outer, bytes);
}

namespace {

// Products read the tile that the copy fills.
bool fills_operand(const KernelOps& ops, const KernelOp& copy) {
  const ValueId value = analysis::written_value(copy);
  return std::any_of(ops.ops.begin(), ops.ops.end(), [&](const KernelOp& op) {
    return op.form == analysis::OpForm::contraction &&
           std::any_of(op.accesses.begin(), op.accesses.end(),
                       [&](const OpAccess& a) { return a.value == value && !a.write; });
  });
}

bool is_left(const ir::Program& p, const KernelOp& copy, const KernelOps& ops, TensorCopies allowed) {
  if (allowed == TensorCopies::none || !analysis::is_tile_load(p, copy)) return false;
  return allowed == TensorCopies::loads || fills_operand(ops, copy);
}

// Copies of producers that are left; a producer of none goes, and so do roles without a producer.
void keep_copies(std::optional<std::vector<plan::RolePlan>>& roles,
                 const std::function<bool(const std::string& op)>& left) {
  if (!roles) return;
  std::erase_if(*roles, [&](plan::RolePlan& r) {
    return std::erase_if(r.ops, [&](const std::string& op) { return !left(op); }) > 0 && r.ops.empty();
  });
  if (roles->size() == 1) roles.reset();
}

// An order of issue that only a loop with a producer has: something lags behind its iteration.
bool lags(const plan::LoopPlan& l) {
  return std::any_of(l.stages.begin(), l.stages.end(),
                     [&](const auto& s) { return s.second >= std::max<int64_t>(l.num_stages, 1); });
}

}  // namespace

plan::KernelSchedule without_tensor_copies(const plan::KernelSchedule& given, const ir::Program& p,
                                           int kernel, const KernelOps& ops, TensorCopies allowed) {
  plan::KernelSchedule kept = given;
  if (allowed == TensorCopies::loads_and_stores) return kept;
  bool fewer_loads = false;
  const size_t removed = std::erase_if(kept.ops, [&](const plan::OpPlan& o) {
    if (o.engine == Engine::warpgroup_mma || o.atom.starts_with("wgmma."))
      return allowed == TensorCopies::none;
    const auto op =
        std::find_if(ops.ops.begin(), ops.ops.end(), [&](const KernelOp& k) { return k.path == o.op; });
    if (o.engine != Engine::tensor_copy || op == ops.ops.end() || is_left(p, *op, ops, allowed)) return false;
    fewer_loads = fewer_loads || analysis::is_tile_load(p, *op);
    return true;
  });
  if (fewer_loads) {  // tiles without a pipeline: their slots and what is issued when
    kept.pipelines.clear();
    for (plan::LoopPlan& l : kept.loops) l.stages.clear();
    for (plan::ValuePlan& v : kept.values) v.slots = 0;
    keep_copies(kept.roles, [&](const std::string& path) {
      const auto op =
          std::find_if(ops.ops.begin(), ops.ops.end(), [&](const KernelOp& k) { return k.path == path; });
      return op == ops.ops.end() || is_left(p, *op, ops, allowed);
    });
  }
  if (allowed != TensorCopies::none) return kept;
  kept.roles.reset();
  kept.persistence.reset();
  kept.cluster.reset();
  kept.split.reset();
  kept.pipelines.clear();
  for (plan::OpPlan& o : kept.ops) o.elided.reset();
  // Loops that only a producer makes pipelines of.
  std::set<std::string> pipelined;
  const ir::KernelPaths paths(p, kernel);
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
    const auto* loop = p.as<ir::Loop>(id);
    if (loop && loop->kind == ir::LoopKind::pipelined) pipelined.insert(paths[id.value]);
  });
  std::erase_if(kept.loops, [&](const plan::LoopPlan& l) { return !pipelined.count(l.loop); });
  for (plan::LoopPlan& l : kept.loops) {
    l.ping_pong.reset();
    l.drained.reset();
    l.peek.reset();
    if (removed > 0 || lags(l)) l.stages.clear();
  }
  if (removed == 0) return kept;
  // What was laid out for them.
  kept.values.clear();
  kept.conversions.clear();
  for (plan::OpPlan& o : kept.ops) {
    o.iteration.reset();
    o.mask_parts = 0;
  }
  return kept;
}

}  // namespace tilegen::schedule
