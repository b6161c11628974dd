#include "schedule/transport/tensor_loads.h"

#include <algorithm>

#include "analysis/block_tree.h"
#include "analysis/run_ahead.h"
#include "analysis/tensor_copy.h"
#include "analysis/tile_parts.h"
#include "analysis/uniformity.h"
#include "ir/op_kinds.h"
#include "layout/tensor_tile.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpAccess;
using analysis::OpId;
using analysis::ValueId;
using plan::Engine;

namespace {

// The schedule says that tiles are moved otherwise.
bool keeps_from_engine(const plan::KernelSchedule* given, const std::string& path) {
  const plan::OpPlan* g = given ? plan::find_op(*given, path) : nullptr;
  return g && g->engine && g->engine != Engine::tensor_copy;
}

// The schedule has one of the copies made by the engine.
bool asks_for_engine(const plan::KernelSchedule* given, const std::vector<const KernelOp*>& inside) {
  return given && std::any_of(inside.begin(), inside.end(), [&](const KernelOp* op) {
           const plan::OpPlan* g = plan::find_op(*given, op->path);
           return g && g->engine == Engine::tensor_copy;
         });
}

class LoadFinder {
 public:
  LoadFinder(const ir::Program& p, int kernel, const KernelOps& ops, analysis::LoopDependences& dependences,
             const plan::KernelSchedule* given)
      : p_(p),
        tree_(p, p.kernels[static_cast<size_t>(kernel)]),
        ops_(ops),
        dependences_(dependences),
        given_(given) {}

  // `by_threads`: copies of the product's tiles that are no engine's.
  std::string find(OpId product, ProductLoads& load, Refusals& by_threads) const {
    const KernelOp& op = ops_.ops[product];
    if (multiplied_by_threads(op)) return "the schedule gives another engine";
    std::string refused;
    std::map<ValueId, std::string> left;  // tiles that the engine does not bring
    for (const OpAccess& a : op.accesses) {
      if (p_.buffer(a.buffer).scope != ir::MemScope::shared) continue;
      if (!a.write && written_by_threads(a.value)) continue;
      const std::string why = filler(a.value, load.copies);
      if (why.empty()) continue;
      if (refused.empty())
        refused = "tile '" + p_.buffer(a.buffer).name + "' does not come by a tensor copy: " + why;
      if (a.write) return refused;
      left.emplace(a.value, why);
    }
    for (ir::StmtId at : tree_.around(op.stmt))
      if (std::any_of(load.copies.begin(), load.copies.end(),
                      [&](OpId copy) { return tree_.loop_of(ops_.ops[copy].stmt) == at; }))
        load.loop = at;
    load.direct = load.loop.valid() && tree_.loop_of(op.stmt) == load.loop;
    const plan::OpPlan* g = given_op(op);
    const bool asked = g && g->engine == Engine::warpgroup_mma;
    for (const auto& [value, why] : left)
      if (load.copies.empty() || !(asked || filled_before(load.loop, value))) return refused;
    for (const auto& [value, why] : left)
      for (OpId i : ops_.ops.ids())
        if (analysis::is_tile_load(p_, ops_.ops[i]) && analysis::written_value(ops_.ops[i]) == value)
          by_threads.emplace(i, why);
    return "";
  }

  // The loop whose body the op stands in.
  ir::StmtId own_loop(OpId op) const { return tree_.loop_of(ops_.ops[op].stmt); }

  // A copy whose tile threads read and nothing else does, products other than `by_warpgroups` among them; in
  // the loop, or outside of loops.
  std::string find_tile_load(OpId copy, const std::map<OpId, ProductLoads>& by_warpgroups,
                             TileLoad& load) const {
    const KernelOp& op = ops_.ops[copy];
    if (tree_.loop_of(op.stmt) != load.loop) return "it stands in a branch or loop inside";
    for (const KernelOp& other : ops_.ops)
      for (const OpAccess& a : other.accesses)
        if (&other != &op && a.write && a.value == analysis::written_value(op))
          return "several operations write its tile";
    if (std::string why = copy_refusal(op); !why.empty()) return why;
    const ValueId value = analysis::written_value(op);
    for (const auto& [where, read] : ops_.scalar_reads)
      if (read == value) return "it is read by a scalar expression";
    for (OpId i : ops_.ops.ids())
      for (const OpAccess& a : ops_.ops[i].accesses) {
        if (a.value != value || !a.read) continue;
        if (by_warpgroups.count(i)) return ops_.ops[i].path + " reads it, which warpgroups do";
        if (ops_.ops[i].form == analysis::OpForm::contraction && !load.alone &&
            !asks_for_engine(given_, {&op}) && !multiplied_by_threads(ops_.ops[i]))
          return ops_.ops[i].path + " reads it, a product of warps, whose engine the schedule does not give";
        if (reads_elsewhere(op, ops_.ops[i]))
          return ops_.ops[i].path + " reads it outside of what stands after the copy";
        load.readers.insert(i);
      }
    return load.readers.empty() ? "nothing reads it" : "";
  }

