#include "analysis/kernel_ops.h"

#include <algorithm>
#include <map>

#include "analysis/loads.h"
#include "ir/statement_paths.h"
#include "ir/store_parts.h"
#include "ir/transaction_barriers.h"

namespace tilegen::analysis {

using ir::BufferId;
using ir::Program;
using ir::StmtId;

namespace {

// Until WebBuilder::finish an access has the number of a web, joined to others or not, in place of a value.
using Web = ValueId;

// Which web each buffer is in at a program point; absent = nothing written yet.
using Reaching = std::map<BufferId, Web>;

class WebBuilder {
 public:
  WebBuilder(const Program& p, KernelOps& out, const ir::KernelPaths& paths)
      : p_(p), out_(out), paths_(paths) {}

  void block(const ir::Block& b, Reaching& state, int depth) {
    for (StmtId id : b) statement(id, state, depth);
  }

  // Numbers the surviving webs in order of first appearance and writes them into the ops.
  void finish() {
    std::map<Web, ValueId> number;
    std::map<BufferId, int> per_buffer;
    for (KernelOp& op : out_.ops) {
      for (OpAccess& a : op.accesses) {
        if (!a.value.valid()) continue;
        auto [it, fresh] = number.try_emplace(find(a.value), ValueId(out_.values.size()));
        if (fresh) {
          const ir::Buffer& buffer = p_.buffer(a.buffer);
          int ordinal = per_buffer[a.buffer]++;
          std::string name = ir::buffer_path(p_, a.buffer);
          if (ordinal > 0) name += "@" + std::to_string(ordinal);
          out_.values.push_back({a.buffer, std::move(name), buffer.scope, p_.tile_shape(a.buffer)});
        }
        a.value = it->second;
      }
    }
    for (auto& [where, value] : out_.scalar_reads) {
      auto it = number.find(find(value));
      value = it == number.end() ? ValueId() : it->second;  // none: no op ever touches what is read
    }
    for (const auto& [buffer, web] : exposed_)
      if (const auto it = number.find(find(web)); it != number.end()) out_.exposed.insert(it->second);
  }

 private:
  Web find(Web web) {
    while (parent_[web] != web) web = parent_[web];
    return web;
  }
  Web fresh() { return parent_.push_back(Web(parent_.size())); }
  Web join(Web a, Web b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
    return std::min(a, b);
  }
  void merge(Reaching& into, const Reaching& other) {
    for (auto [buffer, web] : into)
      if (!other.count(buffer)) one_way_.push_back(web);
    for (auto [buffer, web] : other) {
      auto [it, fresh_entry] = into.try_emplace(buffer, web);
      fresh_entry ? one_way_.push_back(web) : void(it->second = join(it->second, web));
    }
  }
  bool written_one_way_only(Web web) {
    return std::any_of(one_way_.begin(), one_way_.end(), [&](Web w) { return find(w) == find(web); });
  }

  bool on_chip(BufferId b) const { return p_.buffer(b).scope != ir::MemScope::global; }

  void use(Reaching& state, OpAccess& a) {
    auto it = state.find(a.buffer);
    if (it == state.end()) {
      it = state.emplace(a.buffer, fresh()).first;
      exposed_.push_back({a.buffer, it->second});
    } else if (written_one_way_only(it->second)) {
      exposed_.push_back({a.buffer, it->second});
    }
    a.value = find(it->second);
  }
  void define(Reaching& state, OpAccess& a, bool whole) {
    if (whole) state[a.buffer] = fresh();
    use(state, a);  // a part is written over what is there, be it from an earlier iteration
  }

  void scalar(StmtId id, ir::ExprId root, Reaching& state) {
    any_load(p_.exprs, root, [&](ir::ExprId, const ir::ExprNode& n) {
      if (!on_chip(n.object)) return false;
      OpAccess a{n.object, {}, true, false};
      use(state, a);
      out_.scalar_reads[{id, n.object}] = a.value;
      return false;
    });
  }

  // What a condition reads before each iteration is from before the loop, or what the body leaves.
  void asked_again(StmtId id, ir::ExprId root, Reaching& state) {
    any_load(p_.exprs, root, [&](ir::ExprId, const ir::ExprNode& n) {
      if (!on_chip(n.object)) return false;
      OpAccess a{n.object, {}, true, false};
      use(state, a);
      exposed_.push_back({n.object, a.value});
      out_.scalar_reads[{id, n.object}] = a.value;
      return false;
    });
  }

  bool covers_buffer(const ir::Region& r) const {
    std::vector<int64_t> shape = p_.tile_shape(r.buffer);
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t offset = 1;
      if (r.extents[d] != shape[d] || !p_.exprs.is_const_int(r.offsets[d], &offset) || offset != 0)
        return false;
    }
    return true;
  }

  // A parallel store covers its buffer when each dimension is walked by a variable of its own over the full
  // extent, at the top level of the loop body.
  bool covers_buffer(const ops::ElementView& view, const ops::ElementAccess& a) const {
    std::vector<int64_t> shape = p_.tile_shape(a.buffer);
    std::vector<bool> used(view.extents.size(), false);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (a.dim_of[d] == ops::kUniformIndex && shape[d] == 1) continue;
      if (a.dim_of[d] < 0 || a.offset[d] != 0) return false;
      size_t k = static_cast<size_t>(a.dim_of[d]);
      if (used[k] || view.extents[k] != shape[d]) return false;
      used[k] = true;
    }
    return true;
  }

