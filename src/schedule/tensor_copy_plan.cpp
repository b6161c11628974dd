#include "schedule/tensor_copy_plan.h"

#include <algorithm>
#include <numeric>

#include "layout/tensor_tile.h"
#include "ops/tensor_copy.h"
#include "schedule/exchange_plan.h"
#include "schedule/run_ahead.h"
#include "schedule/store_stage.h"

namespace tilegen::schedule {

using infer::KernelOp;
using infer::KernelOps;
using infer::OpAccess;
using plan::Engine;

namespace {

// Engines that move tiles otherwise; `loop` is what an engine is when nobody said.
bool keeps_from_engine(const plan::KernelSchedule* given, const std::string& path) {
  const plan::OpPlan* g = given ? plan::find_op(*given, path) : nullptr;
  return g && g->engine != Engine::loop && g->engine != Engine::tensor_copy;
}

bool stands_in(const ir::Block& block, ir::StmtId s) { return std::find(block.begin(), block.end(), s) != block.end(); }

class FeedFinder {
 public:
  FeedFinder(const ir::Program& p, int kernel, const KernelOps& ops, const plan::KernelSchedule* given)
      : p_(p), kernel_(p.kernels[static_cast<size_t>(kernel)]), ops_(ops), given_(given) {}

  std::string find(size_t product, TensorFeed& feed) const {
    const KernelOp& op = ops_.ops[product];
    if (std::string why = find_loop(op, feed.loop); !why.empty()) return why;
    for (const OpAccess& a : op.accesses) {
      if (p_.buffer(a.buffer).scope != ir::MemScope::shared) continue;
      if (!a.write && written_by_threads(a.value)) continue;
      const std::string why = filler(*p_.as<ir::Loop>(feed.loop), a.value, feed.copies);
      if (!why.empty()) return "tile '" + p_.buffer(a.buffer).name + "' does not come by a tensor copy: " + why;
    }
    return "";
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
    if (!found) return inside ? "it stands in a branch or loop inside the pipelined loop" : "it is in no pipelined loop";
    std::string why;
    if (!block_around(kernel_.body, found, why)) return why.empty() ? "its pipelined loop stands in a branch or another loop" : why;
    const auto& loop = *p_.as<ir::Loop>(found);
    if (!ops::told_everywhere(p_, loop.begin) || !ops::told_everywhere(p_, loop.extents[0]))
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
            if (ops::told_everywhere(p_, branch->condition)) return found;
            why = "the condition of its branch is read from memory that the kernel may write";
            return nullptr;
          }
    return nullptr;
  }

  // By something else than copies that only move elements of tensors: those are the engine's, or wait for their elements.
  bool written_by_threads(int value) const {
    for (const KernelOp& op : ops_.ops)
      for (const OpAccess& a : op.accesses) {
        if (a.value != value || !a.write) continue;
        const auto* copy = p_.as<ir::TileOp>(op.stmt);
        if (!is_tile_load(p_, op) || p_.buffer(copy->operands[0].buffer).type != p_.buffer(a.buffer).type) return true;
      }
    return false;
  }

  // The copy that fills the tile.
  std::string filler(const ir::Loop& loop, int value, std::vector<size_t>& copies) const {
    const KernelOp* copy = nullptr;
    for (const KernelOp& op : ops_.ops)
      for (const OpAccess& a : op.accesses) {
        if (a.value != value) continue;
        if (a.write) {
          if (copy && copy != &op) return "several operations write it";
          copy = &op;
        } else if (op.form != infer::OpForm::gemm || !stands_in(loop.body, op.stmt)) {
          return op.path + " reads it too";
        }
      }
    for (const auto& [where, read] : ops_.scalar_reads)
      if (read == value) return "it is read by a scalar expression";
    if (!copy || !is_tile_load(p_, *copy)) return "no copy from a tensor fills it";
    if (std::string why = copy_refusal(loop, *copy); !why.empty()) return why;
    copies.push_back(static_cast<size_t>(copy - ops_.ops.data()));
    return "";
  }

