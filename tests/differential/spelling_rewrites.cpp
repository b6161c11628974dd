#include "spelling_rewrites.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/loads.h"
#include "ir/annotations.h"
#include "ir/store_parts.h"

namespace tilegen::differential {

using ir::BufferId;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::Loop;
using ir::Program;
using ir::StmtId;
using ir::Store;
using ir::VarId;

// One whose threads the program fixes is written in one way.
const ir::Loop* parallel_loop(const Program& p, StmtId s) {
  const auto* loop = p.as<Loop>(s);
  return loop && loop->kind == ir::LoopKind::parallel && !ir::fixes_threads(p.stmt(s)) ? loop : nullptr;
}

// Replaces expressions of statements; made(e) gives what stands for e.
static void replace(Program& p, StmtId s, const std::function<ExprId(ExprId)>& made) {
  if (const auto* of = p.as<Store>(s)) {
    Store store = *of;
    ir::visit_exprs(store, [&](ExprId& e) { e = made(e); });
    p.stmts[s.value].node = std::move(store);
  } else if (const auto* branch = p.as<ir::Branch>(s)) {
    const ExprId condition = made(branch->condition);
    std::get<ir::Branch>(p.stmts[s.value].node).condition = condition;
  }
}

void replace_inside(Program& p, const ir::Block& block, const std::function<ExprId(ExprId)>& made) {
  std::vector<StmtId> list;
  ir::for_each_statement(p, block, [&](StmtId s, int) { list.push_back(s); });
  for (StmtId s : list) replace(p, s, made);
}

namespace {

// Calls visit(block) for every block of statements outside parallel loops, inner ones last.
void for_each_block(Program& p, ir::Block& block, const std::function<void(ir::Block&)>& visit) {
  visit(block);
  for (size_t i = 0; i < block.size(); ++i) {
    if (auto* loop = std::get_if<Loop>(&p.stmts[block[i].value].node);
        loop && loop->kind != ir::LoopKind::parallel) {
      ir::Block body = loop->body;  // statements may be added meanwhile
      for_each_block(p, body, visit);
      std::get<Loop>(p.stmts[block[i].value].node).body = std::move(body);
    } else if (std::holds_alternative<ir::Branch>(p.stmts[block[i].value].node)) {
      ir::Branch branch = std::get<ir::Branch>(p.stmts[block[i].value].node);
      for_each_block(p, branch.then_body, visit);
      for_each_block(p, branch.else_body, visit);
      p.stmts[block[i].value].node = std::move(branch);
    }
  }
}

void for_each_block(Program& p, const std::function<void(ir::Block&, int kernel)>& visit) {
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    ir::Block body = p.kernels[k].body;
    for_each_block(p, body, [&](ir::Block& b) { visit(b, static_cast<int>(k)); });
    p.kernels[k].body = std::move(body);
  }
}

class Substitution : public ir::ExprRewriter {
 public:
  Substitution(Program& p, std::map<VarId, ExprId> vars)
      : ExprRewriter(p.exprs, p.exprs), vars_(std::move(vars)) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto it = vars_.find(n.var());
    return it == vars_.end() ? to_->var(n.var(), n.type) : it->second;
  }

 private:
  const std::map<VarId, ExprId> vars_;
};

VarId fresh_var(Program& p, VarId like) {
  ir::Var v = p.var(like);
  v.name += "_" + std::to_string(p.vars.size());
  p.vars.push_back(std::move(v));
  return VarId(p.vars.size() - 1);
}

BufferId fresh_buffer(Program& p, int kernel, ir::MemScope scope, ir::DType type,
                      const std::vector<ExprId>& shape) {
  ir::Buffer b;
  b.name = "tmp_" + std::to_string(p.buffers.size());
  b.scope = scope;
  b.type = type;
  b.shape = shape;
  b.kernel = kernel;
  p.buffers.push_back(std::move(b));
  return BufferId(p.buffers.size() - 1);
}

StmtId add(Program& p, decltype(ir::Stmt::node) node, StmtId at) {
  p.stmts.push_back({std::move(node), p.stmt(at).location});
  return StmtId(p.stmts.size() - 1);
}

// ---- names ----

bool rename_all(Program& p) {
  p.name += "_zz";
  for (ir::Var& v : p.vars) v.name += "_zz";
  for (ir::Buffer& b : p.buffers) b.name += "_zz";
  for (ir::Kernel& k : p.kernels) k.name += "_zz";
  return true;
}

// ---- loops ----

// parallel i { a; b } -> parallel i { a } parallel i' { b }
bool split(Program& p) {
  bool any = false;
  for_each_block(p, [&](ir::Block& block, int) {
    for (size_t i = 0; i < block.size(); ++i) {
      const Loop* at = parallel_loop(p, block[i]);
      if (!at || at->body.size() < 2) continue;
      any = true;
      Loop rest = *at;
      rest.body.erase(rest.body.begin());
      std::get<Loop>(p.stmts[block[i].value].node).body.resize(1);
      std::map<VarId, ExprId> vars;
      for (VarId& v : rest.vars) {
        const VarId own = fresh_var(p, v);
        vars[v] = p.exprs.var(own);
        v = own;
      }
      Substitution by(p, vars);
      replace_inside(p, rest.body, [&](ExprId e) { return by.rewrite(e); });
      block.insert(block.begin() + static_cast<long>(i) + 1, add(p, std::move(rest), block[i]));
    }
  });
  return any;
}

