#include "thread/thread_program.h"

namespace tilegen::thread {

const char* space_name(Space s) {
  switch (s) {
    case Space::global:
      return "global";
    case Space::shared:
      return "shared";
    case Space::local:
      return "local";
  }
  return "unknown";
}

StmtId ThreadProgram::add(StmtNode node,
                          std::string origin) {
  stmts.push_back({std::move(node), std::move(origin)});
  return StmtId(stmts.size() - 1);
}

ir::VarId ThreadProgram::add_var(std::string name, ir::VarKind kind) {
  ir::Var var;
  var.name = std::move(name);
  var.kind = kind;
  vars.push_back(std::move(var));
  return ir::VarId(vars.size() - 1);
}

MemoryId ThreadProgram::add_memory(Memory m) {
  memories.push_back(std::move(m));
  return MemoryId(memories.size() - 1);
}

}  // namespace tilegen::thread
