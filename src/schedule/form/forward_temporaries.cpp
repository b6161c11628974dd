#include "schedule/form/forward_temporaries.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analysis/loads.h"
#include "ir/annotations.h"
#include "ir/store_parts.h"
#include "ir/transaction_barriers.h"
#include "ir/written_region.h"
#include "schedule/form/buffer_memory.h"

namespace tilegen::schedule {

using ir::BufferId;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::StmtId;
using ir::VarId;

namespace {

// Of an expression as a tree: beyond it nothing is forwarded.
constexpr uint64_t kMaxNodes = 256;
constexpr uint16_t kMaxDepth = 128;

using Indices = std::vector<ExprId>;

class Forwarding : public ir::ExprRewriter {
 public:
  Forwarding(ir::ExprPool& pool, BufferId tile, ExprId value)
      : ExprRewriter(pool, pool), tile_(tile), value_(value) {}

 protected:
  ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) override {
    return n.object == tile_ ? value_ : to_->load(n.object, n.type, indices);
  }

 private:
  const BufferId tile_;
  const ExprId value_;
};

class Renaming : public ir::ExprRewriter {
 public:
  Renaming(ir::ExprPool& pool, const std::map<VarId, ExprId>& vars) : ExprRewriter(pool, pool), vars_(vars) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto it = vars_.find(n.var());
    return it == vars_.end() ? to_->var(n.var(), n.type) : it->second;
  }

 private:
  const std::map<VarId, ExprId>& vars_;
};

class Forwarder {
 public:
  explicit Forwarder(ir::Program& p) : p_(p) {}

  bool run() {
    for (ir::Kernel& k : p_.kernels) {
      uses_.clear();
      places_.clear();
      ir::for_each_statement(p_, k.body, [&](StmtId s, int) { note_uses(s); });
      note_places(k.body);
      // In program order: what is forwarded may be forwarded on.
      std::vector<StmtId> stores;
      ir::for_each_statement(p_, k.body, [&](StmtId s, int) {
        if (p_.as<ir::Store>(s)) stores.push_back(s);
      });
      for (StmtId s : stores) {
        const BufferId tile = p_.as<ir::Store>(s)->buffer;
        const ir::MemScope scope = p_.buffer(tile).scope;
        if (scope != ir::MemScope::fragment && scope != ir::MemScope::local) continue;
        const Uses& uses = uses_[tile];
        if (uses.writers.size() != 1 || uses.by_others || uses.readers.empty()) continue;
        places_.at(s).loop.valid() ? forward_tile(s) : forward_scalar(s);
      }
    }
    return changed_;
  }

 private:
  struct Uses {
    std::set<StmtId> writers, readers;  // readers: stores
    bool by_others = false;             // read by anything else, or by part of a tile operation
  };
  // Where a store stands: in a parallel loop, directly or in a branch of it, or in a block.
  struct Place {
    ir::Block* block = nullptr;  // that has the loop, or the store
    StmtId loop;
    bool direct = true;
    std::vector<std::pair<ir::Block*, StmtId>> around;  // blocks from the outermost, with the statement there
  };

  void note_reads(StmtId s, ExprId root, bool by_store) {
    analysis::any_load(p_.exprs, root, [&](ExprId, const ExprNode& n) {
      by_store ? void(uses_[n.object].readers.insert(s)) : void(uses_[n.object].by_others = true);
      return false;
    });
  }

  void note_uses(StmtId s) {
    if (const auto* store = p_.as<ir::Store>(s)) {
      uses_[store->buffer].writers.insert(s);
      const bool plain = !store->old && !store->expected.valid();
      if (store->old) uses_[store->old->buffer].by_others = true;
      ir::visit_exprs(*store, [&](ExprId e) { note_reads(s, e, plain); });
    } else if (const auto* op = p_.as<ir::TileOp>(s)) {
      note_reads(s, op->value, false);
      for (const ir::Region& r : op->operands) {
        uses_[r.buffer].by_others = true;
        for (ExprId offset : r.offsets) note_reads(s, offset, false);
      }
    } else if (const auto* branch = p_.as<ir::Branch>(s)) {
      note_reads(s, branch->condition, false);
    } else if (const auto* loop = p_.as<ir::Loop>(s); loop->kind != ir::LoopKind::parallel) {
      note_reads(s, loop->begin, false);
      for (ExprId extent : loop->extents) note_reads(s, extent, false);
      if (loop->condition.valid()) note_reads(s, loop->condition, false);
    }
  }