  bool guarded_store(StmtId id, BufferId buffer) const {
    const auto* loop = p_.as<ir::Loop>(id);
    if (!loop) return false;
    for (StmtId s : loop->body)
      if (const auto* store = p_.as<ir::Store>(s); store && ir::writes(*store, buffer)) return false;
    return true;
  }

  void tile_op(StmtId id, const ir::TileOp& op, Reaching& state, KernelOp& record) {
    const ops::TileOpDef& def = ops::op_def(op.kind);
    const ops::LayoutRule rule = def.layout_rule(op);
    record.form = rule.form;
    record.scan = rule.scan;
    for (const ops::OperandAccess& access : def.accesses(op)) {
      OpAccess a{op.operands[static_cast<size_t>(access.operand)].buffer, ValueId(),
                 access.access != ir::Access::write, access.access != ir::Access::read, access.operand};
      record.accesses.push_back(a);
    }
    if (auto view = ops::element_view(p_, id)) record.view = std::move(*view);
    for (const ir::Region& region : op.operands)
      for (ir::ExprId offset : region.offsets) scalar(id, offset, state);
    scalar(id, op.value, state);
    for (OpAccess& a : record.accesses)
      if (a.read && on_chip(a.buffer)) use(state, a);
    const auto reads = [&](BufferId buffer) {
      return std::any_of(record.accesses.begin(), record.accesses.end(),
                         [&](const OpAccess& a) { return a.read && a.buffer == buffer; });
    };
    for (OpAccess& a : record.accesses)
      if (a.write && on_chip(a.buffer))
        define(state, a, !reads(a.buffer) && covers_buffer(op.operands[static_cast<size_t>(a.operand)]));
  }

  void element(StmtId id, Reaching& state, KernelOp& record) {
    record.view = *ops::element_view(p_, id);
    std::map<BufferId, bool> reads;
    for (const ops::ElementAccess& a : record.view.accesses)
      if (!a.write) reads[a.buffer] = true;
    for (const ops::ElementAccess& a : record.view.accesses)
      record.accesses.push_back({a.buffer, {}, !a.write, a.write});
    for (OpAccess& a : record.accesses)
      if (a.read && on_chip(a.buffer)) use(state, a);
    for (size_t i = 0; i < record.accesses.size(); ++i) {
      OpAccess& a = record.accesses[i];
      if (!a.write || !on_chip(a.buffer)) continue;
      bool whole = !reads.count(a.buffer) && !guarded_store(id, a.buffer) &&
                   covers_buffer(record.view, record.view.accesses[i]) && first_write(record, i);
      define(state, a, whole);
    }
  }

  static bool first_write(const KernelOp& record, size_t i) {
    for (size_t k = 0; k < i; ++k)
      if (record.accesses[k].write && record.accesses[k].buffer == record.accesses[i].buffer) return false;
    return true;
  }

  void statement(StmtId id, Reaching& state, int depth) {
    const ir::Stmt& s = p_.stmt(id);
    if (const auto* loop = p_.as<ir::Loop>(id); loop && loop->kind != ir::LoopKind::parallel) {
      scalar(id, loop->begin, state);
      scalar(id, loop->extents[0], state);
      // What reaches the body's end reaches its start; zero trips leave the state before the loop.
      Reaching body = state;
      size_t first_exposed = exposed_.size();
      if (loop->condition.valid()) asked_again(id, loop->condition, body);
      block(loop->body, body, depth + 1);
      for (size_t i = first_exposed; i < exposed_.size(); ++i)
        if (auto it = body.find(exposed_[i].first); it != body.end()) join(exposed_[i].second, it->second);
      merge(state, body);
      return;
    }
    if (const auto* branch = p_.as<ir::Branch>(id)) {
      scalar(id, branch->condition, state);
      Reaching then_state = state, else_state = state;
      block(branch->then_body, then_state, depth);
      block(branch->else_body, else_state, depth);
      state = std::move(then_state);
      merge(state, else_state);
      return;
    }
    if (const auto* op = p_.as<ir::TileOp>(id); op && ir::orders_threads(op->kind)) return;
    KernelOp record;
    record.stmt = id;
    record.path = paths_[id.value];
    record.location = s.location;
    record.depth = depth;
    if (const auto* op = p_.as<ir::TileOp>(id)) {
      tile_op(id, *op, state, record);
    } else {
      element(id, state, record);
    }
    out_.ops.push_back(std::move(record));
  }

  const Program& p_;
  KernelOps& out_;
  const ir::KernelPaths& paths_;
  IdVector<Web, Web> parent_;
  // webs that begin with a use: earlier iterations may feed them
  std::vector<std::pair<BufferId, Web>> exposed_;
  // webs that another way to the same place does not write: it brings what earlier iterations left
  std::vector<Web> one_way_;
};

}  // namespace

ValueId KernelOps::value_of(const KernelOp& op, BufferId buffer) const {
  for (const OpAccess& a : op.accesses)
    if (a.buffer == buffer) return a.value;
  return {};
}

KernelOps collect_kernel_ops(const Program& p, int kernel) {
  KernelOps out;
  const ir::KernelPaths paths(p, kernel);
  WebBuilder builder(p, out, paths);
  Reaching state;
  builder.block(p.kernels[static_cast<size_t>(kernel)].body, state, 0);
  builder.finish();
  return out;
}

}  // namespace tilegen::analysis