 private:
  const plan::OpPlan* given_op(const KernelOp& op) const {
    return given_ ? plan::find_op(*given_, op.path) : nullptr;
  }
  // A product that the schedule gives an engine whose operands threads read.
  bool multiplied_by_threads(const KernelOp& op) const {
    const plan::OpPlan* g = given_op(op);
    return g && g->engine && g->engine != Engine::warpgroup_mma;
  }

  // Nothing in the loop writes the tile: it costs no iteration's time that threads do.
  bool filled_before(ir::StmtId loop, ValueId value) const {
    return loop.valid() && std::none_of(ops_.ops.begin(), ops_.ops.end(), [&](const KernelOp& op) {
             if (analysis::written_value(op) != value) return false;
             const auto around = tree_.around(op.stmt);
             return std::find(around.begin(), around.end(), loop) != around.end();
           });
  }

  // What a producer follows to the copy.
  std::string way_refusal(ir::StmtId copy) const {
    for (ir::StmtId at : tree_.around(copy)) {
      if (const auto* branch = p_.as<ir::Branch>(at); branch && !analysis::is_uniform(p_, branch->condition))
        return "the condition of its branch is read from memory that the kernel may write";
      if (const auto* loop = p_.as<ir::Loop>(at); loop && loop->condition.valid())
        return "a condition ends a loop around it";
      if (const auto* loop = p_.as<ir::Loop>(at);
          loop && (!analysis::is_uniform(p_, loop->begin) || !analysis::is_uniform(p_, loop->extents[0])))
        return "its loop's bounds are read from memory that the kernel may write";
    }
    return "";
  }

  // Not after the copy in its block, or inside of what stands there.
  bool reads_elsewhere(const KernelOp& copy, const KernelOp& reader) const {
    const ir::StmtId in_home = tree_.member(tree_.block_of(copy.stmt), reader.stmt);
    return !in_home.valid() || !tree_.precedes(copy.stmt, in_home);
  }

  // By something else than copies that only move elements of tensors: those are the engine's, or wait for
  // their elements.
  bool written_by_threads(ValueId value) const {
    for (const KernelOp& op : ops_.ops)
      for (const OpAccess& a : op.accesses) {
        if (a.value != value || !a.write) continue;
        const auto* copy = p_.as<ir::TileOp>(op.stmt);
        if (!analysis::is_tile_load(p_, op) ||
            p_.buffer(copy->operands[0].buffer).type != p_.buffer(a.buffer).type)
          return true;
      }
    return false;
  }

  // The copies that fill the tile, each all or a part of it. Products that read it run after them, whenever
  // their block does.
  std::string filler(ValueId value, std::vector<OpId>& copies) const {
    const std::vector<OpId> parts = analysis::writers_of(ops_, value);
    if (parts.size() != 1 || !analysis::is_tile_load(p_, ops_.ops[parts.front()]))
      if (std::string why = analysis::fill_refusal(p_, ops_, value); !why.empty()) return why;
    for (const KernelOp& op : ops_.ops)
      for (const OpAccess& a : op.accesses) {
        if (a.value != value || a.write) continue;
        if (reads_elsewhere(ops_.ops[parts.back()], op))
          return op.path + " reads it outside of what stands after the copy";
      }
    for (const auto& [where, read] : ops_.scalar_reads)
      if (read == value) return "it is read by a scalar expression";
    for (OpId part : parts)
      if (std::string why = copy_refusal(ops_.ops[part]); !why.empty())
        return (parts.size() > 1 ? ops_.ops[part].path + ": " : "") + why;
    copies.insert(copies.end(), parts.begin(), parts.end());
    return "";
  }

