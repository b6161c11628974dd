// Identifiers of C for the names of a program, which are the program's own wherever C can take them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/program.h"
#include "ir/text_names.h"

namespace tilegen::emit {

class CNames {
 public:
  explicit CNames(const ir::Program& p);

  // Names as the canonical text has them, for calls.
  const ir::text::NameTable& written() const { return written_; }
  // The variable of C; it counts as used from then on.
  const std::string& use(ir::VarId v);
  const std::string& use(ir::BufferId b);
  bool is_used(ir::VarId v) const { return used_vars_.contains(v.value); }
  bool is_used(ir::BufferId b) const { return used_buffers_.contains(b.value); }
  const std::string& identifier(ir::VarId v) const { return identifiers_.at(written_.vars[v.value]); }
  const std::string& identifier(ir::BufferId b) const { return identifiers_.at(written_.buffers[b.value]); }
  // One that the program has nowhere, another one for each call.
  std::string unwritten(const std::string& like);

 private:
  ir::text::NameTable written_;
  std::map<std::string, std::string> identifiers_;  // by name
  std::set<uint32_t> used_vars_, used_buffers_;
  size_t unwritten_ = 0;
};

}  // namespace tilegen::emit
