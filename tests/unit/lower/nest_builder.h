// Thread programs by hand, for the steps behind lowering. All memories hold i64.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::lower::test {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using ir::VarId;
using thread::Block;
using thread::LoopForm;
using thread::MemoryId;
using thread::StmtId;

struct NestBuilder {
  thread::ThreadProgram p;
  VarId by, bx;

  NestBuilder() {
    p.name = "kernel";
    by = p.add_var("by", ir::VarKind::block_index);
    bx = p.add_var("bx", ir::VarKind::block_index);
    p.block_vars = {by, bx};
    p.grid = {c(2), c(3)};
  }

  ExprId c(int64_t v) { return p.exprs.const_int(v); }
  ExprId use(VarId v) { return p.exprs.var(v); }
  VarId var(std::string name) { return p.add_var(std::move(name), ir::VarKind::loop); }
  ExprId add(ExprId a, ExprId b) { return p.exprs.add(a, b); }
  ExprId add(ExprId a, int64_t b) { return p.exprs.add(a, b); }
  ExprId mul(ExprId a, int64_t b) { return p.exprs.mul(a, b); }
  // i * 8 + lane
  ExprId at(VarId i, VarId lane) { return add(mul(use(i), 8), use(lane)); }

  MemoryId tensor(const std::string& name, bool read_only = false) {
    thread::Memory m;
    m.name = name;
    m.type = DType::i64;
    m.alignment = 8;
    m.read_only = read_only;
    m.param = static_cast<int>(p.params.size());
    MemoryId id = p.add_memory(m);
    thread::Param param;
    param.name = name;
    param.type = DType::i64;
    param.memory = id;
    p.params.push_back(param);
    return id;
  }
  MemoryId tile(const std::string& name, int64_t elements = 256) {
    thread::Memory m;
    m.name = name;
    m.space = thread::Space::local;
    m.type = DType::i64;
    m.elements = elements;
    m.alignment = 64;
    m.arena_offset = (p.arena_bytes + 63) / 64 * 64;
    p.arena_bytes = m.arena_offset + elements * 8;
    return p.add_memory(m);
  }
  MemoryId registers(const std::string& name, int64_t elements) {
    thread::Memory m;
    m.name = name;
    m.space = thread::Space::local;
    m.type = DType::i64;
    m.elements = elements;
    m.alignment = 8;
    m.in_registers = true;
    return p.add_memory(m);
  }

  ExprId load(MemoryId m, ExprId index, ExprId predicate = {}) {
    std::vector<ExprId> operands = {index};
    if (predicate) operands.push_back(predicate);
    return p.exprs.load(m, DType::i64, operands);
  }
  StmtId store(MemoryId m, ExprId index, ExprId value, ExprId predicate = {}) {
    return p.add(thread::Store{m, index, value, predicate, false, ExprId()}, "op");
  }
  StmtId loop(VarId v, ExprId extent, LoopForm form, Block body) {
    return p.add(thread::Loop{v, extent, form, std::move(body)}, "op");
  }
  // serial i in 0..4, vectorized lane in 0..8
  StmtId nest(VarId i, VarId lane, Block stores) {
    return loop(i, c(4), LoopForm::serial, {loop(lane, c(8), LoopForm::vectorized, std::move(stores))});
  }

  void expect_legal() {
    for (const std::string& broken : thread::verify_thread_program(p))
      ADD_FAILURE() << broken << "\n" << text();
  }
  std::string text() const { return thread::print_thread_program(p); }
  // The statements, without the header and the origins.
  std::string body() const {
    std::string all = text(), out;
    all = all.substr(all.find("body\n") + 5);
    for (size_t at = 0; at < all.size();) {
      size_t end = all.find('\n', at);
      std::string line = all.substr(at, end - at);
      out += line.substr(0, line.find("  ; ")) + "\n";
      at = end + 1;
    }
    return out;
  }
};

}  // namespace tilegen::lower::test
