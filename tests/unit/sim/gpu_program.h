// Thread programs of GPU blocks by hand, and their simulation on vectors of the test.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "sim/simulator.h"

namespace tilegen::sim::test {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using thread::LoopForm;
using thread::MemoryId;

// An expression with operators.
struct E {
  ir::ExprPool* pool = nullptr;
  ExprId id;
};
inline E same(E a, int64_t b) { return {a.pool, a.pool->const_int(b, a.pool->type(a.id))}; }
inline E op(ExprOp o, E a, E b) { return {a.pool, a.pool->binary(o, a.id, b.id)}; }
#define TILEGEN_TEST_OPERATOR(symbol, name)                             \
  inline E operator symbol(E a, E b) { return op(ExprOp::name, a, b); } \
  inline E operator symbol(E a, int64_t b) { return op(ExprOp::name, a, same(a, b)); }
TILEGEN_TEST_OPERATOR(+, add)
TILEGEN_TEST_OPERATOR(-, sub)
TILEGEN_TEST_OPERATOR(*, mul)
TILEGEN_TEST_OPERATOR(/, floordiv)
TILEGEN_TEST_OPERATOR(%, floormod)
TILEGEN_TEST_OPERATOR(^, bit_xor)
TILEGEN_TEST_OPERATOR(&, bit_and)
TILEGEN_TEST_OPERATOR(<, lt)
TILEGEN_TEST_OPERATOR(==, eq)
#undef TILEGEN_TEST_OPERATOR
inline E cast(DType t, E a) { return {a.pool, a.pool->cast(t, a.id)}; }

struct GpuProgram {
  thread::ThreadProgram p;
  std::vector<thread::Block*> open;

  explicit GpuProgram(int64_t threads, int64_t blocks = 1) {
    p.name = "kernel";
    p.machine = *target::find_target("sm_90a");
    p.threads = threads;
    p.thread_var = p.add_var("t", ir::VarKind::thread);
    p.block_vars = {p.add_var("b", ir::VarKind::block_index)};
    p.grid = {p.exprs.const_int(blocks)};
    open = {&p.body};
  }
  GpuProgram(const GpuProgram&) = delete;

  E i(int64_t v) { return {&p.exprs, p.exprs.const_int(v)}; }
  E num(double v, DType t) { return {&p.exprs, p.exprs.const_number(v, t)}; }
  E thread() { return {&p.exprs, p.exprs.var(p.thread_var)}; }
  E lane() { return thread() % 32; }
  E warp() { return thread() / 32; }
  E block() { return {&p.exprs, p.exprs.var(p.block_vars[0])}; }

  MemoryId tensor(const std::string& name, DType t) {
    thread::Memory m;
    m.name = name, m.type = t, m.alignment = ir::dtype_bytes(t), m.param = static_cast<int>(p.params.size());
    const MemoryId id = p.add_memory(m);
    p.params.push_back({thread::Param::Kind::tensor, name, t, {}, id});
    return id;
  }
  E dim(const std::string& name) {
    const ir::VarId v = p.add_var(name, ir::VarKind::dim);
    p.params.push_back({thread::Param::Kind::dim, name, DType::i64, v, {}});
    return {&p.exprs, p.exprs.var(v)};
  }
  // At `offset` of the arena; -1: after what is there.
  MemoryId shared(const std::string& name, DType t, int64_t elements, int64_t slots = 1,
                  int64_t offset = -1) {
    thread::Memory m;
    m.name = name, m.type = t, m.space = thread::Space::shared, m.elements = elements, m.alignment = 128,
    m.slots = slots;
    m.arena_offset = offset >= 0 ? offset : (p.arena_bytes + 127) / 128 * 128;
    p.arena_bytes = std::max(p.arena_bytes, m.arena_offset + elements * ir::dtype_bytes(t));
    return p.add_memory(m);
  }
  MemoryId registers(const std::string& name, DType t, int64_t elements) {
    thread::Memory m;
    m.name = name, m.type = t, m.space = thread::Space::local, m.elements = elements, m.alignment = 16,
    m.in_registers = true;
    return p.add_memory(m);
  }

  E load(MemoryId m, E index) {
    const ExprId at[] = {index.id};
    return {&p.exprs, p.exprs.load(m, p.memory(m).type, at)};
  }
  E load_if(MemoryId m, E index, E predicate) {
    const ExprId at[] = {index.id, predicate.id};
    return {&p.exprs, p.exprs.load(m, p.memory(m).type, at)};
  }

