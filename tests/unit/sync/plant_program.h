// Hand-made programs for the tests of planting and its verifier.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "sync/plant_barriers.h"
#include "target/target.h"
#include "thread/sync_verify.h"

namespace tilegen::sync {

using ir::ExprId;
using thread::Block;
using thread::MemoryId;
using thread::Space;
using thread::StmtId;

// What misses a barrier is found by the verifier, planting mends it.
struct Maker {
  thread::ThreadProgram p;
  ExprId t;      // thread
  MemoryId reg;  // f32[8]
  MemoryId tensor;
  ir::VarId n;

  explicit Maker(int64_t threads = 64) {
    p.name = "test";
    p.machine = *target::find_target("sm_90a");
    p.threads = threads;
    p.thread_var = p.add_var("t", ir::VarKind::thread);
    t = p.exprs.var(p.thread_var);
    p.grid = {p.exprs.const_int(1)};
    p.block_vars = {p.add_var("b", ir::VarKind::block_index)};
    n = p.add_var("n", ir::VarKind::dim);
    p.params.push_back({thread::Param::Kind::dim, "n", ir::DType::i64, n, MemoryId()});
    thread::Memory g;
    g.name = "A";
    g.type = ir::DType::f32;
    g.alignment = 16;
    g.read_only = true;
    g.param = 1;
    tensor = p.add_memory(g);
    p.params.push_back({thread::Param::Kind::tensor, "A", ir::DType::f32, ir::VarId(), tensor});
    thread::Memory r;
    r.name = "r";
    r.space = Space::local;
    r.type = ir::DType::f32;
    r.elements = 8;
    r.alignment = 16;
    r.in_registers = true;
    reg = p.add_memory(r);
  }
  MemoryId shared(const char* name, int64_t elements, int64_t slots = 1, int64_t offset = -1) {
    thread::Memory m;
    m.name = name;
    m.space = Space::shared;
    m.type = ir::DType::f32;
    m.elements = elements * slots;
    m.slots = slots;
    m.alignment = 16;
    m.arena_offset = offset < 0 ? p.arena_bytes : offset;
    p.arena_bytes = std::max(p.arena_bytes, m.arena_offset + m.elements * 4);
    return p.add_memory(m);
  }
  ExprId c(int64_t v) { return p.exprs.const_int(v); }
  ExprId add(ExprId a, int64_t b) { return p.exprs.add(a, b); }
  ExprId load(MemoryId m, ExprId i) { return p.exprs.load(m, ir::DType::f32, std::vector<ExprId>{i}); }
  StmtId write(MemoryId m, ExprId i) {
    return p.add(thread::Store{m, i, load(reg, c(0)), ExprId()}, "write");
  }
  StmtId read(MemoryId m, ExprId i) { return p.add(thread::Store{reg, c(0), load(m, i), ExprId()}, "read"); }
  StmtId copy(MemoryId m, ExprId i) {
    return p.add(thread::AsyncCopy{m, i, tensor, c(0), 4, ExprId()}, "copy");
  }
  StmtId loop(ExprId extent, const std::function<Block(ExprId)>& body,
              thread::LoopForm form = thread::LoopForm::serial) {
    const ir::VarId v = p.add_var("i" + std::to_string(p.vars.size()), ir::VarKind::loop);
    Block inside = body(p.exprs.var(v));
    return p.add(thread::Loop{v, extent, form, inside}, "loop");
  }
  int count(const Block& b) const {
    int barriers = 0;
    for (StmtId id : b) {
      const auto& node = p.stmts[id.value].node;
      barriers += std::holds_alternative<thread::Barrier>(node);
      if (const auto* l = std::get_if<thread::Loop>(&node)) barriers += count(l->body);
      if (const auto* x = std::get_if<thread::Branch>(&node))
        barriers += count(x->then_body) + count(x->else_body);
    }
    return barriers;
  }
  int waits(const Block& b) const {
    int waits = 0;
    for (StmtId id : b) {
      const auto& node = p.stmts[id.value].node;
      waits += std::holds_alternative<thread::AsyncWait>(node);
      if (const auto* l = std::get_if<thread::Loop>(&node)) waits += this->waits(l->body);
    }
    return waits;
  }
  // Barriers planted; the verifier must agree before (hazards or none) and after.
  int plant(bool hazards_before, const Planting& how = {}) {
    EXPECT_EQ(thread::verify_thread_program(p), std::vector<std::string>());
    EXPECT_EQ(!thread::verify_synchronization(p).empty(), hazards_before);
    const Checked done = plant_barriers(p, how);
    EXPECT_TRUE(done) << (done ? "" : done.error().to_text());
    EXPECT_EQ(thread::verify_synchronization(p), std::vector<std::string>()) << print_thread_program(p);
    EXPECT_EQ(thread::verify_thread_program(p), std::vector<std::string>());
    return count(p.body);
  }
};

}  // namespace tilegen::sync
