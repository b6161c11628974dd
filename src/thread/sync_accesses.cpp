#include "thread/sync_accesses.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "layout/tensor_tile.h"

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
    loads({s.index, s.value, s.predicate, s.streaming_if, s.expected, s.old_index});
    if (s.old.valid()) access(s.old, s.old_index, 1, s.predicate, true);
    SyncAccess a;
    a.memory = s.memory;
    a.index = s.index;
    a.predicate = s.predicate;
    a.write = true;
    a.atomic = s.atomic;
    a.fetches = s.old.valid();
    a.order = s.order;
    add(a);
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
  void operator()(const Vote& s) { loads({s.dst_index, s.value}); }
  void operator()(const LoadMatrix& m) {
    loads({m.dst_index, m.src_index});
    rows(m.src, m.src_index, m.matrices, false);
  }
  void operator()(const StoreMatrix& m) {
    loads({m.dst_index, m.src_index});
    rows(m.dst, m.dst_index, m.matrices, true);
  }
  void operator()(const WarpMma& m) { loads({m.a_index, m.b_index, m.c_index, m.places_index}); }
  void operator()(const Roles&) {}
  void operator()(const OneThread&) {}
  void operator()(const TransactionArrive& a) { loads({a.index, a.block}); }
  void operator()(const TransactionWait& w) { loads({w.index, w.parity, w.unless}); }
  void operator()(const TransactionTest& t) { loads({t.index, t.parity, t.dst_index}); }
  void operator()(const FetchTile& c) { loads({c.dst_index}); }
  void operator()(const TensorLoad& l) {
    for (ExprId x : l.coordinates) loads({x});
    loads({l.dst_index, l.barrier_index});
    engine(l.dst, l.dst_index, box_elements(l.map), true);
  }
  void operator()(const TensorStore& s) {
    for (ExprId x : s.coordinates) loads({x});
    loads({s.src_index});
    engine(s.src, s.src_index, box_elements(s.map), false);
  }
  void operator()(const BulkCommit&) {}
  void operator()(const BulkWait&) {}
  void operator()(const ProxyFence&) {}
  void operator()(const ClusterBarrier&) {}
  void operator()(const GridDependencyWait&) {}
  void operator()(const ClusterLoad& l) { loads({l.dst_index, l.src_index, l.block}); }
  void operator()(const WarpgroupMma& m) {
    loads({m.a_index, m.b_index, m.c_index, m.accumulate, m.places_index});
    for (bool of_a : {true, false}) {
      const MemoryId memory = of_a ? m.a : m.b;
      if (p_.memory(memory).space == Space::shared)
        for (const OperandRange& r : operand_ranges(p_, m, of_a))
          engine(memory, of_a ? m.a_index : m.b_index, r.count, false, r.first);
    }
  }
  void operator()(const WarpgroupFence&) {}
  void operator()(const WarpgroupCommit&) {}
  void operator()(const WarpgroupWait&) {}

 private:
  int64_t box_elements(int map) const {
    int64_t elements = 1;
    for (int64_t extent : p_.tensor_maps[static_cast<size_t>(map)].box) elements *= extent;
    return elements;
  }
  void engine(MemoryId memory, ExprId index, int64_t count, bool write, int64_t offset = 0) {
    SyncAccess a;
    a.memory = memory;
    a.index = index;
    a.count = count;
    a.offset = offset;
    a.write = write;
    a.collective = a.engine = true;
    add(a);
  }

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
  Collector(p, out).loads({loop.extent, loop.condition});
  return out;
}

std::vector<OperandRange> operand_ranges(const ThreadProgram& p, const WarpgroupMma& m, bool of_a) {
  // "wgmma.m64n256k16.f32.f16.f16", "wgmma.sp.m64n256k32.f32.f16.f16"
  int64_t m_rows = 0, n = 0, k = 0;
  const size_t at_m = m.atom.find(".m"), at_n = m.atom.find('n'), at_k = m.atom.find('k');
  const auto number = [&](size_t at, int64_t& v) {
    if (at != std::string::npos) std::from_chars(m.atom.data() + at + 1, m.atom.data() + m.atom.size(), v);
  };
  number(at_m == std::string::npos ? at_m : at_m + 1, m_rows), number(at_n, n), number(at_k, k);
  if (of_a && m.sparse()) k /= 2;
  const MatrixForm& f = of_a ? m.a_form : m.b_form;
  constexpr int64_t kGroup = layout::kSwizzleRows, kUnit = layout::kSwizzleUnit;
  const int64_t bytes = ir::dtype_bytes(p.memory(of_a ? m.a : m.b).type), rows = of_a ? m_rows : n;
  const int64_t width = f.swizzle == 0 ? kUnit : f.swizzle;
  const int64_t fast = (f.k_major ? k : rows) * bytes, slow = f.k_major ? rows : k;
  const int64_t across = (fast + width - 1) / width, down = (slow + kGroup - 1) / kGroup;
  const bool fields_change = f.swizzle == 0 && !f.k_major;
  const int64_t by_across = fields_change ? f.stride_bytes : f.leading_bytes,
                by_down = fields_change ? f.leading_bytes : f.stride_bytes;
  std::vector<int64_t> groups;  // first bytes
  for (int64_t step : of_a ? m.a_steps : m.b_steps)
    for (int64_t x = 0; x < across; ++x)
      for (int64_t y = 0; y < down; ++y)  // a step along k begins within the rows of the first
        groups.push_back(step * bytes / width * width + x * by_across + y * by_down);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  std::vector<OperandRange> ranges;
  for (int64_t first : groups) {
    const int64_t end = (first + kGroup * width) / bytes;
    if (!ranges.empty() && ranges.back().first + ranges.back().count >= first / bytes)
      ranges.back().count = end - ranges.back().first;
    else
      ranges.push_back({first / bytes, end - first / bytes});
  }
  return ranges;
}

