#include "thread/thread_program.h"

#include <algorithm>
#include <utility>

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

const char* vote_name(Vote::Mode mode) {
  return mode == Vote::Mode::any ? "any" : mode == Vote::Mode::ballot ? "ballot" : "match";
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

int ThreadProgram::named_barrier(NamedBarrier b) {
  auto it = std::find(named_barriers.begin(), named_barriers.end(), b);
  if (it == named_barriers.end()) it = named_barriers.insert(it, b);
  return static_cast<int>(it - named_barriers.begin()) + 1;
}

std::vector<const Block*> blocks_inside(const StmtNode& node) {
  std::vector<const Block*> blocks;
  if (const auto* loop = std::get_if<Loop>(&node)) {
    blocks = {&loop->body};
  } else if (const auto* branch = std::get_if<Branch>(&node)) {
    blocks = {&branch->then_body, &branch->else_body};
  } else if (const auto* one = std::get_if<OneThread>(&node)) {
    blocks = {&one->body};
  } else if (const auto* roles = std::get_if<Roles>(&node)) {
    for (const Role& role : roles->roles) blocks.push_back(&role.body);
  }
  return blocks;
}

std::vector<Block*> blocks_inside(StmtNode& node) {
  std::vector<Block*> blocks;
  for (const Block* b : blocks_inside(std::as_const(node))) blocks.push_back(const_cast<Block*>(b));
  return blocks;
}

}  // namespace tilegen::thread