  std::string copy_refusal(const KernelOp& op) const {
    if (std::string why = way_refusal(op.stmt); !why.empty()) return why;
    if (std::string why = place_refusal(op); !why.empty()) return why;
    const auto& copy = *p_.as<ir::TileOp>(op.stmt);
    const ir::Buffer &from = p_.buffer(copy.operands[0].buffer), &to = p_.buffer(copy.operands[1].buffer);
    if (from.type != to.type)
      return std::string("the copy casts ") + ir::dtype_name(from.type) + " to " + ir::dtype_name(to.type);
    for (const KernelOp& other : ops_.ops)
      for (const OpAccess& a : other.accesses)
        if (a.write && a.buffer == copy.operands[0].buffer)
          return "the kernel writes tensor '" + from.name + "'";
    std::string why;
    if (!analysis::tensor_copy_dims(p_, copy, &why)) return why;
    return keeps_from_engine(given_, op.path) ? "the schedule gives another engine" : "";
  }

  // Copied in a loop, iteration by iteration, or once whenever its block runs.
  std::string place_refusal(const KernelOp& op) const {
    if (const ir::StmtId loop = tree_.loop_of(op.stmt); loop.valid())
      return analysis::held_back(p_, ops_, dependences_, loop, op);
    return analysis::fill_refusal(p_, ops_, analysis::written_value(op));
  }

  const ir::Program& p_;
  const analysis::BlockTree tree_;
  const KernelOps& ops_;
  analysis::LoopDependences& dependences_;
  const plan::KernelSchedule* given_;
};

bool has_producer(const plan::KernelSchedule* given) {
  return !given || !given->roles || !given->roles->empty();
}

}  // namespace

void find_tile_loads(const ir::Program& p, int kernel, const KernelOps& ops,
                     analysis::LoopDependences& dependences, const target::Target& t,
                     const plan::KernelSchedule* given, TensorCopies allowed, TensorLoads& loads) {
  if (!t.tensor_copy || allowed >= TensorCopies::product_loads || !has_producer(given)) return;
  const LoadFinder finder(p, kernel, ops, dependences, given);
  std::set<ir::StmtId> multiply;
  std::set<OpId> copies;
  for (const auto& [product, load] : loads.products) {
    if (const ir::StmtId own = finder.own_loop(product); own.valid()) multiply.insert(own);
    copies.insert(load.copies.begin(), load.copies.end());
  }
  const auto add = [&](const KernelOp& op, TileLoad load) {
    const auto copy = ops.id_of(op);
    if (!analysis::is_tile_load(p, op) || copies.count(copy)) return;
    std::string why = finder.find_tile_load(copy, loads.products, load);
    if (why.empty())
      loads.tiles.emplace(copy, std::move(load));
    else
      loads.by_threads.emplace(copy, std::move(why));
  };
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
    const auto* loop = p.as<ir::Loop>(id);
    if (!loop || loop->kind == ir::LoopKind::parallel) return;
    const std::vector<const KernelOp*> inside = analysis::ops_inside(p, ops, *loop);
    const bool alone = multiply.count(id) == 0;
    if (alone && !asks_for_engine(given, inside)) return;
    for (const KernelOp* op : inside) {
      if (alone && finder.own_loop(ops.id_of(*op)) != id) continue;
      add(*op, {id, {}, alone});
    }
  });
  for (const KernelOp& op : ops.ops)
    if (!finder.own_loop(ops.id_of(op)).valid() && asks_for_engine(given, {&op})) add(op, {{}, {}, true});
}

TensorLoads find_product_loads(const ir::Program& p, int kernel, const KernelOps& ops,
                               analysis::LoopDependences& dependences, const target::Target& t,
                               const plan::KernelSchedule* given, TensorCopies allowed) {
  TensorLoads loads;
  if (!t.tensor_copy) return loads;
  const LoadFinder finder(p, kernel, ops, dependences, given);
  const bool produced = has_producer(given);
  for (OpId i : ops.ops.ids()) {
    if (ops.ops[i].form != analysis::OpForm::contraction) continue;
    ProductLoads load;
    std::string why = allowed == TensorCopies::none ? "planned without tensor copies"
                      : !produced                   ? "the schedule gives no producer"
                                                    : finder.find(i, load, loads.by_threads);
    if (why.empty())
      loads.products.emplace(i, std::move(load));
    else
      loads.refused.emplace(i, std::move(why));
  }
  return loads;
}

