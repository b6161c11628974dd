#include "thread/sync_accesses.h"

#include <set>

namespace tilegen::thread {

using ir::ExprId;

namespace {

class Collector {
 public:
  Collector(const ThreadProgram& p, std::vector<SyncAccess>& out) : p_(p), out_(out) {}

  void loads(std::initializer_list<ExprId> roots) {
    for (ExprId root : roots) pending_.push_back(root);
    while (!pending_.empty()) {
      const ExprId id = pending_.back();
      pending_.pop_back();
      if (!id.valid() || !seen_.insert(id).second) continue;
      const ir::ExprNode& n = p_.exprs[id];
      pending_.insert(pending_.end(), {n.a, n.b, n.c});
      if (n.op != ir::ExprOp::load) continue;
      const auto operands = p_.exprs.indices(id);
      for (ExprId x : operands) pending_.push_back(x);
      SyncAccess a;
      a.memory = n.object;
      a.index = operands[0];
      if (operands.size() > 1) a.predicate = operands[1];
      add(a);
    }
  }

  void access(MemoryId memory, ExprId index, int64_t count, ExprId predicate, bool write,
              bool async = false) {
    SyncAccess a;
    a.memory = memory;
    a.index = index;
    a.count = count;
    a.predicate = predicate;
    a.write = write;
    a.async = async;
    add(a);
  }

  void rows(MemoryId memory, ExprId index, int matrices, bool write) {
    SyncAccess a;
    a.memory = memory;
    a.index = index;
    a.count = 16 / ir::dtype_bytes(p_.memory(memory).type);
    a.write = write;
    a.collective = true;
    a.row_lanes = int64_t{8} * matrices;
    add(a);
  }

  void in_lanes(ir::VarId lane, int64_t lanes) {
    lane_ = lane;
    lanes_ = lanes;
    seen_.clear();
  }

  void operator()(const Store& s) {
    loads({s.index, s.value, s.predicate, s.streaming_if});
    access(s.memory, s.index, 1, s.predicate, true);
  }
  void operator()(const Loop& l) {  // vectorized
    int64_t lanes = 1;
    p_.exprs.is_const_int(l.extent, &lanes);
    in_lanes(l.var, lanes);
    for (StmtId id : l.body)
      if (const auto* s = std::get_if<Store>(&p_.stmts[id.value].node)) (*this)(*s);
  }
  void operator()(const Branch& b) { loads({b.condition}); }
  void operator()(const LaneReduce& r) {
    loads({r.dst_index, r.src_index});
    access(r.src, r.src_index, r.width, ExprId(), false);
    access(r.dst, r.dst_index, 1, ExprId(), true);
  }
  void operator()(const HostMma&) {}
  void operator()(const Prefetch&) {}
  void operator()(const Barrier&) {}
  void operator()(const AsyncCopy& c) {
    loads({c.dst_index, c.src_index, c.predicate});
    const int64_t count = c.bytes / ir::dtype_bytes(p_.memory(c.dst).type);
    access(c.src, c.src_index, count, c.predicate, false, true);
    access(c.dst, c.dst_index, count, ExprId(), true, true);
  }
  void operator()(const AsyncCommit&) {}
  void operator()(const AsyncWait&) {}
  void operator()(const Shuffle& s) { loads({s.dst_index, s.value, s.lane}); }
  void operator()(const LoadMatrix& m) {
    loads({m.dst_index, m.src_index});
    rows(m.src, m.src_index, m.matrices, false);
  }
  void operator()(const StoreMatrix& m) {
    loads({m.dst_index, m.src_index});
    rows(m.dst, m.dst_index, m.matrices, true);
  }
  void operator()(const WarpMma& m) { loads({m.a_index, m.b_index, m.c_index}); }
  void operator()(const auto&) {}

 private:
  void add(SyncAccess a) {
    const Memory& m = p_.memory(a.memory);
    if (m.space == Space::local || m.read_only) return;
    a.lane = lane_;
    a.lanes = lanes_;
    out_.push_back(a);
  }

  const ThreadProgram& p_;
  std::vector<SyncAccess>& out_;
  std::vector<ExprId> pending_;
  std::set<ExprId> seen_;
  ir::VarId lane_;
  int64_t lanes_ = 1;
};

}  // namespace

std::vector<SyncAccess> sync_accesses(const ThreadProgram& p, StmtId id) {
  std::vector<SyncAccess> out;
  Collector collector(p, out);
  std::visit([&](const auto& node) { collector(node); }, p.stmts[id.value].node);
  return out;
}

std::vector<SyncAccess> sync_accesses(const ThreadProgram& p, const Loop& loop) {
  std::vector<SyncAccess> out;
  Collector(p, out).loads({loop.extent});
  return out;
}

bool may_overlap(const ThreadProgram& p, MemoryId a, MemoryId b) {
  if (a == b) return true;
  const Memory &x = p.memory(a), &y = p.memory(b);
  if (x.arena_offset < 0 || y.arena_offset < 0) return false;
  return x.arena_offset < y.arena_offset + y.elements * ir::dtype_bytes(y.type) &&
         y.arena_offset < x.arena_offset + x.elements * ir::dtype_bytes(x.type);
}

}  // namespace tilegen::thread
