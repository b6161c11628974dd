#include "thread/warpgroup_verify.h"

#include <algorithm>
#include <map>
#include <set>

namespace tilegen::thread {
namespace {

using ir::ExprId;
using ir::ExprOp;

constexpr size_t kMaxGroups = 64;  // older ones are taken as one
constexpr int kMaxDoubled = 6;     // nested loops that are walked twice

// Register memories that products write and read, with the statement that did; any one will do for the
// report.
struct Products {
  std::map<uint32_t, StmtId> written, read;

  bool empty() const { return written.empty() && read.empty(); }
  void join(const Products& other) {
    written.insert(other.written.begin(), other.written.end());
    read.insert(other.read.begin(), other.read.end());
  }
};

// What may be at one point of the program.
struct State {
  Products open;                 // issued since the last commit
  std::vector<Products> groups;  // newest first
  std::set<uint32_t> touched;    // since the last fence
  std::set<uint32_t> kept;       // finished results that no wait has handed over

  void join(const State& other) {
    open.join(other.open);
    if (groups.size() < other.groups.size()) groups.resize(other.groups.size());
    for (size_t i = 0; i < other.groups.size(); ++i) groups[i].join(other.groups[i]);
    touched.insert(other.touched.begin(), other.touched.end());
    kept.insert(other.kept.begin(), other.kept.end());
  }
  const StmtId* writer(uint32_t m) const { return find(m, &Products::written); }
  const StmtId* reader(uint32_t m) const { return find(m, &Products::read); }

 private:
  const StmtId* find(uint32_t m, std::map<uint32_t, StmtId> Products::*of) const {
    if (auto it = (open.*of).find(m); it != (open.*of).end()) return &it->second;
    for (const Products& g : groups)
      if (auto it = (g.*of).find(m); it != (g.*of).end()) return &it->second;
    return nullptr;
  }
};

// Expressions and register memories of a statement that is no product.
struct Uses {
  std::vector<ExprId> expressions;
  std::vector<MemoryId> reads, writes;

  void operator()(const Loop& s) { expressions = {s.extent, s.condition}; }
  void operator()(const Branch& s) { expressions = {s.condition}; }
  void operator()(const Store& s) {
    expressions = {s.index, s.value, s.predicate, s.streaming_if, s.expected, s.old_index};
    writes = {s.memory};
  }
  void operator()(const LaneReduce& s) {
    expressions = {s.dst_index, s.src_index};
    reads = {s.src}, writes = {s.dst};
  }
  void operator()(const HostMma& s) {
    expressions = {s.a_index, s.b_index, s.c_index};
    reads = {s.a, s.b}, writes = {s.c};
  }
  void operator()(const Prefetch& s) { expressions = {s.index}; }
  void operator()(const AsyncCopy& s) { expressions = {s.dst_index, s.src_index, s.predicate}; }
  void operator()(const Shuffle& s) {
    expressions = {s.dst_index, s.value, s.lane};
    writes = {s.dst};
  }
  void operator()(const Vote& s) {
    expressions = {s.dst_index, s.value};
    writes = {s.dst};
  }
  void operator()(const LoadMatrix& s) {
    expressions = {s.dst_index, s.src_index};
    writes = {s.dst};
  }
  void operator()(const StoreMatrix& s) {
    expressions = {s.dst_index, s.src_index};
    reads = {s.src};
  }
  void operator()(const WarpMma& s) {
    expressions = {s.a_index, s.b_index, s.c_index, s.places_index};
    reads = {s.a, s.b}, writes = {s.c};
    if (s.places.valid()) reads.push_back(s.places);
  }
  void operator()(const TransactionArrive& s) { expressions = {s.index, s.block}; }
  void operator()(const TransactionWait& s) { expressions = {s.index, s.parity, s.unless}; }
  void operator()(const TransactionTest& s) {
    expressions = {s.index, s.parity, s.dst_index};
    writes = {s.dst};
  }
  void operator()(const FetchTile& s) {
    expressions = {s.dst_index};
    writes = {s.dst};
  }
  void operator()(const ClusterLoad& s) {
    expressions = {s.dst_index, s.src_index, s.block};
    writes = {s.dst};
  }
  void operator()(const TensorLoad& s) {
    expressions = s.coordinates;
    expressions.insert(expressions.end(), {s.dst_index, s.barrier_index});
  }
  void operator()(const TensorStore& s) {
    expressions = s.coordinates;
    expressions.push_back(s.src_index);
  }
  void operator()(const WarpgroupMma& s) {
    expressions = {s.a_index, s.b_index, s.c_index, s.accumulate, s.places_index};
  }
  void operator()(const auto&) {}
};

class WarpgroupVerifier {
 public:
  explicit WarpgroupVerifier(const ThreadProgram& p)
      : p_(p), loads_(p.exprs.size()), known_(p.exprs.size()), concerned_(p.stmts.size()) {}