// Elements that the loop reads and writes, by buffer.
struct Elements {
  std::map<BufferId, std::set<std::vector<ExprId>>> read, written;
};

Elements elements_of(const Program& p, const ir::Block& body) {
  Elements elements;
  const auto load = [&](ExprId root) {
    analysis::any_load(p.exprs, root, [&](ExprId id, const ExprNode& n) {
      const auto indices = p.exprs.indices(id);
      elements.read[n.object].emplace(indices.begin(), indices.end());
      return false;
    });
  };
  ir::for_each_statement(p, body, [&](StmtId s, int) {
    if (const auto* branch = p.as<ir::Branch>(s)) load(branch->condition);
    const auto* store = p.as<Store>(s);
    if (!store) return;
    ir::visit_exprs(*store, load);
    ir::visit_written(*store,
                      [&](BufferId b, const std::vector<ExprId>& at) { elements.written[b].insert(at); });
  });
  return elements;
}

// What the one writes the other touches at the same points only.
bool point_by_point(const Elements& a, const Elements& b) {
  for (const auto& [buffer, written] : a.written)
    for (const auto* other : {&b.read, &b.written})
      if (const auto it = other->find(buffer);
          it != other->end() && (written.size() != 1 || it->second != written))
        return false;
  return true;
}

// parallel i { a } parallel k { b } -> parallel i { a; b }
bool join(Program& p) {
  bool any = false;
  for_each_block(p, [&](ir::Block& block, int) {
    for (size_t i = 0; i + 1 < block.size();) {
      const Loop *first = parallel_loop(p, block[i]), *second = parallel_loop(p, block[i + 1]);
      if (!first || !second || first->extents != second->extents) {
        ++i;
        continue;
      }
      Program trial = p;
      std::map<VarId, ExprId> vars;
      for (size_t v = 0; v < first->vars.size(); ++v) vars[second->vars[v]] = trial.exprs.var(first->vars[v]);
      Substitution by(trial, vars);
      const ir::Block more = second->body;
      replace_inside(trial, more, [&](ExprId e) { return by.rewrite(e); });
      const Elements a = elements_of(trial, first->body), b = elements_of(trial, more);
      if (!point_by_point(a, b) || !point_by_point(b, a)) {
        ++i;
        continue;
      }
      any = true;
      p = std::move(trial);
      ir::Block& body = std::get<Loop>(p.stmts[block[i].value].node).body;
      body.insert(body.end(), more.begin(), more.end());
      block.erase(block.begin() + static_cast<long>(i) + 1);
    }
  });
  return any;
}

// parallel i, j in M, N -> parallel j, i in N, M
bool swap_variables(Program& p) {
  bool any = false;
  for (ir::Stmt& s : p.stmts) {
    auto* loop = std::get_if<Loop>(&s.node);
    if (!loop || loop->kind != ir::LoopKind::parallel || loop->vars.size() < 2 || ir::fixes_threads(s))
      continue;
    std::reverse(loop->vars.begin(), loop->vars.end());
    std::reverse(loop->extents.begin(), loop->extents.end());
    any = true;
  }
  return any;
}

// ---- temporaries ----

// The first operand of what the store computes that is computed itself.
ExprId computed_part(const Program& p, ExprId value) {
  const ExprNode n = p.exprs[value];
  for (ExprId part : {n.a, n.b, n.c}) {
    if (!part.valid() || n.op == ExprOp::load) continue;
    const ExprNode inner = p.exprs[part];
    if (ir::expr_arity(inner.op) > 0 && inner.op != ExprOp::load && ir::is_float(inner.type) &&
        inner.type != ir::DType::e4m3 && inner.type != ir::DType::e5m2)
      return part;
  }
  return ExprId();
}

// An expression with `part` as `by`.
ExprId with(Program& p, ExprId e, ExprId part, ExprId by) {
  std::map<ExprId, ExprId> memo;
  const std::function<ExprId(ExprId)> visit = [&](ExprId id) -> ExprId {
    if (id == part) return by;
    if (const auto it = memo.find(id); it != memo.end()) return it->second;
    const ExprNode n = p.exprs[id];
    ExprId made = id;
    if (ir::expr_arity(n.op) > 0 && n.op != ExprOp::load) {
      const ExprId a = visit(n.a), b = n.b.valid() ? visit(n.b) : n.b, c = n.c.valid() ? visit(n.c) : n.c;
      made = p.exprs.operation(n, a, b, c);
    }
    return memo[id] = made;
  };
  return visit(e);
}

// parallel i { x[i] = f(g(i)) } -> parallel i { t[i] = g(i); x[i] = f(t[i]) }, or in loops of their own; or
// parallel i, j { x[i, j] = f(i, j) } -> { t[j, i] = f(i, j) } and { x[i, j] = t[j, i] }
enum class Temporaries { beside, in_own_loops, transposed };

