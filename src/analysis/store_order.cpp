// for z in 0..3 { copy acc -> C[by * 64 :+ 64, z * 64 :+ 64] }   columns z * 64 .. z * 64 + 63: the loop's
//                                                                variable moves the region by at least its
//                                                                extent: every place is stored to once
// for z in 0..3 { copy acc -> C[by * 64 :+ 64, 0 :+ 64] }        refused: z moves nothing
//
// Of one dimension, digits by ascending coefficient: each has to reach beyond the region and all that smaller
// digits add. The dimension then settles its variables; another one may use them as it likes.
#include "analysis/store_order.h"

#include <algorithm>
#include <set>

#include "arith/prove.h"
#include "check/expr_walk.h"
#include "check/index_form.h"

namespace tilegen::analysis {

namespace {

using ir::ExprId;
using ir::VarId;

bool inside(const ir::Program& p, const ir::Block& block, ir::StmtId s) {
  bool found = false;
  ir::for_each_statement(p, block, [&](ir::StmtId id, int) { found |= id == s; });
  return found;
}

std::vector<const ir::Loop*> loops_around(const ir::Program& p, const ir::Kernel& kernel, ir::StmtId s) {
  std::vector<const ir::Loop*> loops;
  ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
    const auto* loop = p.as<ir::Loop>(id);
    if (loop && loop->kind != ir::LoopKind::parallel && inside(p, loop->body, s)) loops.push_back(loop);
  });
  return loops;
}

// Of two sides of a branch a block takes one.
bool exclusive(const ir::Program& p, const ir::Kernel& kernel, ir::StmtId a, ir::StmtId b) {
  bool found = false;
  ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
    const auto* branch = p.as<ir::Branch>(id);
    if (!branch) return;
    found |= inside(p, branch->then_body, a) && inside(p, branch->else_body, b);
    found |= inside(p, branch->else_body, a) && inside(p, branch->then_body, b);
  });
  return found;
}

class Places {
 public:
  Places(const ir::Program& p, std::vector<const ir::Loop*> loops)
      : p_(p), forms_(p), loops_(std::move(loops)) {
    for (const ir::Loop* l : loops_)
      if (trips(*l) != 1) open_.insert(l->vars[0]);
  }

  // The variables that the dimension's offset tells are settled. False when it tells none.
  bool settle(ExprId offset, int64_t extent) {
    struct Digit {
      uint64_t coefficient = 0;
      const ir::Loop* loop = nullptr;
    };
    constexpr uint64_t kMax = uint64_t{1} << 31;  // nothing below overflows
    std::vector<Digit> digits;
    for (const arith::Term& t : forms_.linear(offset).terms) {
      const ir::ExprNode& n = p_.exprs[t.atom];
      if (!varies(t.atom)) continue;
      const uint64_t coefficient =
          t.coeff < 0 ? 0 - static_cast<uint64_t>(t.coeff) : static_cast<uint64_t>(t.coeff);
      if (n.op != ir::ExprOp::var || coefficient > kMax) return false;
      digits.push_back({coefficient, *std::find_if(loops_.begin(), loops_.end(),
                                                   [&](auto* l) { return l->vars[0] == n.var(); })});
    }
    std::ranges::sort(digits, {}, &Digit::coefficient);
    uint64_t reach = static_cast<uint64_t>(extent - 1);
    for (size_t i = 0; i < digits.size(); ++i) {
      if (digits[i].coefficient <= reach) return false;
      if (i + 1 == digits.size()) break;
      const int64_t n = trips(*digits[i].loop);
      if (n < 0 || static_cast<uint64_t>(n) > kMax ||
          (digits[i].loop->begin && varies(digits[i].loop->begin)))
        return false;
      reach += digits[i].coefficient * static_cast<uint64_t>(std::max<int64_t>(n, 1) - 1);
      if (reach > kMax) return false;
    }
    for (const Digit& d : digits) open_.erase(d.loop->vars[0]);
    return !digits.empty();
  }

  bool settled() const { return open_.empty(); }
  const std::string& open_name() const { return p_.var(*open_.begin()).name; }

 private:
  bool varies(ExprId e) const {
    return std::any_of(open_.begin(), open_.end(),
                       [&](VarId v) { return arith::depends_on(p_.exprs, e, v); });
  }
  int64_t trips(const ir::Loop& l) const {  // -1: not a constant
    int64_t n = -1;
    return p_.exprs.is_const_int(l.extents[0], &n) ? n : -1;
  }

  const ir::Program& p_;
  check::IndexForms forms_;
  const std::vector<const ir::Loop*> loops_;
  std::set<VarId> open_;
};

std::string stores_again(const ir::Program& p, std::vector<const ir::Loop*> loops, const ir::Region& to) {
  Places places(p, std::move(loops));
  for (bool progress = true; progress && !places.settled();) {
    progress = false;
    for (size_t d = 0; d < to.offsets.size(); ++d) progress |= places.settle(to.offsets[d], to.extents[d]);
  }
  if (places.settled()) return "";
  return "iterations of '" + places.open_name() + "' may store to one place of tensor '" +
         p.buffer(to.buffer).name + "'";
}

// Conditions, bounds of loops and places that the tensor tells.
std::string scalar_refusal(const ir::Program& p, const ir::Kernel& kernel, ir::BufferId tensor) {
  check::ExprWalk walk(p);
  bool found = false;
  ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
    if (p.as<ir::Store>(id)) return;
    check::for_each_root(p, id, [&](ExprId root) {
      walk.visit(root, [&](ExprId, const ir::ExprNode& n) {
        found |= n.op == ir::ExprOp::load && n.object == tensor;
      });
    });
  });
  return found ? "a condition, a bound or a place is read from tensor '" + p.buffer(tensor).name + "'" : "";
}

}  // namespace

std::string order_refusal(const ir::Program& p, const ir::Kernel& kernel, const KernelOps& ops, OpId op) {
  const KernelOp& store = ops.ops[op];
  const ir::Region& to = p.as<ir::TileOp>(store.stmt)->operands[1];
  const std::vector<const ir::Loop*> loops = loops_around(p, kernel, store.stmt);
  for (OpId i : ops.ops.ids())
    for (const OpAccess& a : ops.ops[i].accesses) {
      if (i == op || a.buffer != to.buffer) continue;
      if (loops.empty() && exclusive(p, kernel, ops.ops[i].stmt, store.stmt)) continue;
      if (a.write || i > op || !loops.empty())
        return ops.ops[i].path + " accesses tensor '" + p.buffer(to.buffer).name + "' too";
    }
  if (std::string why = scalar_refusal(p, kernel, to.buffer); !why.empty()) return why;
  return stores_again(p, loops, to);
}

}  // namespace tilegen::analysis
