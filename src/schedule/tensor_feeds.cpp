#include "schedule/tensor_feeds.h"

#include <algorithm>

#include "analysis/run_ahead.h"
#include "analysis/tensor_copy.h"
#include "analysis/uniformity.h"
#include "layout/tensor_tile.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpAccess;
using plan::Engine;

namespace {

int written_value(const KernelOp& op) {
  for (const OpAccess& a : op.accesses)
    if (a.write) return a.value;
  return -1;
}

// The schedule says that tiles are moved otherwise.
bool keeps_from_engine(const plan::KernelSchedule* given, const std::string& path) {
  const plan::OpPlan* g = given ? plan::find_op(*given, path) : nullptr;
  return g && g->engine && g->engine != Engine::tensor_copy;
}

bool stands_in(const ir::Block& block, ir::StmtId s) {
  return std::find(block.begin(), block.end(), s) != block.end();
}

class FeedFinder {
 public:
  FeedFinder(const ir::Program& p, int kernel, const KernelOps& ops, analysis::LoopDependences& dependences,
             const plan::KernelSchedule* given)
      : p_(p),
        kernel_(p.kernels[static_cast<size_t>(kernel)]),
        ops_(ops),
        dependences_(dependences),
        given_(given) {}

  std::string find(size_t product, TensorFeed& feed) const {
    const KernelOp& op = ops_.ops[product];
    if (std::string why = find_loop(op, feed.loop); !why.empty()) return why;
    for (const OpAccess& a : op.accesses) {
      if (p_.buffer(a.buffer).scope != ir::MemScope::shared) continue;
      if (!a.write && written_by_threads(a.value)) continue;
      const std::string why = filler(feed.loop, a.value, feed.copies);
      if (!why.empty())
        return "tile '" + p_.buffer(a.buffer).name + "' does not come by a tensor copy: " + why;
    }
    return "";
  }

  // A copy in the loop whose tile threads read and nothing else does.
  std::string find_beside(size_t copy, ThreadFeed& feed) const {
    const KernelOp& op = ops_.ops[copy];
    if (std::string why = copy_refusal(feed.loop, op); !why.empty()) return why;
    const int value = written_value(op);
    for (const auto& [where, read] : ops_.scalar_reads)
      if (read == value) return "it is read by a scalar expression";
    for (size_t i = 0; i < ops_.ops.size(); ++i)
      for (const OpAccess& a : ops_.ops[i].accesses) {
        if (a.value != value || !a.read) continue;
        if (ops_.ops[i].form == analysis::OpForm::gemm)
          return "a product reads it, which does not take it from a producer";
        feed.readers.insert(i);
      }
    return feed.readers.empty() ? "nothing reads it" : "";
  }

 private:
  std::string find_loop(const KernelOp& op, ir::StmtId& found) const {
    bool inside = false;
    ir::for_each_statement(p_, kernel_.body, [&](ir::StmtId id, int) {
      const auto* loop = p_.as<ir::Loop>(id);
      if (!loop || loop->kind != ir::LoopKind::pipelined) return;
      if (stands_in(loop->body, op.stmt)) found = id;
      ir::for_each_statement(p_, loop->body, [&](ir::StmtId s, int) { inside |= s == op.stmt; });
    });
    if (!found)
      return inside ? "it stands in a branch or loop inside the pipelined loop"
                    : "it is in no pipelined loop";
    std::string why;
    if (!block_around(kernel_.body, found, why))
      return why.empty() ? "its pipelined loop stands in a branch or another loop" : why;
    const auto& loop = *p_.as<ir::Loop>(found);
    if (!analysis::is_uniform(p_, loop.begin) || !analysis::is_uniform(p_, loop.extents[0]))
      return "its loop's bounds are read from memory that the kernel may write";
    return "";
  }

  // The block that the statement stands in: the kernel's, or that of a branch which producers take too.
  const ir::Block* block_around(const ir::Block& block, ir::StmtId s, std::string& why) const {
    if (stands_in(block, s)) return &block;
    for (ir::StmtId id : block)
      if (const auto* branch = p_.as<ir::Branch>(id))
        for (const ir::Block* side : {&branch->then_body, &branch->else_body})
          if (const ir::Block* found = block_around(*side, s, why)) {
            if (analysis::is_uniform(p_, branch->condition)) return found;
            why = "the condition of its branch is read from memory that the kernel may write";
            return nullptr;
          }
    return nullptr;
  }