Refusals settle(const ir::Program& p, int kernel, const KernelOps& ops, TensorLoads& loads) {
  const analysis::BlockTree tree(p, p.kernels[static_cast<size_t>(kernel)]);
  std::set<ir::StmtId> multiplies, produced;
  for (const auto& [product, load] : loads.products)
    if (load.loop.valid()) multiplies.insert(load.loop), produced.insert(load.loop);
  const Refusals left = loads.by_threads;
  std::erase_if(loads.tiles, [&](const auto& b) {
    const ir::StmtId loop = b.second.loop;
    if (!b.second.alone)
      return multiplies.count(loop) == 0 &&
             std::none_of(loads.products.begin(), loads.products.end(),
                          [&](const auto& f) { return tree.loop_of(ops.ops[f.first].stmt) == loop; });
    const auto other = std::find_if(left.begin(), left.end(), [&](const auto& l) {
      return loop.valid() && tree.loop_of(ops.ops[l.first].stmt) == loop;
    });
    if (other == left.end()) return false;
    loads.by_threads.emplace(
        b.first, ops.ops[other->first].path + " of its loop is left to threads: " + other->second);
    return true;
  });
  for (const auto& [copy, load] : loads.tiles)
    if (load.loop.valid()) produced.insert(load.loop);
  Refusals alone;
  for (auto& [product, load] : loads.products) {
    const ir::StmtId own = tree.loop_of(ops.ops[product].stmt);
    const bool left = own.valid() && !produced.count(own) &&
                      std::any_of(ops.ops.begin(), ops.ops.end(), [&](const KernelOp& op) {
                        return analysis::is_tile_load(p, op) && tree.loop_of(op.stmt) == own;
                      });
    if (!load.loop.valid() && produced.count(own)) {  // beside tiles that threads read
      load.loop = own;
      load.direct = true;
    }
    if (left || (load.copies.empty() && !produced.count(own)))
      alone.emplace(product, own.valid() ? "no tile of its loop comes by a tensor copy"
                                         : "no tile of it comes by a tensor copy");
  }
  return alone;
}

void box_operands(const ir::Program& p, const KernelOps& ops, const TensorLoads& loads,
                  std::map<OpId, plan::GemmPlan>& gemms) {
  for (const auto& [copy, load] : loads.tiles) {
    const auto& op = *p.as<ir::TileOp>(ops.ops[copy].stmt);
    const auto dims = analysis::tensor_copy_dims(p, op, nullptr);
    const int bytes = ir::dtype_bytes(p.buffer(op.operands[1].buffer).type);
    for (OpId reader : load.readers) {
      const auto gemm = gemms.find(reader);
      for (size_t side = 0; side < 2 && gemm != gemms.end(); ++side) {
        auto& memory = side == 0 ? gemm->second.a_memory : gemm->second.b_memory;
        if (ops.ops[reader].accesses[side].value != analysis::written_value(ops.ops[copy]) || !memory ||
            analysis::tensor_boxes(*dims, *memory, bytes, nullptr))
          continue;
        if (auto boxed =
                layout::widest_boxed_tile(memory->shape(), dims->tile_inner, dims->tile_outer, bytes))
          memory = std::move(*boxed);
      }
    }
  }
}

Refusals fit_thread_tiles(const ir::Program& p, const KernelOps& ops, const TensorLoads& loads,
                          IdVector<ValueId, plan::ValuePlan>& values) {
  Refusals unfit;
  for (const auto& [copy, load] : loads.tiles) {
    const auto& op = *p.as<ir::TileOp>(ops.ops[copy].stmt);
    plan::ValuePlan& tile = values[analysis::written_value(ops.ops[copy])];
    const auto dims = analysis::tensor_copy_dims(p, op, nullptr);
    const int bytes = ir::dtype_bytes(p.buffer(op.operands[1].buffer).type);
    std::string why;
    const auto fits = [&](const layout::Layout& l) {
      return analysis::tensor_boxes(*dims, l, bytes, &why).has_value();
    };
    if (!tile.memory) {
      unfit.emplace(copy, "its tile is not in shared memory");
      continue;
    }
    if (fits(*tile.memory)) continue;
    const std::vector<int64_t> shape = tile.memory->shape();
    std::optional<layout::Layout> other;
    if (tile.origin == plan::Origin::free) {
      if (fits(layout::Layout::row_major(shape))) other = layout::Layout::row_major(shape);
      if (auto boxed = layout::widest_boxed_tile(shape, dims->tile_inner, dims->tile_outer, bytes))
        other = std::move(boxed);
    }
    if (!other) {
      unfit.emplace(copy, std::move(why));
      continue;
    }
    tile.memory = std::move(*other);
    tile.reason = "boxes of the copy engine: no instruction asks for another form";
  }
  return unfit;
}

}  // namespace tilegen::schedule
