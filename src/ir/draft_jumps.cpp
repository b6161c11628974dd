#include "ir/draft_jumps.h"

#include <algorithm>
#include <set>
#include "ir/expr_nodes.h"

namespace tilegen::ir {
namespace {

class JumpResolver {
 public:
  JumpResolver(Program& p, Draft& draft) : p_(p), draft_(draft) {}

  void run() {
    for (kernel_ = 0; kernel_ < p_.kernels.size(); ++kernel_) {
      if (!needs_work(p_.kernels[kernel_].body)) continue;
      const size_t live = make_flag("running");
      Around around;
      around.rest = live;
      around.live = live;
      Block body;
      if (holds_jump(p_.kernels[kernel_].body, Jump::leave_kernel)) set(live, constant(true), body);
      Block rest;
      block(p_.kernels[kernel_].body, around, rest);
      body.insert(body.end(), rest.begin(), rest.end());
      write_sets(body);
      p_.kernels[kernel_].body = std::move(body);
    }
  }

 private:
  using Jump = Draft::Jump;
  enum class Ends : uint8_t { never, sometimes, always };  // by a jump

  // True while nothing has jumped.
  struct Flag {
    const char* name = "";
    bool in_parallel = false;
    bool read = false;
    BufferId tile;  // made when it is read or decides a loop
    VarId var;
  };
  static constexpr size_t kNoFlag = SIZE_MAX;
  // What a jump in a block leaves.
  struct Around {
    size_t rest = kNoFlag;        // decides what follows in the block
    std::vector<size_t> loops{};  // flags of the loops around the innermost
    size_t go = kNoFlag;          // of the innermost loop
    size_t live = kNoFlag;
    bool in_parallel = false;
  };

  bool holds_jump(const Block& block, std::optional<Jump> kind = {}, bool through_loops = true) const {
    return std::any_of(block.begin(), block.end(), [&](StmtId s) {
      if (const auto it = draft_.jumps.find(s); it != draft_.jumps.end()) return !kind || it->second == *kind;
      if (const auto* loop = p_.as<Loop>(s))
        return through_loops && holds_jump(loop->body, kind, through_loops);
      const auto* branch = p_.as<Branch>(s);
      return branch && (holds_jump(branch->then_body, kind, through_loops) ||
                        holds_jump(branch->else_body, kind, through_loops));
    });
  }
  bool needs_work(const Block& block) const {
    if (holds_jump(block)) return true;
    bool found = false;
    for_each_statement(p_, block, [&](StmtId s, int) {
      const auto* loop = p_.as<Loop>(s);
      found = found || (loop && loop->condition.valid());
    });
    return found;
  }

  size_t make_flag(const char* name, bool in_parallel = false) {
    flags_.push_back({name, in_parallel, false, {}, {}});
    return flags_.size() - 1;
  }
  void make(Flag& f) {
    if (f.in_parallel && !f.var.valid()) {
      Var v;
      v.name = f.name;
      v.type = DType::boolean;
      v.location = location_;
      f.var = VarId(p_.vars.size());
      p_.vars.push_back(std::move(v));
      draft_.temporaries[f.var] = true;
    }
    if (!f.in_parallel && !f.tile.valid()) {
      Buffer b;
      b.name = free_name(f.name);
      b.scope = MemScope::local;
      b.type = DType::boolean;
      b.shape = {p_.exprs.const_int(1)};
      b.kernel = static_cast<int>(kernel_);
      b.location = location_;
      f.tile = BufferId(p_.buffers.size());
      p_.buffers.push_back(std::move(b));
    }
  }
  ExprId constant(bool value) { return p_.exprs.const_int(value, DType::boolean); }
  ExprId value(size_t flag) {
    Flag& f = flags_[flag];
    make(f);
    f.read = true;
    if (f.in_parallel) return p_.exprs.var(f.var, DType::boolean);
    const ExprId zero = p_.exprs.const_int(0);
    return p_.exprs.load(f.tile, DType::boolean, std::span(&zero, 1));
  }
  // A statement of what the flag is, once it is known which flags are asked.
  void set(size_t flag, ExprId to, Block& out) {
    const StmtId s = add(Branch{});
    sets_[s] = {flag, to};
    out.push_back(s);
  }

  StmtId add(std::variant<Loop, Branch, Store, TileOp> node) {
    p_.stmts.push_back({std::move(node), location_});
    return StmtId(p_.stmts.size() - 1);
  }

