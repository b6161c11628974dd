// Expressions and regions of a program as C expressions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emit/c_names.h"
#include "emit/c_source.h"
#include "ir/native.h"
#include "ir/program.h"

namespace tilegen::emit {

class CExpressions {
 public:
  CExpressions(const ir::Program& p, CNames& names, CSource& source)
      : p_(p), pool_(p.exprs), names_(names), source_(source) {}
  // Of the meaning of a function of `p`, whose operands are these variables of C.
  CExpressions(const ir::Program& p, CNames& names, CSource& source, const ir::NativeFunction& f,
               std::vector<std::string> operands)
      : p_(p), pool_(f.exprs), names_(names), source_(source), operands_(std::move(operands)) {}

  // What has the expression's value, on a line of moderate length: parts of a longer one are variables, which
  // are declared where the source has come to, and used again until their scope ends.
  std::string value(ir::ExprId id);
  std::string list(const std::vector<ir::ExprId>& ids);
  std::string numbers(const std::vector<int64_t>& values);
  std::string strings(const std::vector<std::string>& texts);
  std::string region(const ir::Region& r);
  // The same beside `other`, whose extents it has where it may leave its own out.
  std::string region_beside(const ir::Region& r, const ir::Region& other);

  void begin_scope() { parts_.emplace_back(); }
  void end_scope() { parts_.pop_back(); }

 private:
  struct Call {
    std::string name;                // of a macro
    std::vector<std::string> front;  // arguments that are no expressions
    std::vector<ir::ExprId> operands;
  };
  Call call_of(ir::ExprId id);
  std::string literal(const ir::ExprNode& n);
  std::string real(const ir::ExprNode& n);
  const std::string* part(ir::ExprId id) const;
  std::string name_part(ir::ExprId id, const std::string& text);
  bool is_whole(const ir::Region& r) const;

  const ir::Program& p_;
  const ir::ExprPool& pool_;
  CNames& names_;
  CSource& source_;
  const std::vector<std::string> operands_;
  std::vector<std::map<ir::ExprId, std::string>> parts_{1};
};

std::string dtype_constant(ir::DType t);

}  // namespace tilegen::emit
