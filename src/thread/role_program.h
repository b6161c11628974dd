// The roles of a program as flat code for a walk with concrete numbers, and the processes that run it. Only
// what orders things, and what touches memory that is handed over (sync_accesses.h), is kept.
#pragma once

#include <set>
#include <vector>

#include "thread/index_program.h"
#include "thread/thread_program.h"

namespace tilegen::thread {

enum class RoleOp : uint8_t {
  loop,      // value: extent; second: condition; jump: after the loop
  loop_end,  // jump: its loop
  branch,    // value: condition; jump: the else
  jump,
  one_thread,  // jump: after it
  one_thread_end,
  barrier,
  cluster_barrier,
  arrive,        // value: index; second: block of the cluster
  wait,          // value: index; second: parity
  test,          // as a wait
  cluster_load,  // value: place; second: block of the cluster
  load,          // value: place; second: index of the barrier
  store,         // value: place
  bulk_commit,
  bulk_wait,
  copy_commit,  // asynchronous copies of threads
  copy_wait,
  proxy_fence,
  product,  // value: A; second: B; -1: in registers
  product_commit,
  product_wait,
  set,         // variable `first` = value
  fetch_tile,  // variable `first` = a tile
  hand,        // to a memory of `handed`; value: what; second: where. A touch is beside it
  touch,       // plain accesses, `first` .. `last` of RoleProgram::touches
  end,
};

struct RoleStep {
  RoleOp op = RoleOp::end;
  StmtId stmt;
  int value = -1, second = -1;  // of RoleProgram::values
  uint32_t jump = 0;
  // a loop that orders nothing and writes no operand: its first and last iterations stand for all
  bool sampled = false;
  // a loop that orders nothing and writes operands: all iterations touch what one does, at once
  bool gathers = false;
  size_t first = 0, last = 0;
};

// Threads that take the same branches, of each block of a cluster. `samples` stand for them; `warps`: whose
// first lane is among them.
struct RoleProcess {
  uint32_t begin = 0;  // of its role's code
  int group = 0;       // warpgroup
  int64_t threads = 0, warps = 0;
  std::vector<int64_t> members, samples;  // the first of them first
  bool leads = false;                     // has the first thread of its warpgroup
};

struct RoleTouch {
  StmtId stmt;
  MemoryId memory;
  int index = -1;      // of values
  int64_t count = 1;   // elements from there on
  int predicate = -1;  // of values; -1: always
  ir::VarId lane;      // of a wide store, with the number of lanes that are looked at one by one
  int64_t lanes = 1;
  bool write = false;
  bool async = false;     // by an asynchronous copy
  int64_t row_lanes = 0;  // lanes of a warp that address something; 0: all
  // Where its slot begins, for an index of loaded data: the sum of these.
  std::vector<int> slot_terms;  // of values
  int64_t slot_constant = 0;
};

struct RoleProgram {
  const ThreadProgram* program = nullptr;
  std::vector<RoleStep> steps;
  std::vector<IndexProgram> values;
  std::vector<RoleTouch> touches;
  std::vector<RoleProcess> processes;
  std::vector<bool> handed_over;  // memories: what is judged
  std::vector<bool> operands;     // memories that threads write and products read
  std::set<MemoryId> data;        // tensors whose elements say how often loops run, among others
  std::set<MemoryId> handed;      // whole numbers in shared memory that roles hand each other by plain stores
  size_t variables = 0;           // of the program, and registers that change

  explicit RoleProgram(const ThreadProgram& p);
  bool judges(MemoryId m) const { return handed_over[m.value]; }
};

}  // namespace tilegen::thread