  // Copies the block to `out` with its jumps resolved.
  Ends block(Block statements, const Around& around, Block& out) {
    for (size_t i = 0; i < statements.size(); ++i) {
      const StmtId s = statements[i];
      location_ = p_.stmt(s).location;
      if (const auto it = draft_.jumps.find(s); it != draft_.jumps.end()) {
        jump(it->second, around, out);
        return Ends::always;
      }
      const Block rest(statements.begin() + static_cast<ptrdiff_t>(i) + 1, statements.end());
      Ends ends = Ends::never;
      bool done = false;
      if (p_.as<Branch>(s) && !draft_.assignments.contains(s))
        ends = branch(s, rest, around, out, done);
      else if (p_.as<Loop>(s))
        ends = loop(s, around, out);
      else
        out.push_back(s);
      if (done || ends == Ends::always) return ends;
      if (ends == Ends::never || rest.empty()) {
        if (ends != Ends::never) return ends;
        continue;
      }
      const StmtId guarded = add(Branch{value(around.rest), {}, {}});
      out.push_back(guarded);
      Block body;
      block(rest, around, body);
      std::get<Branch>(p_.stmts[guarded.value].node).then_body = std::move(body);
      return Ends::sometimes;
    }
    return Ends::never;
  }

  void jump(Jump kind, const Around& around, Block& out) {
    set(around.rest, constant(false), out);
    if (kind != Jump::next_iteration && around.go != kNoFlag) set(around.go, constant(false), out);
    if (kind != Jump::leave_kernel) return;
    for (size_t flag : around.loops) set(flag, constant(false), out);
    if (around.live != around.rest) set(around.live, constant(false), out);
  }

  // `done`: what follows stands in it.
  Ends branch(StmtId s, const Block& rest, const Around& around, Block& out, bool& done) {
    const Branch written = *p_.as<Branch>(s);
    out.push_back(s);
    if (!holds_jump(written.then_body) && !holds_jump(written.else_body)) {
      // Loops inside may have conditions.
      Block sides[2];
      block(written.then_body, around, sides[0]);
      block(written.else_body, around, sides[1]);
      fill(s, sides);
      return Ends::never;
    }
    Block sides[2];
    Ends ends[2] = {block(written.then_body, around, sides[0]), block(written.else_body, around, sides[1])};
    const bool one_jumps = (ends[0] == Ends::always && ends[1] == Ends::never) ||
                           (ends[1] == Ends::always && ends[0] == Ends::never);
    if (one_jumps && !rest.empty()) {
      const size_t other = ends[0] == Ends::always ? 1 : 0;
      ends[other] = block(rest, around, sides[other]);
      done = true;
    }
    fill(s, sides);
    if (ends[0] == ends[1]) return ends[0];
    return Ends::sometimes;
  }
  void fill(StmtId s, Block (&sides)[2]) {
    auto& node = std::get<Branch>(p_.stmts[s.value].node);
    node.then_body = std::move(sides[0]);
    node.else_body = std::move(sides[1]);
  }

  Ends loop(StmtId s, const Around& outer, Block& out) {
    const Block written = p_.as<Loop>(s)->body;
    const ExprId condition = p_.as<Loop>(s)->condition;
    const bool parallel = p_.as<Loop>(s)->kind == LoopKind::parallel;
    const bool returns = holds_jump(written, Jump::leave_kernel);
    const bool leaves = returns || holds_jump(written, Jump::break_loop, false);
    const bool asks =
        condition.valid() && (outer.in_parallel || parallel || !is_plain_condition(p_, draft_, condition));
    Around around = outer;
    around.in_parallel = outer.in_parallel || parallel;
    if (!parallel) {
      if (outer.go != kNoFlag) {
        around.loops.push_back(outer.go);
        around.loops.push_back(outer.rest);
      }
      around.rest = make_flag("here", around.in_parallel);
      around.go = leaves || asks ? make_flag("going", around.in_parallel) : kNoFlag;
    }
    const SourceLocation here = location_;
    Block body;
    if (!parallel && holds_jump(written)) set(around.rest, constant(true), body);
    block(written, around, body);
    location_ = here;
    if (around.go != kNoFlag && !parallel) {
      set(around.go, asks ? condition : constant(true), out);
      if (asks) set(around.go, leaves ? p_.exprs.logical_and(value(around.go), condition) : condition, body);
      if (around.in_parallel) {
        if (asks) {
          value(around.go);
          draft_.walks[s] = flags_[around.go].var;
          std::get<Loop>(p_.stmts[s.value].node).condition = ExprId();
        }
        const StmtId guarded = add(Branch{value(around.go), {}, {}});
        std::get<Branch>(p_.stmts[guarded.value].node).then_body = std::move(body);
        body = {guarded};
      } else {
        const ExprId go = value(around.go);
        auto& node = std::get<Loop>(p_.stmts[s.value].node);
        node.condition = asks || !condition.valid() ? go : p_.exprs.logical_and(condition, go);
      }
    }
    std::get<Loop>(p_.stmts[s.value].node).body = std::move(body);
    out.push_back(s);
    return returns ? Ends::sometimes : Ends::never;
  }

