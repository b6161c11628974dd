// Thread programs by hand, compiled for this machine (or another target level it can run) and called.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "codegen/host_code.h"
#include "codegen/host_cpu.h"
#include "thread/thread_program.h"

namespace tilegen::codegen::test {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using thread::MemoryId;

inline target::Target this_machine() {
  target::Target t;
  t.name = "host";
  t.cpu = host_cpu().name;
  t.features = host_cpu().features;
  return t;
}

inline target::Target baseline() {
  target::Target t;
  t.name = "x86-64-v3";
  t.cpu = "x86-64-v3";
  return t;
}

// The targets this machine can run code of.
inline std::vector<target::Target> runnable_targets() {
  std::vector<target::Target> all;
  if (host_cpu().avx2 && host_cpu().fma && host_cpu().f16c) all.push_back(baseline());
  all.push_back(this_machine());
  return all;
}

struct KernelBuilder {
  thread::ThreadProgram p;

  explicit KernelBuilder(std::string name = "kernel") {
    p.name = std::move(name);
    p.grid = {i(1)};
    p.block_vars = {p.add_var("bx", ir::VarKind::block_index)};
  }
  ExprId i(int64_t v) { return p.exprs.const_int(v); }
  ExprId var(ir::VarId v) { return p.exprs.var(v); }
  ir::VarId loop_var(std::string name) { return p.add_var(std::move(name), ir::VarKind::loop); }

  MemoryId tensor(std::string name, DType t) {
    thread::Memory m;
    m.name = name;
    m.type = t;
    m.alignment = ir::dtype_bytes(t);
    m.param = static_cast<int>(p.params.size());
    MemoryId id = p.add_memory(m);
    thread::Param q;
    q.kind = thread::Param::Kind::tensor;
    q.name = name;
    q.type = t;
    q.memory = id;
    p.params.push_back(q);
    return id;
  }
  ExprId scalar(std::string name, DType t, bool dim = false) {
    ir::VarId v = p.add_var(name, dim ? ir::VarKind::dim : ir::VarKind::scalar);
    p.vars[v.value].type = t;
    thread::Param q;
    q.kind = dim ? thread::Param::Kind::dim : thread::Param::Kind::scalar;
    q.name = name;
    q.type = t;
    q.var = v;
    p.params.push_back(q);
    return p.exprs.var(v, t);
  }
  MemoryId arena(std::string name, DType t, int64_t elements) {
    thread::Memory m;
    m.name = std::move(name);
    m.space = thread::Space::local;
    m.type = t;
    m.elements = elements;
    m.alignment = 64;
    m.arena_offset = p.arena_bytes;
    p.arena_bytes += (elements * ir::dtype_bytes(t) + 63) / 64 * 64;
    return p.add_memory(m);
  }
  MemoryId registers(std::string name, DType t, int64_t elements) {
    thread::Memory m;
    m.name = std::move(name);
    m.space = thread::Space::local;
    m.type = t;
    m.elements = elements;
    m.alignment = ir::dtype_bytes(t);
    m.in_registers = true;
    return p.add_memory(m);
  }
  ExprId load(MemoryId m, ExprId index, ExprId predicate = {}) {
    std::vector<ExprId> at{index};
    if (predicate.valid()) at.push_back(predicate);
    return p.exprs.load(m, p.memory(m).type, at);
  }
  thread::StmtId store(MemoryId m, ExprId index, ExprId value, ExprId predicate = {},
                       bool streaming = false) {
    return p.add(thread::Store{m, index, value, predicate, streaming}, "");
  }
  thread::StmtId loop(thread::LoopForm form, ir::VarId v, ExprId extent, thread::Block body) {
    return p.add(thread::Loop{v, extent, form, std::move(body)}, "");
  }
};

// Compiled code with the memory a call needs.
class Compiled {
 public:
  Compiled(const thread::ThreadProgram& p, const target::Target& t, HostCodegenOptions options = {}) {
    for (const std::string& broken : thread::verify_thread_program(p)) ADD_FAILURE() << broken;
    auto r = compile_host({&p, 1}, t, options);
    if (!r) {
      ADD_FAILURE() << r.error().to_text();
      return;
    }
    result_ = *r;
    arena_.resize(static_cast<size_t>(p.arena_bytes) + 64);
  }
  explicit operator bool() const { return result_.code != nullptr; }
  const HostCodeResult& result() const { return result_; }
  void run(std::vector<uint64_t> params, std::vector<int64_t> grid = {1}) {
    if (!result_.code) return;
    int64_t blocks = 1;
    for (int64_t g : grid) blocks *= g;
    run_blocks(std::move(params), std::move(grid), 0, blocks);
  }
  void run_blocks(std::vector<uint64_t> params, std::vector<int64_t> grid, int64_t first, int64_t last) {
    auto at = reinterpret_cast<uintptr_t>(arena_.data());
    result_.code->entry(0)(params.data(), grid.data(), first, last,
                           reinterpret_cast<void*>((at + 63) / 64 * 64), &go_on_);
  }

