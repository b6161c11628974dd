// Kernels of a program as calls of the builder.
#pragma once

#include <string>
#include <vector>

#include "emit/c_expressions.h"
#include "ir/assertion.h"

namespace tilegen::emit {

class CKernels {
 public:
  CKernels(const ir::Program& p, CNames& names, CSource& source, CExpressions& exprs)
      : p_(p), names_(names), source_(source), exprs_(exprs) {}

  void write(size_t kernel);

 private:
  struct OpenBlock {
    const ir::Block* block;
    size_t next;
    const ir::Block* else_body;  // still to come
    std::string scope;           // variable
    size_t declaration;          // of its variables, once it is known which are used
    std::vector<ir::VarId> vars;
    std::string array;  // that they are elements of
  };

  void open(const ir::Block& body, std::string scope, const ir::Block* else_body = nullptr);
  void open_vars(const std::vector<ir::VarId>& vars, const std::string& array);
  void close();
  void statement(ir::StmtId id);
  void marks(ir::StmtId id);
  void loop(const ir::Loop& loop, ir::StmtId id);
  void parallel(const ir::Loop& loop, ir::StmtId id);
  void branch(const ir::Branch& branch, ir::StmtId id);
  void assertion(const ir::AssertionText& assertion);
  void print(ir::StmtId id);
  void store(const ir::Store& store);
  void tile_op(const ir::TileOp& op);
  std::string element(ir::BufferId buffer, const std::vector<ir::ExprId>& indices);
  std::vector<std::string> written_names(const std::vector<ir::VarId>& vars) const;
  // "t, " and the arguments, to a call that is a statement.
  void call(const std::string& function, const std::vector<std::string>& arguments);

  const ir::Program& p_;
  CNames& names_;
  CSource& source_;
  CExpressions& exprs_;
  std::vector<OpenBlock> open_;
  size_t scopes_ = 0;
};

// "A | B", or 0.
std::string flags(const std::vector<std::pair<bool, const char*>>& all);

}  // namespace tilegen::emit
