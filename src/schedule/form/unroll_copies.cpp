#include "schedule/form/unroll_copies.h"

#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/op.h"
#include "schedule/form/inner_blocks.h"

namespace tilegen::schedule {

using ir::ExprId;
using ir::StmtId;

namespace {

constexpr int64_t kMaxTrips = 16;  // a tile has no more parts: each is a copy of its own

class AtNumber : public ir::ExprRewriter {
 public:
  AtNumber(ir::ExprPool& pool, ir::VarId var, int64_t number)
      : ExprRewriter(pool, pool), var_(var), number_(number) {}

 protected:
  ExprId rewrite_var(const ir::ExprNode& n) override {
    return n.var() == var_ ? to_->const_int(number_, n.type) : to_->var(n.var(), n.type);
  }

 private:
  const ir::VarId var_;
  const int64_t number_;
};

class CopyUnroller {
 public:
  explicit CopyUnroller(ir::Program& p) : p_(p), ctx_(p.exprs) {}

  std::vector<UnrolledCopy> run(bool& changed) {
    for (ir::Kernel& k : p_.kernels) {
      ir::Block body = k.body;
      block(body);
      k.body = std::move(body);
    }
    changed = changed_;
    return std::move(made_);
  }

 private:
  void block(ir::Block& b) {
    ir::Block out;
    for (StmtId s : b) {
      change_inner_blocks(p_, s, [&](ir::Block& inner) { block(inner); });
      if (const auto* loop = p_.as<ir::Loop>(s); loop && fills_parts(*loop))
        unroll(s, out);
      else
        out.push_back(s);
    }
    b = std::move(out);
  }

  bool fills_parts(const ir::Loop& l) const {
    int64_t trips = 0, begin = 0;
    if ((l.kind != ir::LoopKind::serial && l.kind != ir::LoopKind::unroll) || l.condition.valid() ||
        (l.begin.valid() && !p_.exprs.is_const_int(l.begin, &begin)) ||
        !p_.exprs.is_const_int(l.extents[0], &trips) || trips < 1 || trips > kMaxTrips)
      return false;
    bool moves = false;
    for (StmtId s : l.body) {
      const auto* copy = p_.as<ir::TileOp>(s);
      if (!copy || !ops::is_copy(*copy) ||
          p_.buffer(copy->operands[0].buffer).scope != ir::MemScope::global ||
          p_.buffer(copy->operands[1].buffer).scope != ir::MemScope::shared)
        return false;
      for (ExprId offset : copy->operands[1].offsets)
        moves = moves || arith::depends_on(p_.exprs, offset, l.vars[0]);
    }
    return moves;
  }

  void unroll(StmtId id, ir::Block& out) {
    const ir::Loop loop = *p_.as<ir::Loop>(id);
    int64_t trips = 0, begin = 0;
    p_.exprs.is_const_int(loop.extents[0], &trips);
    if (loop.begin.valid()) p_.exprs.is_const_int(loop.begin, &begin);
    changed_ = true;
    for (int64_t t = 0; t < trips; ++t)
      for (StmtId s : loop.body) {
        ir::TileOp copy = *p_.as<ir::TileOp>(s);
        AtNumber at(p_.exprs, loop.vars[0], begin + t);
        for (ir::Region& r : copy.operands)
          for (ExprId& offset : r.offsets) offset = arith::simplify(ctx_, at.rewrite(offset));
        if (t == 0) {
          first_.push_back({s, copy});
          out.push_back(s);
          continue;
        }
        ir::Stmt made = p_.stmts[s.value];
        made.node = std::move(copy);
        const StmtId added(static_cast<uint32_t>(p_.stmts.size()));
        p_.stmts.push_back(std::move(made));
        made_.push_back({added, s, p_.var(loop.vars[0]).name + "#" + std::to_string(t)});
        out.push_back(added);
      }
    for (auto& [s, copy] : first_) p_.stmts[s.value].node = std::move(copy);
    first_.clear();
  }

  ir::Program& p_;
  arith::Context ctx_;
  std::vector<UnrolledCopy> made_;
  std::vector<std::pair<StmtId, ir::TileOp>> first_;  // what the loop's own copies become
  bool changed_ = false;
};

}  // namespace

std::vector<UnrolledCopy> unroll_copies(ir::Program& p, bool& changed) {
  return CopyUnroller(p).run(changed);
}

}  // namespace tilegen::schedule