 private:
  HostCodeResult result_;
  std::vector<char> arena_;
  const int32_t go_on_ = 0;
};

template <class T>
uint64_t slot(T* p) {
  return reinterpret_cast<uint64_t>(p);
}

// Typed elements in a byte buffer, read and written through the dtype contract.
class Elements {
 public:
  Elements(DType t, size_t n) : type_(t), bytes_(n * static_cast<size_t>(ir::dtype_bytes(t)) + 64) {}
  DType type() const { return type_; }
  uint64_t slot() { return reinterpret_cast<uint64_t>(data()); }
  char* data() { return bytes_.data() + (64 - reinterpret_cast<uintptr_t>(bytes_.data()) % 64) % 64; }
  void set(size_t i, ir::ScalarValue v) {
    uint64_t bits = ir::is_float(type_) ? ir::float_to_bits(type_, v.f) : static_cast<uint64_t>(v.i);
    std::memcpy(data() + i * size(), &bits, size());
  }
  void set_bits(size_t i, uint64_t bits) { std::memcpy(data() + i * size(), &bits, size()); }
  uint64_t bits(size_t i) {
    uint64_t bits = 0;
    std::memcpy(&bits, data() + i * size(), size());
    return bits;
  }
  ir::ScalarValue get(size_t i) {
    if (ir::is_float(type_)) return {type_, 0, ir::float_from_bits(type_, bits(i))};
    return {type_, ir::wrap_to(type_, static_cast<int64_t>(bits(i))), 0};
  }

 private:
  size_t size() const { return static_cast<size_t>(ir::dtype_bytes(type_)); }
  DType type_;
  std::vector<char> bytes_;
};

// A random value with a good share of the special ones.
inline ir::ScalarValue random_value(DType t, std::mt19937_64& random) {
  uint64_t r = random();
  if (ir::is_bool(t)) return {t, static_cast<int64_t>(r & 1), 0};
  if (ir::is_float(t)) {
    static const double special[] = {0.0, -0.0,  1,     -1,    INFINITY, -INFINITY,
                                     NAN, 1e-40, -3e38, 65504, 0.5,      1e-7};
    double v = r % 4 == 0 ? special[(r >> 8) % std::size(special)]
               : r % 4 == 1
                   ? ir::float_from_bits(t, random() & ((uint64_t{1} << (ir::dtype_bits(t) - 1) << 1) - 1))
                   : static_cast<double>(static_cast<int64_t>(random()) >> 32) / (1 << 24);
    return {t, 0, ir::round_to(t, v)};
  }
  static const int64_t special[] = {0,         1,         -1,        2,         -2,   3,  7,
                                    INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -128, 127};
  int64_t v =
      r % 2 ? special[(r >> 8) % std::size(special)] : static_cast<int64_t>(random()) >> (random() % 64);
  return {t, ir::wrap_to(t, v), 0};
}

// Equal, all NaN being one value and -0 equal to +0.
inline bool same(ir::ScalarValue a, ir::ScalarValue b) {
  if (!ir::is_float(a.type)) return a.i == b.i;
  if (a.f != a.f || b.f != b.f) return a.f != a.f && b.f != b.f;
  return a.f == b.f;
}

}  // namespace tilegen::codegen::test