  std::string copy_refusal(const ir::Loop& loop, const KernelOp& op) const {
    if (std::string why = place_refusal(loop, op); !why.empty()) return why;
    const auto& copy = *p_.as<ir::TileOp>(op.stmt);
    const ir::Buffer &from = p_.buffer(copy.operands[0].buffer), &to = p_.buffer(copy.operands[1].buffer);
    if (from.type != to.type)
      return std::string("the copy casts ") + ir::dtype_name(from.type) + " to " + ir::dtype_name(to.type);
    for (const KernelOp& other : ops_.ops)
      for (const OpAccess& a : other.accesses)
        if (a.write && a.buffer == copy.operands[0].buffer) return "the kernel writes tensor '" + from.name + "'";
    std::string why;
    if (!ops::tensor_copy_dims(p_, copy, &why)) return why;
    return keeps_from_engine(given_, op.path) ? "the schedule gives another engine" : "";
  }

  // Copied in the loop, iteration by iteration, or once in front of it.
  std::string place_refusal(const ir::Loop& loop, const KernelOp& op) const {
    if (stands_in(loop.body, op.stmt)) return held_back(p_, ops_, loop, op);
    std::string why;
    const ir::Block* block = block_around(kernel_.body, op.stmt, why);
    const auto is_loop = [&](ir::StmtId id) { return p_.as<ir::Loop>(id) == &loop; };
    if (!block || std::none_of(block->begin(), block->end(), is_loop)) return "it is copied in another loop or branch";
    for (ir::StmtId id : *block) {
      if (id == op.stmt) break;
      if (p_.as<ir::Loop>(id) == &loop) return "it is copied behind the loop";
    }
    return fills_whole_tile(p_, *p_.as<ir::TileOp>(op.stmt)) ? "" : "it fills only a part of its tile";
  }

  const ir::Program& p_;
  const ir::Kernel& kernel_;
  const KernelOps& ops_;
  const plan::KernelSchedule* given_;
};

// Dimension of the tile that is dense in the tensor.
int inner_dim(const ir::Program& p, const KernelOp& copy) {
  return ops::tensor_copy_dims(p, *p.as<ir::TileOp>(copy.stmt), nullptr)->tile_inner;
}

int written_value(const KernelOp& op) {
  for (const OpAccess& a : op.accesses)
    if (a.write) return a.value;
  return -1;
}

}  // namespace

namespace {

// A loop none of whose tiles comes by the engine leaves a producer nothing to do.
void refuse_unproduced(const ir::Program& p, const KernelOps& ops, TensorFeeds& feeds) {
  std::set<ir::StmtId> produced;
  for (const auto& [product, feed] : feeds.fed)
    for (size_t copy : feed.copies)
      if (stands_in(p.as<ir::Loop>(feed.loop)->body, ops.ops[copy].stmt)) produced.insert(feed.loop);
  for (auto it = feeds.fed.begin(); it != feeds.fed.end();) {
    if (produced.count(it->second.loop)) {
      ++it;
      continue;
    }
    feeds.refused.emplace(it->first, "no tile of its loop comes by a tensor copy");
    it = feeds.fed.erase(it);
  }
}

}  // namespace

TensorFeeds find_tensor_feeds(const ir::Program& p, int kernel, const KernelOps& ops, const target::Target& t,
                              const plan::KernelSchedule* given, TensorCopies allowed) {
  TensorFeeds feeds;
  if (!t.tensor_copy) return feeds;
  const FeedFinder finder(p, kernel, ops, given);
  const bool produced = !given || !given->roles || given->roles->producer_threads > 0;
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    if (ops.ops[i].form != infer::OpForm::gemm) continue;
    TensorFeed feed;
    std::string why = allowed == TensorCopies::none ? "planned without tensor copies"
                      : !produced                   ? "the schedule gives no producer"
                                                    : finder.find(i, feed);
    if (why.empty())
      feeds.fed.emplace(i, std::move(feed));
    else
      feeds.refused.emplace(i, std::move(why));
  }
  refuse_unproduced(p, ops, feeds);
  return feeds;
}

