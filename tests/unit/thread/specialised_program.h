// A thread program of two roles, one that multiplies and one that copies, to break.
#pragma once

#include <gtest/gtest.h>

#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::thread {

struct CooperationVerifyTest : ::testing::Test {
  ThreadProgram p;
  MemoryId in, out, a_tile, b_tile, acc, part, other;
  WarpgroupMma mma;
  Block consumer, producer;

  ir::ExprId c(int64_t v) { return p.exprs.const_int(v); }
  ir::ExprId load(MemoryId m, ir::ExprId index) {
    const ir::ExprId indices[] = {index};
    return p.exprs.load(m, p.memory(m).type, indices);
  }
  MemoryId tensor(const char* name, bool read_only) {
    Memory m;
    m.name = name, m.type = ir::DType::f16, m.alignment = 16, m.read_only = read_only;
    m.param = static_cast<int>(p.params.size());
    const MemoryId id = p.add_memory(m);
    p.params.push_back({Param::Kind::tensor, name, ir::DType::f16, {}, id});
    return id;
  }
  MemoryId shared(const char* name, int64_t elements) {
    Memory m;
    m.name = name, m.space = Space::shared, m.type = ir::DType::f16, m.elements = elements,
    m.alignment = 1024;
    m.arena_offset = p.arena_bytes;
    p.arena_bytes += elements * 2;
    return p.add_memory(m);
  }
  MemoryId registers(const char* name, ir::DType type, int64_t elements) {
    Memory m;
    m.name = name, m.space = Space::local, m.type = type, m.elements = elements, m.alignment = 4,
    m.in_registers = true;
    return p.add_memory(m);
  }
  template <class Node>
  StmtId add(Node node, const char* origin = "main/gemm#1") {
    return p.add(std::move(node), origin);
  }
  template <class Node>
  Node& node(StmtId id) {
    return std::get<Node>(p.stmts[id.value].node);
  }

  void SetUp() override {
    p.name = "kernel";
    p.machine = *target::find_target("sm_90a");
    p.threads = 384;
    p.thread_var = p.add_var("t", ir::VarKind::thread);
    p.block_vars = {p.add_var("b", ir::VarKind::block_index)};
    p.launched_var = p.add_var("launched", ir::VarKind::block_index);
    p.grid = {c(4)};
    in = tensor("X", true), out = tensor("Y", false);
    a_tile = shared("A", 128 * 64), b_tile = shared("B", 64 * 64);
    acc = registers("acc", ir::DType::f32, 32), other = registers("other", ir::DType::f32, 32);
    part = registers("part", ir::DType::f16, 32);
    p.barriers = {{"full", 2, 1, p.arena_bytes}, {"empty", 2, 2, p.arena_bytes + 16}};
    p.arena_bytes += 32;
    p.tensor_maps = {{"X_map", in, {c(64), c(128)}, {c(128)}, {64, 128}, 128},
                     {"Y_map", out, {c(64), c(64)}, {c(128)}, {64, 64}, 128}};
    mma = {"wgmma.m64n64k16.f32.f16.f16",
           a_tile,
           b_tile,
           acc,
           c(0),
           c(0),
           c(0),
           {0, 16, 32, 48},
           {0, 16, 32, 48},
           {128, true, 0, 1024},
           {128, true, 0, 1024},
           {}};
  }
  // The body: a role that multiplies, one that copies.
  void finish() {
    p.body.push_back(
        add(Roles{{{"consumer", 0, 256, 232, consumer}, {"producer", 256, 128, 40, producer}}}, ""));
  }
  Roles& roles() { return node<Roles>(p.body.back()); }
  std::vector<std::string> verified() {
    finish();
    return verify_thread_program(p);
  }
  static void expect_reports(const std::vector<std::string>& problems, const std::string& part) {
    for (const std::string& s : problems)
      if (s.find(part) != std::string::npos) return;
    std::string all;
    for (const std::string& s : problems) all += "\n  " + s;
    ADD_FAILURE() << "no report of '" << part << "' among:" << all;
  }
  void expect_report(const std::string& part) { expect_reports(verified(), part); }
  void expect_clean() { EXPECT_EQ(verified(), std::vector<std::string>()); }

  StmtId fence() { return add(WarpgroupFence{}); }
  StmtId commit() { return add(WarpgroupCommit{}); }
  StmtId wait(int64_t pending, std::vector<MemoryId> registers = {}) {
    return add(WarpgroupWait{pending, registers});
  }
  StmtId product() { return add(mma); }
  StmtId write(MemoryId m) {
    return add(Store{m, c(0), p.exprs.const_float(0, p.memory(m).type)}, "main/fill#2");
  }
  StmtId read(MemoryId m) {
    return add(Store{out, c(0), p.exprs.cast(ir::DType::f16, load(m, c(0)))}, "main/copy#3");
  }
  StmtId loop(Block body) {
    return add(Loop{p.add_var("i", ir::VarKind::loop), c(8), LoopForm::serial, std::move(body)});
  }
};

}  // namespace tilegen::thread
