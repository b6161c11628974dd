// Statements that decide what runs: loops and branches, with the register memories they change.
#include <algorithm>
#include <bit>
#include <utility>

#include "codegen/llvm/gpu/gpu_emitter.h"
#include "support/checked.h"

namespace tilegen::codegen {

using arith::Interval;
using llvm::Value;
using namespace thread;

void GpuEmitter::emit_statement(const Stmt& s) {
  wide_loads_.clear();
  const bool fine = !refused();
  std::visit([&](const auto& node) { emit_node(node); }, s.node);
  if (fine && refused()) refused_origin_ = s.origin;
}

void GpuEmitter::emit_vector_loop(const Loop& loop) {
  if (lane_var_.valid()) return refuse("vectorized loops do not nest");
  exprs_.is_const_int(loop.extent, &width_);
  lane_var_ = loop.var;
  emit_body(loop.body);
  lane_var_ = ir::VarId();
  width_ = 1;
}

RegisterFile::Values GpuEmitter::merged(const RegisterFile::Values& a, llvm::BasicBlock* from_a,
                                        const RegisterFile::Values& b, llvm::BasicBlock* from_b) {
  RegisterFile::Values out;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) {
      out.push_back(a[i]);
      continue;
    }
    llvm::PHINode* phi = b_.CreatePHI(a[i]->getType(), 2);
    phi->addIncoming(a[i], from_a);
    phi->addIncoming(b[i], from_b);
    out.push_back(phi);
  }
  return out;
}

std::optional<GpuEmitter::Emitted> GpuEmitter::rotating_counter(const ir::ExprNode& n) {
  int64_t modulus = 0;
  if (n.op != ir::ExprOp::floormod || !exprs_.is_const_int(n.b, &modulus) || modulus <= 1 ||
      modulus > INT32_MAX)
    return std::nullopt;
  const arith::Affine form = facts_.affine(n.a);
  if (!facts_.range(n.a).is_finite()) return std::nullopt;  // it may wrap
  if (form.terms.size() != 1 || form.terms.begin()->second != 1) return std::nullopt;
  const ir::ExprNode atom = exprs_[form.terms.begin()->first];
  if (atom.op != ir::ExprOp::var || std::has_single_bit(static_cast<uint64_t>(modulus))) return std::nullopt;
  for (OpenLoop& loop : loops_) {
    if (loop.var != atom.var()) continue;
    const int64_t first = floor_mod(form.constant, modulus);
    const int level = bound_[loop.var.value].level;
    for (const Counter& c : loop.counters)
      if (c.first == first && c.modulus == modulus) return Emitted{c.value, level};
    llvm::PHINode* v = llvm::PHINode::Create(b_.getInt32Ty(), 2, "slot", loop.blocks.body->begin());
    v->addIncoming(b_.getInt32(static_cast<uint32_t>(first)), loop.blocks.before);
    loop.counters.push_back({v, first, modulus});
    return Emitted{v, level};
  }
  return std::nullopt;
}

void GpuEmitter::advance_counters(const OpenLoop& loop) {
  for (const Counter& c : loop.counters) {
    Value* next = b_.CreateAdd(c.value, b_.getInt32(1), "", true, true);
    Value* wraps = b_.CreateICmpEQ(next, b_.getInt32(static_cast<uint32_t>(c.modulus)));
    c.value->addIncoming(b_.CreateSelect(wraps, b_.getInt32(0), next), b_.GetInsertBlock());
  }
}

// A length that is a quotient is not divided out: the walk of a persistent block begins with it.
bool GpuEmitter::stepped(const Loop& loop) {
  const ir::ExprNode n = exprs_[loop.extent];
  if (loop.form != LoopForm::serial || n.op != ir::ExprOp::floordiv || exprs_.is_const(n.b)) return false;
  const Interval limit = facts_.range(n.a), step = facts_.range(n.b);
  return step.lo >= 1 && step.hi < INT32_MAX / 2 && limit.lo > INT32_MIN && limit.hi <= INT32_MAX - step.hi;
}

GpuEmitter::CountedLoop GpuEmitter::begin_serial_loop(const Loop& loop, Value* condition) {
  const char* name = program_.vars[loop.var.value].name.c_str();
  if (stepped(loop)) {
    const ir::ExprNode n = exprs_[loop.extent];
    Value *limit = nullptr, *step = nullptr;
    in_statement([&] { limit = resized(value(n.a), 32, n.a), step = resized(value(n.b), 32, n.b); });
    return begin_stepped_loop(limit, step, name, condition);
  }
  Value* extent = nullptr;
  in_statement([&] { extent = value(loop.extent); });
  const bool narrow = facts_.range_of_var(loop.var).hi < INT32_MAX && facts_.narrow(loop.extent);
  return begin_counted_loop(resized(extent, narrow ? 32 : 64, loop.extent), name, condition);
}