  std::vector<std::string> run() {
    State begin;
    for (uint32_t m = 0; m < p_.memories.size(); ++m)
      if (p_.memories[m].in_registers) begin.touched.insert(m);
    find_concerned(p_.body);
    walk(p_.body, begin);
    return std::move(problems_);
  }

 private:
  void report(StmtId at, const std::string& text) {
    const std::string& origin = p_.stmts[at.value].origin;
    std::string line = (origin.empty() ? "" : origin + ": ") + text;
    if (reported_.insert(line).second) problems_.push_back(std::move(line));
  }
  std::string name(uint32_t m) const { return p_.memories[m].name; }
  std::string product(StmtId s) const {
    const std::string& origin = p_.stmts[s.value].origin;
    return "the warpgroup product" + (origin.empty() ? std::string() : " of " + origin);
  }

  // Statements with products, or what orders them, inside: only they make a second round of a loop differ.
  bool find_concerned(const Block& block) {
    bool any = false;
    for (StmtId id : block) {
      const StmtNode& node = p_.stmts[id.value].node;
      bool here =
          std::holds_alternative<WarpgroupMma>(node) || std::holds_alternative<WarpgroupFence>(node) ||
          std::holds_alternative<WarpgroupCommit>(node) || std::holds_alternative<WarpgroupWait>(node);
      for (const Block* inner : blocks_inside(node)) here |= find_concerned(*inner);
      concerned_[id.value] = here;
      any |= here;
    }
    return any;
  }

  // Register memories an expression loads from.
  const std::set<uint32_t>& loads(ExprId e) {
    std::set<uint32_t>& out = loads_[e.value];
    if (known_[e.value]) return out;
    known_[e.value] = true;
    const ir::ExprNode& n = p_.exprs[e];
    auto take = [&](ExprId inner) {
      if (inner.valid()) out.insert(loads(inner).begin(), loads(inner).end());
    };
    for (ExprId inner : {n.a, n.b, n.c}) take(inner);
    if (n.op != ExprOp::load) return out;
    for (ExprId inner : p_.exprs.indices(e)) take(inner);
    if (p_.memory(n.object).in_registers) out.insert(n.object.value);
    return out;
  }

  void read(StmtId at, uint32_t m, State& s) {
    if (const StmtId* w = s.writer(m))
      report(at,
             "registers " + name(m) + " are read while " + product(*w) + " that writes them is in flight");
    else if (s.kept.contains(m))
      report(at, "registers " + name(m) + " are read, but no warpgroup wait after the product names them");
    s.touched.insert(m);
  }

  void write(StmtId at, uint32_t m, State& s) {
    if (const StmtId* w = s.writer(m))
      report(at,
             "registers " + name(m) + " are written while " + product(*w) + " that writes them is in flight");
    else if (const StmtId* r = s.reader(m))
      report(at,
             "registers " + name(m) + " are written while " + product(*r) + " that reads them is in flight");
    s.kept.erase(m);
    s.touched.insert(m);
  }

  void use(StmtId at, State& s) {
    Uses uses;
    std::visit(uses, p_.stmts[at.value].node);
    for (ExprId e : uses.expressions)
      if (e.valid())
        for (uint32_t m : loads(e)) read(at, m, s);
    for (MemoryId m : uses.reads)
      if (p_.memory(m).in_registers) read(at, m.value, s);
    for (MemoryId m : uses.writes)
      if (p_.memory(m).in_registers) write(at, m.value, s);
  }

