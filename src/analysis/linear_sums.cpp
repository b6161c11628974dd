#include "analysis/linear_sums.h"

#include <algorithm>
#include <map>

#include "analysis/run_ahead.h"

namespace tilegen::analysis {

using ir::ExprId;
using ir::ExprOp;

bool is_sum(const ir::Program& p, const KernelOp& op) {
  const auto* tile_op = p.as<ir::TileOp>(op.stmt);
  if (!tile_op) return false;
  const auto reduction = ops::layout_rule(*tile_op).reduction;
  return reduction && reduction->kind == ir::ReduceKind::sum;
}

namespace {

bool is_zero(const ir::Program& p, ExprId id) {
  int64_t number = 1;
  if (p.exprs.is_const_int(id, &number)) return number == 0;
  const ir::ExprNode& n = p.exprs[id];
  return n.op == ExprOp::const_float && n.float_value() == 0;
}

// Expressions of one op: which values must be in parts so that what is computed is.
class Linearity {
 public:
  Linearity(const ir::Program& p, const KernelOps& ops, const KernelOp& op, const std::set<ValueId>& parts,
            const std::set<ValueId>& sums)
      : p_(p), ops_(ops), op_(op), parts_(parts), sums_(sums) {}

  // Of no parts: the same in all threads of the row.
  bool whole(ExprId id) {
    if (!id.valid()) return true;
    if (auto it = whole_.find(id); it != whole_.end()) return it->second;
    const ir::ExprNode n = p_.exprs[id];
    bool is = whole(n.a) && whole(n.b) && whole(n.c);
    if (n.op == ExprOp::load) {
      is = !parts_.count(ops_.value_of(op_, n.object));
      for (ExprId index : p_.exprs.indices(id)) is = is && whole(index);
    }
    return whole_[id] = is;
  }

  // Every term has one factor that is in parts, or would be with `more` in parts. 0 is 0 in every thread.
  bool adds_up(ExprId id, std::set<ValueId>& more) {
    if (is_zero(p_, id)) return true;
    const ir::ExprNode n = p_.exprs[id];
    switch (n.op) {
      case ExprOp::load: {
        for (ExprId index : p_.exprs.indices(id))
          if (!whole(index)) return false;
        const ValueId v = ops_.value_of(op_, n.object);
        if (v.valid()) more.insert(v);
        return v.valid();
      }
      case ExprOp::neg:
        return adds_up(n.a, more);
      case ExprOp::add:
      case ExprOp::sub:
        return adds_up(n.a, more) && adds_up(n.b, more);
      case ExprOp::mul:
        if (whole(n.b) && (!whole(n.a) || loads_sum(n.a))) return adds_up(n.a, more);
        return whole(n.a) && (!whole(n.b) || loads_sum(n.b)) && adds_up(n.b, more);
      case ExprOp::div:
        return whole(n.b) && adds_up(n.a, more);
      case ExprOp::select:
        return whole(n.a) && adds_up(n.b, more) && adds_up(n.c, more);
      default:
        return false;
    }
  }

 private:
  // Of two factors, neither in parts yet, that one is to be.
  bool loads_sum(ExprId id) const {
    const ir::ExprNode& n = p_.exprs[id];
    return n.op == ExprOp::load && sums_.count(ops_.value_of(op_, n.object)) > 0;
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  const KernelOp& op_;
  const std::set<ValueId>& parts_;
  const std::set<ValueId>& sums_;
  std::map<ExprId, bool> whole_;
};

// Collects the parts of one loop until nothing is added.
class PartFinder {
 public:
  PartFinder(const ir::Program& p, const KernelOps& ops, ir::StmtId loop)
      : p_(p), ops_(ops), loop_(loop), inside_(ops_inside(p, ops, *p.as<ir::Loop>(loop))) {
    const ir::Block one = {loop};
    ir::for_each_statement(p, one, [&](ir::StmtId s, int) { statements_.insert(s); });
    for (const KernelOp* op : inside_) {
      for (const OpAccess& a : op->accesses)
        if (a.write && a.value.valid()) written_.insert(a.value);
      if (is_sum(p, *op)) sums_.insert(op->accesses[1].value);
    }
  }