Refusals unfit_products(const ir::Program& p, const KernelOps& ops, const target::Target& t, const TensorFeeds& feeds,
                        const std::map<size_t, ops::GemmPlan>& gemms) {
  Refusals unfit;
  if (!t.tensor_copy) return unfit;
  for (const auto& [product, feed] : feeds.fed) {
    if (gemms.at(product).engine != Engine::warpgroup_mma) continue;
    for (const KernelOp* other : ops_inside(p, ops, *p.as<ir::Loop>(feed.loop))) {
      const auto gemm = gemms.find(static_cast<size_t>(other - ops.ops.data()));
      if (gemm != gemms.end() && gemm->second.engine != Engine::warpgroup_mma)
        unfit[product] = other->path + " of the same loop is not done by warpgroups";
    }
  }
  return unfit;
}

Refusals unfit_layouts(const ir::Program& p, const KernelOps& ops, const TensorFeeds& feeds,
                       const std::map<size_t, ops::GemmPlan>& gemms, const infer::InferResult& layouts) {
  const std::vector<plan::ValuePlan>& values = layouts.values;
  Refusals unfit;
  for (const auto& [product, feed] : feeds.fed) {
    const ops::GemmPlan& gemm = gemms.at(product);
    if (gemm.engine != Engine::warpgroup_mma) continue;
    const KernelOp& op = ops.ops[product];
    const auto& tile_op = *p.as<ir::TileOp>(op.stmt);
    for (const OpConversion& c : conversions_of(p, ops, op, values, layouts.conversions))
      unfit[product] = "'" + values[static_cast<size_t>(c.value)].value + "' is held otherwise";
    for (int side = 0; side < 2; ++side) {
      if (!(side == 0 ? gemm.a_memory : gemm.b_memory)) continue;
      const plan::ValuePlan& v = values[static_cast<size_t>(op.accesses[static_cast<size_t>(side)].value)];
      const auto& want = side == 0 ? gemm.a_memory : gemm.b_memory;
      if (!v.memory || !v.memory->equivalent(*want))
        unfit[product] = "tile '" + p.buffer(tile_op.operands[static_cast<size_t>(side)].buffer).name + "' lies as " +
                         (v.origin == plan::Origin::given ? "the schedule says" : "another product wants it");
    }
    for (size_t copy : feed.copies) {
      const auto& v = values[static_cast<size_t>(written_value(ops.ops[copy]))];
      const auto& type = p.buffer(p.as<ir::TileOp>(ops.ops[copy].stmt)->operands[1].buffer).type;
      std::string why;
      if (v.memory && !layout::tensor_tile(*v.memory, inner_dim(p, ops.ops[copy]), ir::dtype_bytes(type), &why))
        unfit[product] = ops.ops[copy].path + " cannot be a tensor copy: " + why;
    }
  }
  return unfit;
}

namespace {

// Tiles that are filled in one place and used by the same products: they are handed over and given back together.
struct Group {
  ir::StmtId loop;  // invalid: filled once, in the kernel's body
  std::set<size_t> products;
  std::set<int> values;
};

std::vector<Group> channel_groups(const ir::Program& p, const KernelOps& ops, const TensorFeeds& feeds) {
  std::map<int, Group> users;  // by value
  for (const auto& [product, feed] : feeds.fed)
    for (size_t copy : feed.copies) {
      Group& g = users[written_value(ops.ops[copy])];
      if (stands_in(p.as<ir::Loop>(feed.loop)->body, ops.ops[copy].stmt)) g.loop = feed.loop;
      g.products.insert(product);
    }
  std::vector<Group> groups;
  for (auto& [value, user] : users) {
    auto g = std::find_if(groups.begin(), groups.end(), [&](const Group& other) {
      return other.loop == user.loop && other.products == user.products;
    });
    if (g == groups.end()) g = groups.insert(g, user);
    g->values.insert(value);
  }
  return groups;
}

std::set<std::string> names_of(const plan::ChannelPlan& c) { return {c.values.begin(), c.values.end()}; }

}  // namespace

