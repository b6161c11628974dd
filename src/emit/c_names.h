// Identifiers of C for the names of a program, which are the program's own wherever C can take them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/native.h"
#include "ir/program.h"
#include "ir/text_names.h"

namespace tilegen::emit {

class CNames {
 public:
  explicit CNames(const ir::Program& p);

  // Names as the canonical text has them, for calls.
  const ir::text::NameTable& written() const { return written_; }
  std::vector<std::string> written_operands(const ir::Program& p, const ir::NativeFunction& f) const {
    return parameter_names(p, written_, f.parameters);
  }
  // The variable of C; it counts as used from then on.
  const std::string& use(ir::VarId v);
  const std::string& use(ir::BufferId b);
  bool is_used(ir::VarId v) const { return used_vars_.contains(v.value); }
  bool is_used(ir::BufferId b) const { return used_buffers_.contains(b.value); }
  const std::string& identifier(ir::VarId v) const { return identifiers_.at(written_.vars[v.value]); }
  const std::string& identifier(ir::BufferId b) const { return identifiers_.at(written_.buffers[b.value]); }
  // The variable of an operand, of a function of the program, that the canonical text gives this name.
  const std::string& operand(const std::string& name) const { return identifiers_.at(name); }
  std::string part() { return "e" + std::to_string(parts_++); }
  // One that the program has nowhere, another one for each call.
  std::string unwritten(const std::string& like);

 private:
  ir::text::NameTable written_;
  std::map<std::string, std::string> identifiers_;  // by name
  std::set<uint32_t> used_vars_, used_buffers_;
  size_t unwritten_ = 0, parts_ = 0;
};

}  // namespace tilegen::emit