namespace {

// The shared memories that what stands in the block touches.
void note_touched(const ThreadProgram& p, const Block& block, std::set<MemoryId>& touched) {
  for (StmtId id : block) {
    for (const SyncAccess& a : sync_accesses(p, id)) touched.insert(a.memory);
    for (const Block* inside : blocks_inside(p.stmts[id.value].node)) note_touched(p, *inside, touched);
  }
}

}  // namespace

std::vector<bool> handed_over_memories(const ThreadProgram& p) {
  std::vector<bool> handed(p.memories.size(), false);
  for (const Stmt& s : p.stmts) {
    if (const auto* load = std::get_if<TensorLoad>(&s.node)) handed[load->dst.value] = true;
    if (const auto* store = std::get_if<TensorStore>(&s.node)) handed[store->src.value] = true;
    if (const auto* load = std::get_if<ClusterLoad>(&s.node)) handed[load->src.value] = true;
    if (const auto* product = std::get_if<WarpgroupMma>(&s.node))
      handed[product->a.value] = handed[product->b.value] = true;
  }
  for (StmtId id : p.body) {
    const auto* roles = std::get_if<Roles>(&p.stmts[id.value].node);
    if (!roles) continue;
    std::vector<int> roles_of(p.memories.size(), 0);
    for (const Role& role : roles->roles) {
      std::set<MemoryId> touched;
      note_touched(p, role.body, touched);
      for (MemoryId m : touched) ++roles_of[m.value];
    }
    for (size_t m = 0; m < handed.size(); ++m) handed[m] = handed[m] || roles_of[m] > 1;
  }
  for (size_t m = 0; m < handed.size(); ++m) handed[m] = handed[m] && p.memories[m].space == Space::shared;
  return handed;
}

std::vector<bool> written_operands(const ThreadProgram& p) {
  std::vector<bool> written(p.memories.size(), false), read(p.memories.size(), false);
  for (const Stmt& s : p.stmts) {
    if (const auto* store = std::get_if<Store>(&s.node)) {
      written[store->memory.value] = true;
      if (store->old.valid()) written[store->old.value] = true;
    }
    if (const auto* matrices = std::get_if<StoreMatrix>(&s.node)) written[matrices->dst.value] = true;
    if (const auto* product = std::get_if<WarpgroupMma>(&s.node))
      read[product->a.value] = read[product->b.value] = true;
  }
  for (size_t m = 0; m < written.size(); ++m)
    written[m] = written[m] && read[m] && p.memories[m].space == Space::shared;
  return written;
}

bool may_overlap(const ThreadProgram& p, MemoryId a, MemoryId b) {
  if (a == b) return true;
  const Memory &x = p.memory(a), &y = p.memory(b);
  if (x.arena_offset < 0 || y.arena_offset < 0) return false;
  return x.arena_offset < y.arena_offset + y.elements * ir::dtype_bytes(y.type) &&
         y.arena_offset < x.arena_offset + x.elements * ir::dtype_bytes(x.type);
}

bool is_of_program(const ThreadProgram& p, const Barrier& b) {
  return b.id > 0 && static_cast<size_t>(b.id) <= p.named_barriers.size() &&
         p.named_barriers[static_cast<size_t>(b.id - 1)].use == BarrierUse::program;
}

bool has_program_barriers(const ThreadProgram& p) {
  const auto& named = p.named_barriers;
  return !p.barriers.empty() || std::any_of(named.begin(), named.end(), [](const NamedBarrier& b) {
    return b.use == BarrierUse::program;
  });
}

uint32_t split_barriers(const ThreadProgram& p) {
  uint32_t split = 0;
  for (const Stmt& s : p.stmts)
    if (const auto* b = std::get_if<Barrier>(&s.node); b && b->arrive_only)
      split |= uint32_t{1} << (b->id & 31);
  return split;
}

}  // namespace tilegen::thread