Expected<std::vector<plan::ChannelPlan>> plan_channels(const ir::Program& p, int kernel, const KernelOps& ops,
                                                       const TensorFeeds& feeds, const plan::KernelSchedule* given) {
  const std::vector<std::string> paths = ir::statement_paths(p);
  std::vector<plan::ChannelPlan> channels;
  const std::vector<Group> groups = channel_groups(p, ops, feeds);
  for (const Group& g : groups) {
    const auto beside = std::count_if(groups.begin(), groups.end(), [&](const Group& o) { return o.loop == g.loop; });
    plan::ChannelPlan c;
    if (g.loop) c.loop = paths[g.loop.value];
    c.name = g.loop ? c.loop : p.kernels[static_cast<size_t>(kernel)].name;
    if (!g.loop || beside > 1) c.name += ":" + p.buffer(ops.values[static_cast<size_t>(*g.values.begin())].buffer).name;
    for (int v : g.values) c.values.push_back(ops.values[static_cast<size_t>(v)].name);
    channels.push_back(std::move(c));
  }
  if (!given || given->channels.empty()) return channels;
  std::set<std::string> planned, covered, names;
  for (const plan::ChannelPlan& c : channels) planned.insert(c.values.begin(), c.values.end());
  bool fits = true;
  for (const plan::ChannelPlan& g : given->channels) {
    const std::set<std::string> values = names_of(g);
    fits = fits && !values.empty() && values.size() == g.values.size() && names.insert(g.name).second;
    for (const plan::ChannelPlan& c : channels) {
      const std::set<std::string> own = names_of(c);
      const bool holds = std::includes(values.begin(), values.end(), own.begin(), own.end());
      const bool meets = std::any_of(own.begin(), own.end(), [&](const std::string& v) { return values.count(v) > 0; });
      fits = fits && (holds || !meets) && (!meets || c.loop == g.loop);
    }
    for (const std::string& v : values) fits = fits && planned.count(v) && covered.insert(v).second;
  }
  if (!fits || covered != planned)
    return Error(DiagCode::schedule_illegal, p.kernels[static_cast<size_t>(kernel)].name,
                 "the given channels do not hold each tile that comes by tensor copies once, together with the tiles of "
                 "its loop",
                 "leave `channels` out to have them planned");
  channels = given->channels;
  for (plan::ChannelPlan& c : channels) c.slots = 1;
  return channels;
}

namespace {

// Of two sides of a branch a block takes one.
bool exclusive(const ir::Program& p, ir::StmtId a, ir::StmtId b) {
  const auto inside = [&](const ir::Block& block, ir::StmtId s) {
    bool found = false;
    ir::for_each_statement(p, block, [&](ir::StmtId id, int) { found |= id == s; });
    return found;
  };
  for (const ir::Stmt& s : p.stmts) {
    const auto* branch = std::get_if<ir::Branch>(&s.node);
    if (!branch) continue;
    if (inside(branch->then_body, a) && inside(branch->else_body, b)) return true;
    if (inside(branch->else_body, a) && inside(branch->then_body, b)) return true;
  }
  return false;
}

// Another operation's access to the tensor that the engine's writes would have to be ordered with.
std::string order_refusal(const ir::Program& p, const KernelOps& ops, size_t op) {
  const KernelOp& store = ops.ops[op];
  const ir::BufferId tensor = p.as<ir::TileOp>(store.stmt)->operands[1].buffer;
  for (size_t i = 0; i < ops.ops.size(); ++i)
    for (const OpAccess& a : ops.ops[i].accesses) {
      if (i == op || a.buffer != tensor) continue;
      if (store.depth == 0 && exclusive(p, ops.ops[i].stmt, store.stmt)) continue;
      if (a.write || i > op || store.depth > 0)
        return ops.ops[i].path + " accesses tensor '" + p.buffer(tensor).name + "' too";
    }
  return "";
}

bool in_pipelined_loop(const ir::Program& p, ir::StmtId s) {
  for (size_t i = 0; i < p.stmts.size(); ++i) {
    const auto* loop = std::get_if<ir::Loop>(&p.stmts[i].node);
    bool found = false;
    if (loop && loop->kind == ir::LoopKind::pipelined)
      ir::for_each_statement(p, loop->body, [&](ir::StmtId id, int) { found |= id == s; });
    if (found) return true;
  }
  return false;
}

std::string tile_store_refusal(const ir::Program& p, const KernelOp& op, const ir::TileOp& copy,
                               const plan::ValuePlan& tile) {
  const ir::Buffer &from = p.buffer(copy.operands[0].buffer), &to = p.buffer(copy.operands[1].buffer);
  if (from.type != to.type)
    return std::string("the copy casts ") + ir::dtype_name(from.type) + " to " + ir::dtype_name(to.type);
  if (copy.operands[0].extents != p.tile_shape(copy.operands[0].buffer)) return "it copies a part of its tile";
  std::string why;
  if (!ops::tensor_copy_dims(p, copy, &why)) return why;
  return layout::tensor_tile(*tile.memory, inner_dim(p, op), ir::dtype_bytes(from.type), &why) ? "" : why;
}

}  // namespace