void GpuEmitter::emit_serial_loop(const Loop& loop) {
  const RegisterFile::Memories changed = registers_.written(loop.body);
  const RegisterFile::Values before = registers_.values(changed);
  const RegisterFile::State outside = registers_.state();
  const WarpgroupWait* wait = wait_for_filled();
  Value* condition = nullptr;
  const auto ask = [&] {
    if (loop.condition.valid()) in_statement([&] { condition = value(loop.condition); });
  };
  ask();
  const CountedLoop l = begin_serial_loop(loop, condition);
  std::vector<llvm::PHINode*> phis;
  for (Value* v : before) {
    phis.push_back(b_.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, l.before);
  }
  registers_.assign(changed, {phis.begin(), phis.end()});
  loops_.push_back({loop.var, l, {}});
  open_scope(true);
  bind(loop.var, l.index);
  if (program_.launched_var.valid()) emit_early_divisions(loop.body);
  const auto outer_loads = early_loads_;
  emit_early_loads(loop, changed);
  emit_body(loop.body);
  early_loads_ = outer_loads;
  close_scope();
  RegisterFile::Values after = registers_.values(changed);
  ask();
  advance_counters(loops_.back());
  loops_.pop_back();
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(after[i], latch);
  llvm::BranchInst* again = end_counted_loop(l, condition);
  if (loop.rolled) {  // told to what unrolls later
    llvm::Metadata* keep =
        llvm::MDNode::get(context_, llvm::MDString::get(context_, "llvm.loop.unroll.disable"));
    llvm::MDNode* id = llvm::MDNode::getDistinct(context_, {nullptr, keep});
    id->replaceOperandWith(0, id);
    again->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  registers_.restore(outside);
  if (!l.may_be_empty) return registers_.assign(changed, after);
  if (wait) latch = emit_wait_behind(l, again, *wait, changed, after);
  registers_.assign(changed, merged(before, l.before, after, latch));
}

// The wait that follows a statement, for accumulators some of which are constants so far.
const WarpgroupWait* GpuEmitter::wait_for_filled() {
  const auto* wait = next_ ? std::get_if<WarpgroupWait>(&next_->node) : nullptr;
  RegisterFile::Memories accumulators;
  for (MemoryId m : wait ? wait->registers : std::vector<MemoryId>{})
    if (registers_.owns(m)) accumulators.insert(m.value);
  const RegisterFile::Values held = registers_.values(accumulators);
  return std::any_of(held.begin(), held.end(),
                     [](Value* v) { return llvm::isa<llvm::Constant>(v) && !llvm::isa<llvm::UndefValue>(v); })
             ? wait
             : nullptr;
}

// Where constants, of no iteration, meet the results of products in flight ptxas moves constants into the
// accumulators, and serializes the products: there the loop waits by itself.
llvm::BasicBlock* GpuEmitter::emit_wait_behind(const CountedLoop& l, llvm::BranchInst* again,
                                               const WarpgroupWait& wait,
                                               const RegisterFile::Memories& changed,
                                               RegisterFile::Values& after) {
  llvm::BasicBlock* leaves = llvm::BasicBlock::Create(context_, "leaves", function_, l.exit);
  again->setSuccessor(1, leaves);
  b_.SetInsertPoint(leaves);
  registers_.assign(changed, after);
  emit_node(wait);
  after = registers_.values(changed);
  b_.CreateBr(l.exit);
  b_.SetInsertPoint(l.exit);
  return leaves;
}

void GpuEmitter::emit_branch(const Branch& branch) {
  Value* condition = nullptr;
  in_statement([&] { condition = value(branch.condition); });
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return emit_body(known->isOne() ? branch.then_body : branch.else_body);
  if (branch.together) condition = any_lane(condition);
  emit_sides(condition, branch.then_body, branch.else_body);
}

void GpuEmitter::emit_sides(Value* condition, const Block& then_body, const Block& else_body) {
  RegisterFile::Memories changed = registers_.written(then_body);
  changed.merge(registers_.written(else_body));
  const RegisterFile::Values before = registers_.values(changed);
  const RegisterFile::State outside = registers_.state();
  llvm::BasicBlock* origin = b_.GetInsertBlock();
  llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "next");
  struct Side {
    llvm::BasicBlock* entry = nullptr;
    llvm::BasicBlock* end = nullptr;
    RegisterFile::Values values;
  };
  auto emit_side = [&](const Block& body, const char* name) {
    if (body.empty()) return Side{next, origin, before};
    Side side;
    side.entry = llvm::BasicBlock::Create(context_, name, function_);
    b_.SetInsertPoint(side.entry);
    registers_.restore(outside);
    open_scope(true);
    emit_body(body);
    close_scope();
    side.values = registers_.values(changed);
    side.end = b_.GetInsertBlock();
    b_.CreateBr(next);
    return side;
  };
  const int sides_before = std::exchange(sides_in_loops_, sides_in_loops_ + (loops_.empty() ? 0 : 1));
  Side yes = emit_side(then_body, "then");
  Side no = emit_side(else_body, "else");
  sides_in_loops_ = sides_before;
  next->insertInto(function_);
  b_.SetInsertPoint(origin);
  b_.CreateCondBr(condition, yes.entry, no.entry);
  b_.SetInsertPoint(next);
  registers_.restore(outside);
  registers_.assign(changed, merged(yes.values, yes.end, no.values, no.end));
}

}  // namespace tilegen::codegen