  PartialSums run(const KernelOp& reduction) {
    parts_.values = {reduction.accesses[1].value};
    for (size_t size = 0; size < parts_.values.size() && parts_.refusal.empty();) {
      size = parts_.values.size();
      for (const KernelOp* op : inside_)
        if (parts_.refusal.empty()) visit(*op);
    }
    if (parts_.refusal.empty()) find_outside();
    return std::move(parts_);
  }

 private:
  bool in_parts(ValueId value) const { return value.valid() && parts_.values.count(value) > 0; }
  std::string name(ValueId value) const { return ops_.values[value].name; }
  void refuse(std::string why) {
    if (parts_.refusal.empty()) parts_.refusal = std::move(why);
  }

  void visit(const KernelOp& op) {
    const OpAccess* touched = nullptr;
    for (const OpAccess& a : op.accesses)
      if (in_parts(a.value)) touched = &a;
    if (!touched) return;
    if (op.form == OpForm::reduction) return visit_reduction(op);
    if (op.form == OpForm::contraction)
      return refuse(op.path + " uses " + name(touched->value) + " in the loop");
    parts_.others.insert(&op);
    const auto* tile_op = p_.as<ir::TileOp>(op.stmt);
    if (!tile_op) return visit_stores(op);
    const OpAccess& to = op.accesses.back();
    if (ops::is_fill(*tile_op)) {
      if (!is_zero(p_, tile_op->value))
        refuse(op.path + " puts a number into " + name(to.value) + " in the loop");
      return;
    }
    const OpAccess& from = op.accesses.front();
    if (!ops::is_copy(*tile_op) || !to.value.valid() || !from.value.valid() ||
        p_.buffer(to.buffer).type != p_.buffer(from.buffer).type)
      return refuse(op.path + " uses " + name(touched->value) + " in the loop");
    add(op, {from.value, to.value});
  }

  void visit_reduction(const KernelOp& op) {
    if (in_parts(op.accesses[0].value))
      return refuse(op.path + " reads " + name(op.accesses[0].value) + " in the loop");
    if (!is_sum(p_, op))
      return refuse(op.path + " is no sum and writes " + name(op.accesses[1].value) + " in the loop");
    parts_.reductions.insert(&op);
  }

  // A parallel loop or a store.
  void visit_stores(const KernelOp& op) {
    Linearity terms(p_, ops_, op, parts_.values, sums_);
    std::set<ValueId> more;
    const ir::Block one = {op.stmt};
    ir::for_each_statement(p_, one, [&](ir::StmtId s, int) {
      const auto* branch = p_.as<ir::Branch>(s);
      if (branch && !terms.whole(branch->condition)) refuse(op.path + " decides by it in the loop");
      const auto* store = p_.as<ir::Store>(s);
      if (!store) return;
      if (store->old) refuse(op.path + " takes old values of atomic operations in the loop");
      for (ExprId index : store->indices)
        if (!terms.whole(index)) refuse(op.path + " uses it as an index in the loop");
      const ValueId to = ops_.value_of(op, store->buffer);
      if (terms.whole(store->value) && !in_parts(to)) return;
      if (to.valid()) parts_.values.insert(to);  // what it reads of its own is in parts
      Linearity own(p_, ops_, op, parts_.values, sums_);
      if (!to.valid() || !own.adds_up(store->value, more))
        return refuse(op.path + " does more in the loop than add up sums and scale them");
    });
    add(op, more);
  }

  // Values that must be in parts as well; only the loop's own can be.
  void add(const KernelOp& op, const std::set<ValueId>& values) {
    for (ValueId v : values) {
      if (!written_.count(v)) return refuse(op.path + " adds " + name(v) + ", which is no sum of the loop");
      parts_.values.insert(v);
    }
  }