std::string store_refusal(const ir::Program& p, const KernelOps& ops, size_t op,
                          const std::vector<plan::ValuePlan>& values,
                          const std::vector<plan::ConversionPlan>& conversions) {
  const KernelOp& store = ops.ops[op];
  const auto& copy = *p.as<ir::TileOp>(store.stmt);
  if (in_pipelined_loop(p, store.stmt)) return "it stands in a pipelined loop";
  if (std::string why = order_refusal(p, ops, op); !why.empty()) return why;
  if (!conversions_of(p, ops, store, values, conversions).empty()) return "its source is converted for it";
  const plan::ValuePlan& source = values[static_cast<size_t>(store.accesses[0].value)];
  if (source.memory) return tile_store_refusal(p, store, copy, source);
  std::string why;
  return store_stage(p, store, *source.fragment, &why) ? "" : why;
}

std::optional<layout::Layout> store_tile_layout(const ir::Program& p, const KernelOp& op, const plan::ValuePlan& held) {
  const auto& copy = *p.as<ir::TileOp>(op.stmt);
  if (held.origin != plan::Origin::free || !held.memory || !held.memory->swizzle().none()) return std::nullopt;
  const auto dims = ops::tensor_copy_dims(p, copy, nullptr);
  if (!dims || dims->tile_outer < 0) return std::nullopt;
  const std::vector<int64_t>& shape = held.memory->shape();
  if (!held.memory->equivalent(layout::Layout::row_major(shape))) return std::nullopt;
  const int bytes = ir::dtype_bytes(p.buffer(copy.operands[0].buffer).type);
  for (int width : {128, 64, 32})
    if (auto boxed = layout::boxed_tile(shape, dims->tile_inner, dims->tile_outer, bytes, width)) return boxed;
  return std::nullopt;
}

plan::KernelSchedule without_tensor_copies(const plan::KernelSchedule& given, const ir::Program& p,
                                           const KernelOps& ops, TensorCopies allowed) {
  plan::KernelSchedule kept = given;
  if (allowed == TensorCopies::loads_and_stores) return kept;
  auto is_load = [&](const plan::OpPlan& o) {
    return std::any_of(ops.ops.begin(), ops.ops.end(),
                       [&](const KernelOp& op) { return op.path == o.op && is_tile_load(p, op); });
  };
  const size_t removed = std::erase_if(kept.ops, [&](const plan::OpPlan& o) {
    if (o.engine == Engine::warpgroup_mma || o.atom.starts_with("wgmma.")) return allowed == TensorCopies::none;
    return o.engine == Engine::tensor_copy && (allowed == TensorCopies::none || !is_load(o));
  });
  if (allowed != TensorCopies::none) return kept;
  kept.roles.reset();
  kept.persistence.reset();
  kept.cluster.reset();
  kept.channels.clear();
  for (plan::LoopPlan& l : kept.loops) l.ping_pong.reset();
  if (removed == 0) return kept;
  // What was laid out for them.
  kept.values.clear();
  kept.conversions.clear();
  for (plan::OpPlan& o : kept.ops) o.iteration.reset();
  return kept;
}

}  // namespace tilegen::schedule