  void issue(StmtId at, const WarpgroupMma& mma, State& s) {
    auto fenced = [&](uint32_t m) {
      if (s.touched.contains(m))
        report(at,
               "registers " + name(m) + " were touched, and no warpgroup fence stands before " + mma.atom);
    };
    fenced(mma.c.value);
    if (const StmtId* r = s.reader(mma.c.value))
      report(at, "registers " + name(mma.c.value) + " are written while " + product(*r) +
                     " that reads them is in flight");
    for (MemoryId input : {mma.a, mma.places}) {
      if (!input.valid() || !p_.memory(input).in_registers) continue;
      const uint32_t m = input.value;
      fenced(m);
      if (const StmtId* w = s.writer(m))
        report(at,
               "registers " + name(m) + " are read while " + product(*w) + " that writes them is in flight");
      else if (s.kept.contains(m))
        report(at, "registers " + name(m) + " are read, but no warpgroup wait after the product names them");
      s.open.read.emplace(m, at);
    }
    s.kept.erase(mma.c.value);
    s.open.written.emplace(mma.c.value, at);
  }

  static void commit(State& s) {
    s.groups.insert(s.groups.begin(), std::move(s.open));
    s.open = {};
    if (s.groups.size() <= kMaxGroups) return;
    s.groups[kMaxGroups - 1].join(s.groups.back());
    s.groups.pop_back();
  }

  static void wait(const WarpgroupWait& w, State& s) {
    const auto pending = static_cast<size_t>(w.pending);
    for (size_t i = pending; i < s.groups.size(); ++i)
      for (const auto& [m, at] : s.groups[i].written) s.kept.insert(m);
    if (s.groups.size() > pending) s.groups.resize(pending);
    for (MemoryId m : w.registers)
      if (!s.writer(m.value)) s.kept.erase(m.value);
  }

  void walk(const Block& block, State& s) {
    for (StmtId id : block) step(id, s);
  }

  void step(StmtId id, State& s) {
    const StmtNode& node = p_.stmts[id.value].node;
    use(id, s);
    if (auto* loop = std::get_if<Loop>(&node)) {
      repeat(id, *loop, s);
    } else if (auto* branch = std::get_if<Branch>(&node)) {
      State other = s;
      walk(branch->then_body, s);
      walk(branch->else_body, other);
      s.join(other);
    } else if (auto* roles = std::get_if<Roles>(&node)) {
      for (const Role& role : roles->roles) {
        State own = s;
        walk(role.body, own);
      }
    } else if (auto* one = std::get_if<OneThread>(&node)) {
      State chosen = s;
      walk(one->body, chosen);
      s.join(chosen);
    } else if (auto* mma = std::get_if<WarpgroupMma>(&node)) {
      issue(id, *mma, s);
    } else if (std::holds_alternative<WarpgroupFence>(node)) {
      s.touched.clear();
    } else if (std::holds_alternative<WarpgroupCommit>(node)) {
      commit(s);
    } else if (auto* w = std::get_if<WarpgroupWait>(&node)) {
      wait(*w, s);
    }
  }

  void repeat(StmtId id, const Loop& loop, State& s) {
    int64_t extent = 0;
    const bool runs = p_.exprs.is_const_int(loop.extent, &extent) && extent > 0 && !loop.condition.valid();
    State round = s;
    walk(loop.body, round);
    if (runs)
      s = round;
    else
      s.join(round);
    if (!concerned_[id.value] || extent == 1 || doubled_ == kMaxDoubled) return;
    ++doubled_;
    walk(loop.body, round);
    --doubled_;
    s.join(round);
  }

  const ThreadProgram& p_;
  std::vector<std::string> problems_;
  std::set<std::string> reported_;
  std::vector<std::set<uint32_t>> loads_;  // by expression
  std::vector<bool> known_;
  std::vector<bool> concerned_;  // by statement
  int doubled_ = 0;
};

}  // namespace

std::vector<std::string> verify_warpgroups(const ThreadProgram& p) {
  const bool any = std::any_of(p.stmts.begin(), p.stmts.end(),
                               [](const Stmt& s) { return std::holds_alternative<WarpgroupMma>(s.node); });
  return any ? WarpgroupVerifier(p).run() : std::vector<std::string>();
}

}  // namespace tilegen::thread