  // Flags that nothing asks are not kept.
  void write_sets(Block& block) {
    std::erase_if(block, [&](StmtId s) {
      const auto it = sets_.find(s);
      return it != sets_.end() && !flags_[it->second.flag].read;
    });
    for (StmtId s : block) {
      if (const auto it = sets_.find(s); it != sets_.end()) {
        const Flag& f = flags_[it->second.flag];
        if (f.in_parallel)
          draft_.assignments[s] = {f.var, it->second.to};
        else
          p_.stmts[s.value].node = Store{f.tile, {p_.exprs.const_int(0)}, it->second.to};
        continue;
      }
      auto& node = p_.stmts[s.value].node;
      if (auto* l = std::get_if<Loop>(&node)) {
        Block body = std::move(l->body);
        write_sets(body);
        std::get<Loop>(p_.stmts[s.value].node).body = std::move(body);
      } else if (auto* b = std::get_if<Branch>(&node)) {
        Block sides[2] = {std::move(b->then_body), std::move(b->else_body)};
        write_sets(sides[0]);
        write_sets(sides[1]);
        fill(s, sides);
      }
    }
  }

  std::string free_name(const std::string& wanted) const {
    std::set<std::string> taken;
    for (const Buffer& b : p_.buffers) taken.insert(b.name);
    for (const Var& v : p_.vars) taken.insert(v.name);
    for (const Kernel& k : p_.kernels) taken.insert(k.name);
    for (const CompileParam& c : p_.compile_params) taken.insert(c.name);
    std::string name = wanted;
    for (size_t n = 1; taken.contains(name); ++n) name = wanted + "_" + std::to_string(n);
    return name;
  }

  Program& p_;
  Draft& draft_;
  size_t kernel_ = 0;
  SourceLocation location_;
  std::vector<Flag> flags_;
  struct Set {
    size_t flag = 0;
    ExprId to;
  };
  std::map<StmtId, Set> sets_;
};

}  // namespace

bool is_plain_condition(const Program& p, const Draft& draft, ExprId condition) {
  ExprNodes nodes(p.exprs, {condition});
  while (const ExprId e = nodes.next()) {
    const ExprNode& n = p.exprs[e];
    if (n.op == ExprOp::var && draft.temporaries.contains(n.var())) return false;
    if (n.op == ExprOp::load && p.buffer(n.object).scope != MemScope::local) return false;
  }
  return true;
}

std::string jump_refusal(const Program& p, std::span<const StmtId> around, Draft::Jump kind) {
  const bool all = kind == Draft::Jump::leave_kernel;
  const bool in_parallel = std::any_of(around.begin(), around.end(), [&](StmtId s) {
    const auto* loop = p.as<Loop>(s);
    return loop && loop->kind == LoopKind::parallel;
  });
  if (all && in_parallel) return "stands inside a parallel loop";
  for (size_t i = around.size(); i-- > 0;) {
    const auto* loop = p.as<Loop>(around[i]);
    if (!loop) continue;
    const bool can = loop->kind == LoopKind::serial || (in_parallel && loop->kind == LoopKind::unroll);
    if (!can) return std::string("leaves a loop of kind ") + loop_kind_name(loop->kind);
    if (!all) return "";
  }
  return all ? "" : "stands in no loop";
}

const char* jump_hint(Draft::Jump kind) {
  return kind == Draft::Jump::leave_kernel
             ? "leave serial loops alone; elsewhere guard what follows with an if"
             : "put it into a serial loop, or guard what follows with an if";
}

Draft resolve_jumps(Program& p, Draft draft) {
  if (!draft.jumps.empty() || draft.conditions) JumpResolver(p, draft).run();
  return draft;
}

}  // namespace tilegen::ir
