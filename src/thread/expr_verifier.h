// The part of the thread-program verifier that looks at expressions.
#pragma once

#include <string>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::thread {

class ExprVerifier {
 public:
  ExprVerifier(const ThreadProgram& p, std::vector<std::string>& problems);

  void report(const std::string& text) {
    problems_->push_back((origin_.empty() ? "" : origin_ + ": ") + text);
  }
  void set_origin(std::string origin) { origin_ = std::move(origin); }

  // Variables that may be used now, and those a register index may use.
  bool enter_scope(ir::VarId var, bool fixed_after_unrolling);
  void leave_scope(ir::VarId var);

  // Checks an expression that must exist and have the type; `what` names it in the report. False: do not look
  // at it.
  bool check(ir::ExprId id, ir::DType type, const std::string& what);
  // A legal memory id; false: do not look at it.
  bool check_memory(MemoryId id, const std::string& what);
  // An element index of a legal memory from which `span` elements are touched.
  void check_index(MemoryId memory, ir::ExprId index, int64_t span, const std::string& what);
  // An expression of dims and scalars only.
  void check_launch_expr(ir::ExprId id, const std::string& what);

 private:
  bool in_pool(ir::ExprId id) const { return id.valid() && id.value < p_->exprs.size(); }
  void check_nodes(ir::ExprId root);
  void check_node(ir::ExprId id);
  void check_load(ir::ExprId id);
  bool fixed_after_unrolling(ir::ExprId root) const;

  enum class Scope : uint8_t { out, in, fixed };
  const ThreadProgram* p_;
  std::vector<std::string>* problems_;
  std::string origin_;
  std::vector<Scope> scope_;       // by variable
  std::vector<uint32_t> checked_;  // by expression: the epoch in which it was checked
  uint32_t epoch_ = 1;             // a new one begins when the scope shrinks
};

}  // namespace tilegen::thread