  void note_places(ir::Block& block) {
    for (StmtId s : block) {
      around_.push_back({&block, s});
      if (p_.as<ir::Store>(s)) places_[s] = {&block, StmtId(), true, around_};
      if (auto* loop = std::get_if<ir::Loop>(&p_.stmts[s.value].node)) {
        if (loop->kind != ir::LoopKind::parallel) note_places(loop->body);
        if (loop->kind == ir::LoopKind::parallel)
          ir::for_each_statement(p_, loop->body, [&](StmtId inner, int) {
            const bool direct = std::find(loop->body.begin(), loop->body.end(), inner) != loop->body.end();
            if (p_.as<ir::Store>(inner)) places_[inner] = {&block, s, direct, around_};
          });
      }
      if (auto* branch = std::get_if<ir::Branch>(&p_.stmts[s.value].node)) {
        note_places(branch->then_body);
        note_places(branch->else_body);
      }
      around_.pop_back();
    }
  }

  const ir::Loop& loop(StmtId s) const { return *p_.as<ir::Loop>(s); }
  const ir::Store& store(StmtId s) const { return *p_.as<ir::Store>(s); }

  std::set<BufferId> reads(ExprId e) const {
    std::set<BufferId> read;
    analysis::any_load(p_.exprs, e, [&](ExprId, const ExprNode& n) {
      read.insert(n.object);
      return false;
    });
    return read;
  }
  bool writes_any(StmtId stmt, const std::set<BufferId>& buffers) const {
    bool any = false;
    const auto note = [&](BufferId to) {
      any = any ||
            std::any_of(buffers.begin(), buffers.end(), [&](BufferId b) { return may_alias(p_, b, to); });
    };
    const ir::Block one = {stmt};
    ir::for_each_statement(p_, one, [&](StmtId s, int) {
      if (const auto* store = p_.as<ir::Store>(s))
        ir::visit_written(*store, [&](BufferId b, const auto&) { note(b); });
      if (const auto* op = p_.as<ir::TileOp>(s); op && !ir::orders_threads(op->kind))
        note(ir::written_region(*op).buffer);
    });
    return any;
  }

  uint64_t nodes(ExprId root) const {
    std::unordered_map<ExprId, uint64_t> known;
    const auto count = [&](ExprId e, const auto& self) -> uint64_t {
      if (!e.valid()) return 0;
      if (const auto it = known.find(e); it != known.end()) return it->second;
      const ExprNode& n = p_.exprs[e];
      uint64_t sum = 1 + self(n.a, self) + self(n.b, self) + self(n.c, self);
      for (ExprId index : n.op == ExprOp::load ? p_.exprs.indices(e) : std::span<const ExprId>())
        sum += self(index, self);
      return known[e] = std::min(sum, kMaxNodes + 1);
    };
    return count(root, count);
  }

  // The store with `value` where it loads the tile; false: too large.
  bool forward_into(StmtId reader, BufferId tile, ExprId value) {
    Forwarding forward(p_.exprs, tile, value);
    ir::Store s = store(reader);
    s.value = forward.rewrite(s.value);
    for (ExprId& index : s.indices) index = forward.rewrite(index);
    std::vector<ExprId> made = s.indices;
    made.push_back(s.value);
    for (ExprId e : made)
      if (p_.exprs[e].depth > kMaxDepth || nodes(e) > kMaxNodes) return false;
    p_.stmts[reader.value].node = std::move(s);
    changed_ = true;
    return true;
  }