  // By something else than copies that only move elements of tensors: those are the engine's, or wait for
  // their elements.
  bool written_by_threads(int value) const {
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

  // The copy that fills the tile.
  std::string filler(ir::StmtId loop, int value, std::vector<size_t>& copies) const {
    const KernelOp* copy = nullptr;
    for (const KernelOp& op : ops_.ops)
      for (const OpAccess& a : op.accesses) {
        if (a.value != value) continue;
        if (a.write) {
          if (copy && copy != &op) return "several operations write it";
          copy = &op;
        } else if (op.form != analysis::OpForm::gemm || !stands_in(p_.as<ir::Loop>(loop)->body, op.stmt)) {
          return op.path + " reads it too";
        }
      }
    for (const auto& [where, read] : ops_.scalar_reads)
      if (read == value) return "it is read by a scalar expression";
    if (!copy || !analysis::is_tile_load(p_, *copy)) return "no copy from a tensor fills it";
    if (std::string why = copy_refusal(loop, *copy); !why.empty()) return why;
    copies.push_back(static_cast<size_t>(copy - ops_.ops.data()));
    return "";
  }

  std::string copy_refusal(ir::StmtId loop, const KernelOp& op) const {
    if (std::string why = place_refusal(loop, op); !why.empty()) return why;
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

  // Copied in the loop, iteration by iteration, or once in front of it.
  std::string place_refusal(ir::StmtId loop, const KernelOp& op) const {
    if (stands_in(p_.as<ir::Loop>(loop)->body, op.stmt))
      return analysis::held_back(p_, ops_, dependences_, loop, op);
    std::string why;
    const ir::Block* block = block_around(kernel_.body, op.stmt, why);
    if (!block || !stands_in(*block, loop)) return "it is copied in another loop or branch";
    for (ir::StmtId id : *block) {
      if (id == op.stmt) break;
      if (id == loop) return "it is copied behind the loop";
    }
    return analysis::fills_whole_tile(p_, *p_.as<ir::TileOp>(op.stmt)) ? ""
                                                                       : "it fills only a part of its tile";
  }

  const ir::Program& p_;
  const ir::Kernel& kernel_;
  const KernelOps& ops_;
  analysis::LoopDependences& dependences_;
  const plan::KernelSchedule* given_;
};

// Of every loop with fed products the other copies from tensors.
void find_beside(const ir::Program& p, const KernelOps& ops, const FeedFinder& finder, TensorFeeds& feeds) {
  std::set<ir::StmtId> loops;
  std::set<size_t> copies;
  for (const auto& [product, feed] : feeds.fed) {
    loops.insert(feed.loop);
    copies.insert(feed.copies.begin(), feed.copies.end());
  }
  for (ir::StmtId loop : loops)
    for (const KernelOp* op : analysis::ops_inside(p, ops, *p.as<ir::Loop>(loop))) {
      const auto copy = static_cast<size_t>(op - ops.ops.data());
      if (!analysis::is_tile_load(p, *op) || copies.count(copy)) continue;
      ThreadFeed feed{loop, {}};
      std::string why = finder.find_beside(copy, feed);
      if (why.empty())
        feeds.beside.emplace(copy, std::move(feed));
      else
        feeds.by_threads.emplace(copy, std::move(why));
    }
}

}  // namespace

TensorFeeds find_tensor_feeds(const ir::Program& p, int kernel, const KernelOps& ops,
                              analysis::LoopDependences& dependences, const target::Target& t,
                              const plan::KernelSchedule* given, TensorCopies allowed) {
  TensorFeeds feeds;
  if (!t.tensor_copy) return feeds;
  const FeedFinder finder(p, kernel, ops, dependences, given);
  const bool produced = !given || !given->roles || given->roles->producer_threads != 0;
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    if (ops.ops[i].form != analysis::OpForm::gemm) continue;
    TensorFeed feed;
    std::string why = allowed == TensorCopies::none ? "planned without tensor copies"
                      : !produced                   ? "the schedule gives no producer"
                                                    : finder.find(i, feed);
    if (why.empty())
      feeds.fed.emplace(i, std::move(feed));
    else
      feeds.refused.emplace(i, std::move(why));
  }
  if (allowed != TensorCopies::product_loads) find_beside(p, ops, finder, feeds);
  return feeds;
}

Refusals settle(const ir::Program& p, const KernelOps& ops, TensorFeeds& feeds) {
  std::set<ir::StmtId> multiplies, produced;
  for (const auto& [product, feed] : feeds.fed) {
    multiplies.insert(feed.loop);
    const ir::Block& body = p.as<ir::Loop>(feed.loop)->body;
    for (size_t copy : feed.copies)
      if (stands_in(body, ops.ops[copy].stmt)) produced.insert(feed.loop);
  }
  std::erase_if(feeds.beside, [&](const auto& b) { return multiplies.count(b.second.loop) == 0; });
  for (const auto& [copy, feed] : feeds.beside) produced.insert(feed.loop);
  Refusals alone;
  for (const auto& [product, feed] : feeds.fed)
    if (!produced.count(feed.loop)) alone.emplace(product, "no tile of its loop comes by a tensor copy");
  return alone;
}

Refusals fit_thread_tiles(const ir::Program& p, const KernelOps& ops, const TensorFeeds& feeds,
                          std::vector<plan::ValuePlan>& values) {
  Refusals unfit;
  for (const auto& [copy, feed] : feeds.beside) {
    const auto& op = *p.as<ir::TileOp>(ops.ops[copy].stmt);
    plan::ValuePlan& tile = values[static_cast<size_t>(written_value(ops.ops[copy]))];
    const auto dims = analysis::tensor_copy_dims(p, op, nullptr);
    const int bytes = ir::dtype_bytes(p.buffer(op.operands[1].buffer).type);
    std::string why;
    const auto fits = [&](const layout::Layout& l) {
      return layout::tensor_tile(l, dims->tile_inner, bytes, &why).has_value();
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
      for (int width : {32, 64, 128})
        if (auto boxed = dims->tile_outer < 0
                             ? std::nullopt
                             : layout::boxed_tile(shape, dims->tile_inner, dims->tile_outer, bytes, width))
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
