#include "codegen/llvm/program_emitter.h"

#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

ProgramEmitter::ProgramEmitter(llvm::Module& module, const ThreadProgram& program, const ir::ExprPool& exprs,
                               const MachineFeatures& features, std::string symbol)
    : module_(module),
      context_(module.getContext()),
      program_(program),
      exprs_(exprs),
      features_(features),
      symbol_(std::move(symbol)),
      b_(module.getContext()),
      ops_(b_, features_),
      bound_(program.vars.size()) {
  llvm::FastMathFlags contract;
  contract.setAllowContract(true);
  b_.setFastMathFlags(contract);
}

// A new region is code that does not dominate what follows its parent's scope: a loop body, one side of a
// branch. Statements and unrolled iterations open scopes too, only to limit how long values are remembered.
int ProgramEmitter::open_scope(bool new_region) {
  Scope s;
  s.region = new_region || scopes_.empty() ? static_cast<int>(scopes_.size()) : scopes_.back().region;
  scopes_.push_back(std::move(s));
  return level();
}

void ProgramEmitter::close_scope() {
  for (uint64_t key : scopes_.back().keys) memo_.erase(key);
  scopes_.pop_back();
}

void ProgramEmitter::remember(uint64_t key, Emitted e) {
  if (llvm::isa<llvm::Constant>(e.value) && e.level == 0) return;
  int keep = std::max(e.level, scopes_.back().region);
  if (memo_.emplace(key, e).second) scopes_[static_cast<size_t>(keep)].keys.push_back(key);
}

void ProgramEmitter::refuse(std::string message) {
  if (refusal_.empty()) refusal_ = std::move(message);
}

std::optional<std::string> ProgramEmitter::refusal() const {
  if (!refusal_.empty()) return refusal_;
  return ops_.refusal();
}

void ProgramEmitter::emit_body(const Block& body) {
  for (size_t i = 0; i < body.size() && !refused(); ++i) {
    next_ = i + 1 < body.size() ? &program_.stmts[body[i + 1].value] : nullptr;
    emit_stmt(program_.stmts[body[i].value]);
  }
}

void ProgramEmitter::in_statement(const std::function<void()>& work) {
  int outer = statement_level_;
  statement_level_ = open_scope(false);
  work();
  close_scope();
  statement_level_ = outer;
}

void ProgramEmitter::emit_stmt(const Stmt& s) {
  if (auto* loop = std::get_if<Loop>(&s.node)) return emit_loop(*loop);
  if (auto* branch = std::get_if<Branch>(&s.node)) return emit_branch(*branch);
  in_statement([&] { emit_statement(s); });
}

void ProgramEmitter::emit_loop(const Loop& loop) {
  int64_t extent = 0;
  bool constant = exprs_.is_const_int(loop.extent, &extent);
  if (constant && extent <= 0) return;
  if (loop.form != LoopForm::serial && !constant)
    return refuse("an unrolled or vectorized loop needs a constant extent");
  if (loop.form == LoopForm::vectorized && extent > 1) return emit_vector_loop(loop);
  if (loop.form == LoopForm::unrolled || (constant && extent == 1 && !loop.condition))
    return emit_unrolled_loop(loop);
  emit_serial_loop(loop);
}

void ProgramEmitter::emit_unrolled_loop(const Loop& loop) {
  int64_t extent = 0;
  exprs_.is_const_int(loop.extent, &extent);
  for (int64_t i = 0; i < extent && !refused(); ++i) {
    open_scope(false);
    bind(loop.var, b_.getInt64(i));
    emit_body(loop.body);
    close_scope();
  }
}

ProgramEmitter::CountedLoop ProgramEmitter::begin_counted_loop(Value* extent, const char* name, Value* also) {
  CountedLoop l;
  l.extent = extent;
  l.before = b_.GetInsertBlock();
  l.body = llvm::BasicBlock::Create(context_, name, function_);
  l.exit = llvm::BasicBlock::Create(context_, std::string(name) + ".end", function_);
  Value* zero = llvm::ConstantInt::get(extent->getType(), 0);
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(extent);
  l.may_be_empty = also || !(constant && constant->getSExtValue() > 0);
  if (l.may_be_empty) {
    Value* any = b_.CreateICmpSGT(extent, zero);
    b_.CreateCondBr(also ? b_.CreateAnd(any, also) : any, l.body, l.exit);
  } else {
    b_.CreateBr(l.body);
  }
  b_.SetInsertPoint(l.body);
  l.index = b_.CreatePHI(extent->getType(), 2, name);
  l.index->addIncoming(zero, l.before);
  return l;
}

ProgramEmitter::CountedLoop ProgramEmitter::begin_stepped_loop(Value* limit, Value* step, const char* name,
                                                               Value* also) {
  CountedLoop l;
  l.extent = limit;
  l.step = step;
  l.before = b_.GetInsertBlock();
  l.body = llvm::BasicBlock::Create(context_, name, function_);
  l.exit = llvm::BasicBlock::Create(context_, std::string(name) + ".end", function_);
  l.may_be_empty = true;
  Value* any = b_.CreateICmpSLE(step, limit);
  b_.CreateCondBr(also ? b_.CreateAnd(any, also) : any, l.body, l.exit);
  b_.SetInsertPoint(l.body);
  l.index = b_.CreatePHI(limit->getType(), 2, name);
  l.index->addIncoming(llvm::ConstantInt::get(limit->getType(), 0), l.before);
  l.position = b_.CreatePHI(limit->getType(), 2, "position");
  l.position->addIncoming(step, l.before);
  return l;
}

llvm::BranchInst* ProgramEmitter::end_counted_loop(const CountedLoop& l, Value* also) {
  Value* one = llvm::ConstantInt::get(l.index->getType(), 1);
  Value* next = b_.CreateAdd(l.index, one, "", /*HasNUW=*/true, /*HasNSW=*/true);
  l.index->addIncoming(next, b_.GetInsertBlock());
  Value* more = nullptr;
  if (l.position) {
    Value* position = b_.CreateAdd(l.position, l.step, "", /*HasNUW=*/true, /*HasNSW=*/true);
    l.position->addIncoming(position, b_.GetInsertBlock());
    more = b_.CreateICmpSLE(position, l.extent);
  } else {
    more = b_.CreateICmpSLT(next, l.extent);
  }
  llvm::BranchInst* latch = b_.CreateCondBr(also ? b_.CreateAnd(more, also) : more, l.body, l.exit);
  b_.SetInsertPoint(l.exit);
  return latch;
}

Value* ProgramEmitter::constant(const ir::ExprNode& n) {
  llvm::Type* t = held_type(context_, n.type);
  if (ir::is_storage_only(n.type))
    return llvm::ConstantInt::get(t, ir::float_to_bits(n.type, n.float_value()));
  if (ir::is_float(n.type)) {
    const double v = n.float_value();  // of bits, which tell NaNs from each other
    if (!t->isFloatTy()) return llvm::ConstantFP::get(context_, llvm::APFloat(v));
    const llvm::APInt bits(32, ir::float_to_bits(ir::DType::f32, v));
    return llvm::ConstantFP::get(context_, llvm::APFloat(llvm::APFloat::IEEEsingle(), bits));
  }
  return llvm::ConstantInt::get(
      t, static_cast<uint64_t>(n.imm) & llvm::maskTrailingOnes<uint64_t>(t->getIntegerBitWidth()));
}

}  // namespace tilegen::codegen