  // The variables of the loop that the reader's points are, by the writer's: each load takes what its own
  // point stored. False: some does not.
  bool match_points(const ir::Store& from, const ir::Loop& writing, const ir::Store& to,
                    const ir::Loop& reading, std::map<VarId, ExprId>& vars) {
    std::set<Indices> loads;
    for (size_t i = 0; i <= to.indices.size(); ++i)
      analysis::any_load(p_.exprs, i < to.indices.size() ? to.indices[i] : to.value,
                         [&](ExprId e, const ExprNode& n) {
                           const auto at = p_.exprs.indices(e);
                           if (n.object == from.buffer) loads.emplace(at.begin(), at.end());
                           return false;
                         });
    if (loads.size() != 1) return false;
    const std::vector<int64_t> shape = p_.tile_shape(from.buffer);
    std::set<VarId> walked;
    for (size_t d = 0; d < shape.size(); ++d) {
      const ExprId stored = from.indices[d], loaded = (*loads.begin())[d];
      int64_t a = 0, b = 0;
      if (p_.exprs.is_const_int(stored, &a) && p_.exprs.is_const_int(loaded, &b) && a == b) continue;
      const ExprNode x = p_.exprs[stored], y = p_.exprs[loaded];
      if (x.op != ExprOp::var || y.op != ExprOp::var) return false;
      const int64_t along = extent(writing, x.var());
      if (along < 0 || along != extent(reading, y.var()) || !vars.emplace(x.var(), loaded).second ||
          !walked.insert(y.var()).second)
        return false;
    }
    for (VarId v : writing.vars)
      if (!vars.count(v) && (extent(writing, v) != 1 || !vars.emplace(v, p_.exprs.const_int(0)).second))
        return false;
    return std::all_of(reading.vars.begin(), reading.vars.end(),
                       [&](VarId v) { return walked.count(v) || extent(reading, v) == 1; });
  }

  // Of one of the loop's variables; -1 for others.
  int64_t extent(const ir::Loop& loop, VarId v) const {
    int64_t n = -1;
    for (size_t i = 0; i < loop.vars.size(); ++i)
      if (loop.vars[i] == v) p_.exprs.is_const_int(loop.extents[i], &n);
    return n;
  }

  void forward_tile(StmtId writer) {
    const Place& from = places_.at(writer);
    const Uses uses = uses_.at(store(writer).buffer);
    if (!from.direct || uses.readers.size() != 1 || *uses.readers.begin() == writer) return;
    const StmtId reader = *uses.readers.begin();
    const Place& to = places_.at(reader);
    if (!to.direct || !to.loop.valid() || to.block != from.block) return;
    if (ir::fixes_threads(p_.stmt(from.loop)) || ir::fixes_threads(p_.stmt(to.loop))) return;
    const std::set<BufferId> read = reads(store(writer).value);
    if (!stays_the_same(writer, reader, read)) return;
    std::map<VarId, ExprId> vars;
    if (!match_points(store(writer), loop(from.loop), store(reader), loop(to.loop), vars)) return;
    Renaming rename(p_.exprs, vars);
    const ExprId value = rename.rewrite(store(writer).value);
    if (!read_where_written(to.loop, value)) return;
    if (forward_into(reader, store(writer).buffer, value)) remove(writer, {reader});
  }

