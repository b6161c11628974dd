// for z in 0..3 { copy acc -> C[by * 64 :+ 64, z * 64 :+ 64] }   columns z * 64 .. z * 64 + 63: the loop's
//                                                                variable moves the region by at least its
//                                                                extent: every place is stored to once
// for z in 0..3 { copy acc -> C[by * 64 :+ 64, 0 :+ 64] }        refused: z moves nothing
//
// Of one dimension, digits by ascending coefficient: each has to reach beyond the region and all that smaller
// digits add. The dimension then settles its variables; another one may use them as it likes. Two stores
// whose places differ by numbers are one store moved by a variable of two values, which has to be settled as
// well: copy a -> C[k * 128 :+ 64], copy b -> C[k * 128 + 64 :+ 64].
#include "analysis/store_order.h"

#include <algorithm>
#include <set>

#include "arith/prove.h"
#include "check/expr_walk.h"
#include "check/index_form.h"
#include "ir/op_kinds.h"
#include "ops/op.h"

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

constexpr uint64_t kMaxNumber = uint64_t{1} << 31;  // nothing below overflows

uint64_t magnitude(int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); }

class Places {
 public:
  // Of two stores that are `apart`, or of one.
  Places(const ir::Program& p, std::vector<const ir::Loop*> loops, bool apart)
      : p_(p), forms_(p), loops_(std::move(loops)), apart_(apart) {
    for (const ir::Loop* l : loops_)
      if (trips(*l) != 1) open_.insert(l->vars[0]);
  }

  // The variables that the dimension's offset tells are settled. False when it tells none. `apart`: what the
  // other store's offset is beyond it.
  bool settle(ExprId offset, int64_t extent, int64_t apart) {
    struct Digit {
      uint64_t coefficient = 0;
      const ir::Loop* loop = nullptr;  // none: which of two stores
    };
    constexpr uint64_t kMax = kMaxNumber;
    std::vector<Digit> digits;
    if (apart_ && apart != 0) digits.push_back({magnitude(apart), nullptr});
    for (const arith::Term& t : forms_.linear(offset).terms) {
      const ir::ExprNode& n = p_.exprs[t.atom];
      if (!varies(t.atom)) continue;
      const uint64_t coefficient = magnitude(t.coeff);
      if (n.op != ir::ExprOp::var || coefficient > kMax) return false;
      digits.push_back({coefficient, *std::find_if(loops_.begin(), loops_.end(),
                                                   [&](auto* l) { return l->vars[0] == n.var(); })});
    }
    std::ranges::sort(digits, {}, &Digit::coefficient);
    uint64_t reach = static_cast<uint64_t>(extent - 1);
    for (size_t i = 0; i < digits.size(); ++i) {
      if (digits[i].coefficient <= reach) return false;
      if (i + 1 == digits.size()) break;
      const ir::Loop* loop = digits[i].loop;
      const int64_t n = loop ? trips(*loop) : 2;
      if (n < 0 || static_cast<uint64_t>(n) > kMax || (loop && loop->begin && varies(loop->begin)))
        return false;
      reach += digits[i].coefficient * static_cast<uint64_t>(std::max<int64_t>(n, 1) - 1);
      if (reach > kMax) return false;
    }
    for (const Digit& d : digits)
      if (d.loop)
        open_.erase(d.loop->vars[0]);
      else
        apart_ = false;
    return !digits.empty();
  }

  bool settled() const { return open_.empty() && !apart_; }
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
  bool apart_;  // not settled yet
};

// No place is stored to twice; `apart`, of each dimension, moves the region of another store.
void settle_all(Places& places, const std::vector<ExprId>& offsets, const std::vector<int64_t>& extents,
                const std::vector<int64_t>& apart) {
  for (bool progress = true; progress && !places.settled();) {
    progress = false;
    for (size_t d = 0; d < offsets.size(); ++d) progress |= places.settle(offsets[d], extents[d], apart[d]);
  }
}

// The regions of two copies to one tensor, in the same loops, that never have an element in common.
bool disjoint(const ir::Program& p, const std::vector<const ir::Loop*>& loops, const ir::Region& a,
              const ir::Region& b) {
  check::IndexForms forms(p);
  std::vector<int64_t> extents, apart;
  for (size_t d = 0; d < a.offsets.size(); ++d) {
    const arith::Sum at = forms.linear(a.offsets[d]), other = forms.linear(b.offsets[d]);
    if (at.terms != other.terms || magnitude(at.constant) > kMaxNumber ||
        magnitude(other.constant) > kMaxNumber)
      return false;
    apart.push_back(other.constant - at.constant);
    extents.push_back(std::max(a.extents[d], b.extents[d]));
  }
  Places places(p, loops, true);
  settle_all(places, a.offsets, extents, apart);
  return places.settled();
}

std::string stores_again(const ir::Program& p, std::vector<const ir::Loop*> loops, const ir::Region& to) {
  Places places(p, std::move(loops), false);
  settle_all(places, to.offsets, to.extents, std::vector<int64_t>(to.offsets.size()));
  if (places.settled()) return "";
  return "iterations of '" + places.open_name() + "' may store to one place of tensor '" +
         p.buffer(to.buffer).name + "'";
}

std::optional<ir::AtomicKind> atomic_kind(const ir::Program& p, ir::StmtId s) {
  const auto* op = p.as<ir::TileOp>(s);
  return op ? ops::layout_rule(*op).atomic : std::nullopt;
}

// The tensor's region that a copy stores to.
const ir::Region* copied_to(const ir::Program& p, ir::StmtId s) {
  const auto* op = p.as<ir::TileOp>(s);
  return op && op->kind == ir::OpKind::copy ? &op->operands[1] : nullptr;
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
  const auto atomic = atomic_kind(p, store.stmt);
  for (OpId i : ops.ops.ids())
    for (const OpAccess& a : ops.ops[i].accesses) {
      if (i == op || a.buffer != to.buffer) continue;
      if (atomic && atomic_kind(p, ops.ops[i].stmt) == atomic) continue;
      if (loops.empty() && exclusive(p, kernel, ops.ops[i].stmt, store.stmt)) continue;
      const ir::Region* other = copied_to(p, ops.ops[i].stmt);
      if (other && !a.read && loops_around(p, kernel, ops.ops[i].stmt) == loops &&
          disjoint(p, loops, to, *other))
        continue;
      if (a.write || i > op || !loops.empty())
        return ops.ops[i].path + " accesses tensor '" + p.buffer(to.buffer).name + "' too";
    }
  if (std::string why = scalar_refusal(p, kernel, to.buffer); !why.empty()) return why;
  return atomic ? "" : stores_again(p, loops, to);
}

}  // namespace tilegen::analysis