  thread::StmtId add(thread::StmtNode node, const std::string& origin) {
    const thread::StmtId id = p.add(std::move(node), origin);
    open.back()->push_back(id);
    return id;
  }
  void store(MemoryId m, E index, E value, const std::string& origin = "store") {
    add(thread::Store{m, index.id, value.id, {}}, origin);
  }
  void store_if(MemoryId m, E index, E value, E predicate, const std::string& origin = "store") {
    add(thread::Store{m, index.id, value.id, predicate.id}, origin);
  }
  void barrier(int id = 0, int64_t threads = 0, bool arrive = false, const std::string& origin = "barrier") {
    add(thread::Barrier{id, threads, arrive}, origin);
  }
  void copy_async(MemoryId dst, E to, MemoryId src, E from, int bytes = 16,
                  const std::string& origin = "copy") {
    add(thread::AsyncCopy{dst, to.id, src, from.id, bytes, {}}, origin);
  }
  void commit() { add(thread::AsyncCommit{}, "commit"); }
  void wait(int64_t pending) { add(thread::AsyncWait{pending}, "wait"); }

  void loop(E extent, LoopForm form, const std::function<void(E)>& body, const std::string& name = "i") {
    const ir::VarId v = p.add_var(name, ir::VarKind::loop);
    thread::Loop loop{v, extent.id, form, {}};
    open.push_back(&loop.body);
    body({&p.exprs, p.exprs.var(v)});
    open.pop_back();
    add(std::move(loop), "loop");
  }
  void branch(E condition, const std::function<void()>& then,
              const std::function<void()>& otherwise = nullptr) {
    thread::Branch branch{condition.id, {}, {}};
    open.push_back(&branch.then_body);
    then();
    open.pop_back();
    if (otherwise) {
      open.push_back(&branch.else_body);
      otherwise();
      open.pop_back();
    }
    add(std::move(branch), "if");
  }

  std::vector<std::string> problems() const { return thread::verify_thread_program(p); }
};

// A launch on vectors: tensors and dims in parameter order.
struct Arguments {
  std::vector<uint64_t> slots;
  std::vector<TensorExtent> extents;

  template <class T>
  Arguments& tensor(std::vector<T>& v) {
    slots.push_back(std::bit_cast<uint64_t>(v.data()));
    extents.push_back({0, static_cast<int64_t>(v.size() * sizeof(T))});
    return *this;
  }
  Arguments& dim(int64_t v) {
    slots.push_back(static_cast<uint64_t>(v));
    extents.push_back({});
    return *this;
  }
};

inline target::Target sm80() { return *target::find_target("sm_80"); }

inline SimResult run(const GpuProgram& g, const Arguments& a, const SimOptions& options = {},
                     const target::Target& target = sm80()) {
  EXPECT_EQ(g.problems(), std::vector<std::string>());
  auto result = simulate(g.p, target, a.slots, a.extents, options);
  EXPECT_TRUE(static_cast<bool>(result)) << (result ? "" : result.error().to_text());
  return result ? *result : SimResult{};
}

inline std::string texts(const SimResult& r) {
  std::string all;
  for (const Finding& f : r.findings) all += f.to_text() + "\n";
  return all;
}

// Runs under every order and both async forms; the same findings each time are what the checks promise.
inline void for_each_schedule(const std::function<void(const SimOptions&)>& body) {
  for (WarpOrder order : {WarpOrder::round_robin, WarpOrder::reversed, WarpOrder::random})
    for (bool latest : {false, true}) {
      SimOptions o;
      o.order = order;
      o.async_latest = latest;
      o.seed = 7;
      o.workers = 1;
      body(o);
    }
}

inline std::string order_name(const SimOptions& o) {
  const char* orders[] = {"round robin", "reversed", "random"};
  return std::string(orders[static_cast<size_t>(o.order)]) + (o.async_latest ? ", latest" : ", earliest");
}

inline float f16_value(uint16_t bits) { return static_cast<float>(ir::float_from_bits(DType::f16, bits)); }
inline uint16_t f16_bits(double v) { return static_cast<uint16_t>(ir::float_to_bits(DType::f16, v)); }

}  // namespace tilegen::sim::test