bool add_temporaries(Program& p, Temporaries kind) {
  const bool own_loops = kind != Temporaries::beside, transposed = kind == Temporaries::transposed;
  bool any = false;
  for_each_block(p, [&](ir::Block& block, int kernel) {
    for (size_t i = 0; i < block.size(); ++i) {
      const Loop* at = parallel_loop(p, block[i]);
      if (!at) continue;
      const Loop loop = *at;
      if (own_loops && loop.body.size() != 1) continue;
      const auto* store = p.as<Store>(loop.body[0]);
      if (!store || (transposed && loop.vars.size() != 2)) continue;
      const ExprId part = transposed ? store->value : computed_part(p, store->value);
      if (!part) continue;
      std::vector<ExprId> point;
      for (VarId v : loop.vars) point.push_back(p.exprs.var(v));
      const ir::DType type = p.exprs.type(part);
      std::vector<ExprId> shape = loop.extents;
      if (transposed) std::reverse(point.begin(), point.end()), std::reverse(shape.begin(), shape.end());
      const BufferId tmp = fresh_buffer(p, kernel, ir::MemScope::fragment, type, shape);
      Store changed = *store;
      changed.value = with(p, store->value, part, p.exprs.load(tmp, type, point));
      p.stmts[loop.body[0].value].node = changed;
      const StmtId made = add(p, Store{tmp, point, part}, loop.body[0]);
      any = true;
      if (!own_loops) {
        ir::Block& body = std::get<Loop>(p.stmts[block[i].value].node).body;
        body.insert(body.begin(), made);
        continue;
      }
      Loop first = loop;
      first.body = {made};
      std::map<VarId, ExprId> vars;
      for (VarId& v : first.vars) {
        const VarId own = fresh_var(p, v);
        vars[v] = p.exprs.var(own);
        v = own;
      }
      Substitution by(p, vars);
      replace_inside(p, first.body, [&](ExprId e) { return by.rewrite(e); });
      block.insert(block.begin() + static_cast<long>(i), add(p, std::move(first), block[i]));
      ++i;
    }
  });
  return any;
}

// parallel i { .. s * 2 .. } -> h[0] = s * 2; parallel i { .. h[0] .. }
bool hoist_scalars(Program& p) {
  bool any = false;
  for_each_block(p, [&](ir::Block& block, int kernel) {
    for (size_t i = 0; i < block.size(); ++i) {
      const Loop* loop = parallel_loop(p, block[i]);
      if (!loop) continue;
      std::set<ExprId> seen;
      ExprId uniform;
      const auto is_uniform = [&](ExprId root, const auto& self) -> bool {
        const ExprNode n = p.exprs[root];
        if (n.op == ExprOp::load) return false;
        if (n.op == ExprOp::var) return std::count(loop->vars.begin(), loop->vars.end(), n.var()) == 0;
        for (ExprId part : {n.a, n.b, n.c})
          if (part.valid() && !self(part, self)) return false;
        return true;
      };
      const auto find = [&](ExprId root, const auto& self) -> void {
        if (uniform || !seen.insert(root).second) return;
        const ExprNode n = p.exprs[root];
        if (n.op == ExprOp::load) return;
        if (ir::expr_arity(n.op) > 0 && n.type == ir::DType::f32 && is_uniform(root, is_uniform))
          return void(uniform = root);
        for (ExprId part : {n.a, n.b, n.c})
          if (part.valid()) self(part, self);
      };
      std::vector<StmtId> stores;
      ir::for_each_statement(p, loop->body, [&](StmtId s, int) {
        if (p.as<Store>(s)) stores.push_back(s);
      });
      for (StmtId s : stores) find(p.as<Store>(s)->value, find);
      if (!uniform) continue;
      any = true;
      const BufferId tmp =
          fresh_buffer(p, kernel, ir::MemScope::local, ir::DType::f32, {p.exprs.const_int(1)});
      const std::vector<ExprId> zero = {p.exprs.const_int(0)};
      const ExprId hoisted = p.exprs.load(tmp, ir::DType::f32, zero);
      for (StmtId s : stores) {
        Store store = *p.as<Store>(s);
        store.value = with(p, store.value, uniform, hoisted);
        p.stmts[s.value].node = std::move(store);
      }
      block.insert(block.begin() + static_cast<long>(i), add(p, Store{tmp, zero, uniform}, block[i]));
      ++i;
    }
  });
  return any;
}

}  // namespace

std::span<const Rewrite> spelling_rewrites() {
  static const Rewrite rewrites[] = {
      {"renamed", rename_all},
      {"split", split},
      {"joined", join},
      {"temporaries", [](Program& p) { return add_temporaries(p, Temporaries::beside); }},
      {"temporaries in loops of their own",
       [](Program& p) { return add_temporaries(p, Temporaries::in_own_loops); }},
      {"transposed twice", [](Program& p) { return add_temporaries(p, Temporaries::transposed); }},
      {"hoisted scalars", hoist_scalars},
      {"commuted", commute},
      {"extremes by select", choose_extremes},
      {"swapped variables", swap_variables},
  };
  return rewrites;
}

}  // namespace tilegen::differential
