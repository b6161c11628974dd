// What the emitters of all targets share: scopes and remembered values, the shape of loops and branches.
//
// Shared expressions are emitted once per region of the control flow that dominates their uses: each emitted
// value carries the scope level of the innermost variable it depends on, and is forgotten when that scope
// closes.
//
// f16 and bf16 values are *held* as f32 already rounded to their type, and bool as i1; only loads and stores
// see the storage type (half, i16 bits, i8). e4m3 and e5m2, never computed in, are held as their i8 bits.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/llvm_setup.h"
#include "codegen/llvm/operators.h"
#include "ir/native.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

class ProgramEmitter {
 protected:
  ProgramEmitter(llvm::Module& module, const thread::ThreadProgram& program, const ir::ExprPool& exprs,
                 const MachineFeatures& features, std::string symbol);
  virtual ~ProgramEmitter() = default;

  struct Bound {
    llvm::Value* value = nullptr;  // scalar; for a SIMD lane variable its value at lane 0
    int level = 0;
  };
  struct Emitted {
    llvm::Value* value = nullptr;
    int level = 0;
  };
  struct Scope {
    std::vector<uint64_t> keys;  // memo entries that end with this scope
    int region = 0;              // outermost scope whose code dominates what is emitted here
  };

  int open_scope(bool new_region);
  void close_scope();
  void bind(ir::VarId var, llvm::Value* value) { bound_[var.value] = {value, level()}; }
  int level() const { return static_cast<int>(scopes_.size()) - 1; }
  // Keeps an emitted value for as long as what it depends on stands still.
  void remember(uint64_t key, Emitted e);
  void refuse(std::string message);
  bool refused() const { return !refusal_.empty() || ops_.refusal(); }
  std::optional<std::string> refusal() const;

  void emit_body(const thread::Block& body);
  void emit_stmt(const thread::Stmt& s);
  virtual void emit_statement(const thread::Stmt& s) = 0;  // all but loops and branches
  void emit_loop(const thread::Loop& loop);
  virtual void emit_unrolled_loop(const thread::Loop& loop);
  virtual void emit_serial_loop(const thread::Loop& loop) = 0;
  virtual void emit_vector_loop(const thread::Loop& loop) = 0;
  virtual void emit_branch(const thread::Branch& branch) = 0;
  // Runs `work` with values of its own that end with the statement, loads among them.
  void in_statement(const std::function<void()>& work);

  // Opens `for (i = 0; i < extent; ++i)`; the caller fills the body and calls end_counted_loop. `also`: what
  // else must hold for the first iteration, and for another one; null: nothing.
  struct CountedLoop {
    llvm::BasicBlock* before = nullptr;
    llvm::BasicBlock* body = nullptr;
    llvm::BasicBlock* exit = nullptr;
    llvm::PHINode* index = nullptr;
    llvm::Value* extent = nullptr;
    bool may_be_empty = false;          // `before` is a predecessor of `exit`
    llvm::PHINode* position = nullptr;  // of a stepped loop, (index + 1) * step
    llvm::Value* step = nullptr;
  };
  CountedLoop begin_counted_loop(llvm::Value* extent, const char* name, llvm::Value* also = nullptr);
  // floor(limit / step) times, without the division; step is positive, limit + step does not overflow. Its
  // end is that of a counted loop.
  CountedLoop begin_stepped_loop(llvm::Value* limit, llvm::Value* step, const char* name,
                                 llvm::Value* also = nullptr);
  // the branch back
  llvm::BranchInst* end_counted_loop(const CountedLoop& loop, llvm::Value* also = nullptr);

  llvm::Value* constant(const ir::ExprNode& n);

  // The text that a native call becomes; null: it is its meaning (emit_native.cpp).
  const ir::NativeText* native_text_of(const ir::ExprPool::NativeCall& call) const;
  // The call's value, held, of scalar held arguments; i64 in 64 bits.
  llvm::Value* emit_native(const ir::ExprPool::NativeCall& call, const ir::NativeText& text,
                           std::vector<llvm::Value*> args);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const thread::ThreadProgram& program_;
  const ir::ExprPool& exprs_;
  MachineFeatures features_;
  std::string symbol_;
  llvm::IRBuilder<> b_;
  Operators ops_;

  llvm::Function* function_ = nullptr;
  std::vector<Bound> bound_;  // by VarId
  std::vector<Scope> scopes_;
  std::unordered_map<uint64_t, Emitted> memo_;
  int statement_level_ = 0;             // loads live no longer than the statement that asked
  const thread::Stmt* next_ = nullptr;  // what follows the statement in its block

 private:
  std::string refusal_;
};

}  // namespace tilegen::codegen