  // Nothing between the two writes what the writer reads; memory is loaded past element-wise work alone.
  bool stays_the_same(StmtId writer, StmtId reader, const std::set<BufferId>& read) const {
    const Place &from = places_.at(writer), &to = places_.at(reader);
    const bool from_memory =
        std::any_of(read.begin(), read.end(), [&](BufferId b) { return in_memory(p_, b); });
    const auto harmless = [&](StmtId s) {
      const auto* elements = p_.as<ir::Loop>(s);
      const bool element_wise = p_.as<ir::Store>(s) || (elements && elements->kind == ir::LoopKind::parallel);
      return !writes_any(s, read) && (!from_memory || element_wise);
    };
    const auto find = [](const ir::Block& b, StmtId s) { return std::find(b.begin(), b.end(), s); };
    const ir::Block& first = loop(from.loop).body;
    const auto after = find(first, writer) + 1;
    if (from.loop == to.loop) {
      const auto until = find(first, reader);
      return after <= until && std::all_of(after, until, [&](StmtId s) { return !writes_any(s, read); });
    }
    const auto begin = find(*from.block, from.loop), end = find(*from.block, to.loop);
    const ir::Block& last = loop(to.loop).body;
    const auto none = [&](StmtId s) { return !writes_any(s, read); };
    return begin < end && std::all_of(after, first.end(), none) && std::all_of(begin + 1, end, harmless) &&
           std::all_of(last.begin(), find(last, reader), none);
  }

  // What the loop writes and the value reads is the element of the same point.
  bool read_where_written(StmtId loop_id, ExprId value) const {
    std::map<BufferId, std::set<Indices>> written;
    ir::for_each_statement(p_, loop(loop_id).body, [&](StmtId s, int) {
      if (const auto* one = p_.as<ir::Store>(s))
        ir::visit_written(*one, [&](BufferId b, const Indices& at) { written[b].insert(at); });
    });
    return !analysis::any_load(p_.exprs, value, [&](ExprId e, const ExprNode& n) {
      const auto at = p_.exprs.indices(e);
      const std::set<Indices> same = {Indices(at.begin(), at.end())};
      return std::any_of(written.begin(), written.end(),
                         [&](const auto& w) { return may_alias(p_, w.first, n.object) && w.second != same; });
    });
  }

  // h[0] = an expression of no elements
  void forward_scalar(StmtId writer) {
    const Place& from = places_.at(writer);
    const BufferId tile = store(writer).buffer;
    const std::vector<int64_t> shape = p_.tile_shape(tile);
    if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n != 1; }) ||
        !reads(store(writer).value).empty())
      return;
    const std::set<StmtId> readers = uses_.at(tile).readers;
    // Each after it, in its block or below.
    for (StmtId r : readers) {
      const auto& around = places_.at(r).around;
      const auto at = std::find_if(around.begin(), around.end(),
                                   [&](const auto& level) { return level.first == from.block; });
      if (at == around.end()) return;
      const auto mine = std::find(from.block->begin(), from.block->end(), writer);
      if (std::find(mine + 1, from.block->end(), at->second) == from.block->end()) return;
    }
    for (StmtId r : readers)
      if (nodes(store(r).value) + nodes(store(writer).value) > kMaxNodes ||
          p_.exprs[store(r).value].depth + p_.exprs[store(writer).value].depth > kMaxDepth)
        return;
    const ExprId value = store(writer).value;
    for (StmtId r : readers)
      if (!forward_into(r, tile, value)) return;
    remove(writer, readers);
  }

  // The store is no more; what it read the others read.
  void remove(StmtId writer, const std::set<StmtId>& readers) {
    const Place from = places_.at(writer);
    for (BufferId b : reads(store(writer).value)) {
      uses_[b].readers.erase(writer);
      uses_[b].readers.insert(readers.begin(), readers.end());
    }
    uses_[store(writer).buffer] = {};
    if (!from.loop.valid()) return void(std::erase(*from.block, writer));
    ir::Block& body = std::get<ir::Loop>(p_.stmts[from.loop.value].node).body;
    std::erase(body, writer);
    if (body.empty()) std::erase(*from.block, from.loop);
  }

  ir::Program& p_;
  std::map<BufferId, Uses> uses_;
  std::map<StmtId, Place> places_;  // of stores
  std::vector<std::pair<ir::Block*, StmtId>> around_;
  bool changed_ = false;
};

}  // namespace

bool forward_temporaries(ir::Program& p) { return Forwarder(p).run(); }

}  // namespace tilegen::schedule
