// Printing of expressions and regions, shared by whole programs and by messages.
#pragma once

#include <string>

#include "ir/program.h"
#include "ir/text_grammar.h"
#include "ir/text_names.h"

namespace tilegen::ir::text {

class ExprPrinter {
 public:
  // Without `names` the program's own names are printed. An expression of more than `max_bytes` is cut.
  ExprPrinter(const Program& p, const NameTable* names, size_t max_bytes)
      : p_(p), names_(names), max_bytes_(max_bytes) {}

  // Parenthesised when the expression binds looser than `level`.
  void print(std::string& out, ExprId root, int level = kAny) const;
  void print_list(std::string& out, const std::vector<ExprId>& list) const;
  void print_region(std::string& out, const Region& r) const;

  const std::string& name(VarId v) const { return names_ ? names_->vars[v.value] : p_.var(v).name; }
  const std::string& name(BufferId b) const { return names_ ? names_->buffers[b.value] : p_.buffer(b).name; }

 private:
  struct Work;
  void print_node(std::string& out, const Work& work, std::vector<Work>& pending) const;
  bool is_whole(const Region& r) const;

  const Program& p_;
  const NameTable* names_;
  size_t max_bytes_;
};

std::string literal_text(const ExprNode& n);  // const_int, const_float

}  // namespace tilegen::ir::text