  void find_outside() {
    for (const KernelOp& op : ops_.ops)
      for (const OpAccess& a : op.accesses)
        if (in_parts(a.value) && !statements_.count(op.stmt)) parts_.outside.insert(a.value);
    for (const auto& [where, value] : ops_.scalar_reads) {
      if (!in_parts(value)) continue;
      if (statements_.count(where.first))
        return refuse("an index, a bound or a condition in the loop reads " + name(value));
      parts_.outside.insert(value);
    }
    if (parts_.outside.empty()) refuse("nothing after the loop reads it");
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  const ir::StmtId loop_;
  const std::vector<const KernelOp*> inside_;
  std::set<ir::StmtId> statements_;   // the loop and what is in it
  std::set<ValueId> written_, sums_;  // in the loop, by any op and by sums
  PartialSums parts_;
};

// The block that has the statement, and the statement's place there.
const ir::Block* block_of(const ir::Program& p, const ir::Block& block, ir::StmtId stmt, size_t* place) {
  for (size_t i = 0; i < block.size(); ++i) {
    const ir::Block* found = nullptr;
    if (block[i] == stmt) {
      *place = i;
      return &block;
    }
    if (const auto* loop = p.as<ir::Loop>(block[i])) found = block_of(p, loop->body, stmt, place);
    if (const auto* branch = p.as<ir::Branch>(block[i])) {
      found = block_of(p, branch->then_body, stmt, place);
      if (!found) found = block_of(p, branch->else_body, stmt, place);
    }
    if (found) return found;
  }
  return nullptr;
}

// The first op of the statement that touches the value.
const KernelOp* first_use(const ir::Program& p, const KernelOps& ops, ir::StmtId stmt, ValueId value) {
  std::set<ir::StmtId> statements;
  const ir::Block one = {stmt};
  ir::for_each_statement(p, one, [&](ir::StmtId s, int) { statements.insert(s); });
  for (const KernelOp& op : ops.ops)
    for (const OpAccess& a : op.accesses)
      if (a.value == value && statements.count(op.stmt)) return &op;
  return nullptr;
}

// The statement itself overwrites all of the value, and reads none of it.
bool overwrites(const ir::Program& p, const KernelOp& op, ir::StmtId stmt, ValueId value) {
  const auto* tile_op = p.as<ir::TileOp>(stmt);
  if (op.stmt != stmt || !tile_op) return false;
  bool whole = false;
  for (const OpAccess& a : op.accesses) {
    if (a.value != value) continue;
    if (a.read) return false;
    whole = tile_op->operands[static_cast<size_t>(a.operand)].extents == p.tile_shape(a.buffer);
  }
  return whole;
}

}  // namespace

PartialSums sum_parts(const ir::Program& p, const KernelOps& ops, ir::StmtId loop,
                      const KernelOp& reduction) {
  return PartFinder(p, ops, loop).run(reduction);
}

bool begins_as_zero(const ir::Program& p, int kernel, const KernelOps& ops, ir::StmtId loop, ValueId value) {
  int64_t trips = 0;
  const bool runs = p.exprs.is_const_int(p.as<ir::Loop>(loop)->extents[0], &trips) && trips > 0 &&
                    !p.as<ir::Loop>(loop)->condition.valid();
  for (ir::StmtId s : p.as<ir::Loop>(loop)->body)
    if (const KernelOp* op = first_use(p, ops, s, value)) {
      if (runs && overwrites(p, *op, s, value)) return true;
      break;
    }
  size_t place = 0;
  const ir::Block* block = block_of(p, p.kernels[static_cast<size_t>(kernel)].body, loop, &place);
  while (block && place-- > 0) {
    const ir::StmtId s = (*block)[place];
    const KernelOp* op = first_use(p, ops, s, value);
    if (!op) continue;
    const auto* fill = p.as<ir::TileOp>(s);
    return fill && ops::is_fill(*fill) && is_zero(p, fill->value) && overwrites(p, *op, s, value);
  }
  return false;
}

}  // namespace tilegen::analysis
