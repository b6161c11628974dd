// Register tiles in matrix registers (Intel AMX; Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 1, "Programming with Intel AMX"). Registers are named here, not allocated by LLVM: C first,
// then a row of B, then A, as one configuration says for all of a kernel's products where they are alike.
#include <array>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/host_emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using ir::DType;
using llvm::Value;
using thread::HostMma;

namespace {

constexpr int kRegisters = 8;

// What LDTILECFG reads: byte 0 palette, 16.. bytes of a row of each register, 48.. its rows.
using Configuration = std::array<uint8_t, 64>;

struct Registers {
  int down, across;
  int c(int i, int j) const { return i * across + j; }
  int b(int j) const { return down * across + j; }
  int a(int i) const { return (down + 1) * across + i % (kRegisters - (down + 1) * across); }
};

Registers registers_of(const HostMma& m) { return {m.mr / m.tile.rows, m.nr / m.tile.columns}; }

bool enough(const Registers& r) {
  return r.down >= 1 && r.across >= 1 && (r.down + 1) * r.across < kRegisters;
}

Configuration configuration_of(const HostMma& m, int element_bytes) {
  Configuration out{};
  out[0] = 1;
  const Registers r = registers_of(m);
  const auto set = [&](int reg, int rows, int row_bytes) {
    out[static_cast<size_t>(16 + 2 * reg)] = static_cast<uint8_t>(row_bytes);
    out[static_cast<size_t>(48 + reg)] = static_cast<uint8_t>(rows);
  };
  constexpr int kSumBytes = 4;
  for (int i = 0; i < r.down; ++i) {
    set(r.a(i), m.tile.rows, m.tile.k * element_bytes);
    for (int j = 0; j < r.across; ++j) set(r.c(i, j), m.tile.rows, m.tile.columns * kSumBytes);
  }
  for (int j = 0; j < r.across; ++j) set(r.b(j), m.tile.k / m.pack, m.tile.columns * m.pack * element_bytes);
  return out;
}

std::optional<llvm::Intrinsic::ID> product_of(const MachineFeatures& f, DType a, DType b, DType c) {
  if (c == DType::f32 && a == b) {
    if (a == DType::bf16 && f.amx_bf16) return llvm::Intrinsic::x86_tdpbf16ps;
    if (a == DType::f16 && f.amx_f16) return llvm::Intrinsic::x86_tdpfp16ps;
  }
  if (c != DType::i32 || !f.amx_i8) return std::nullopt;
  if (a == DType::i8 && b == DType::i8) return llvm::Intrinsic::x86_tdpbssd;
  if (a == DType::i8 && b == DType::u8) return llvm::Intrinsic::x86_tdpbsud;
  if (a == DType::u8 && b == DType::i8) return llvm::Intrinsic::x86_tdpbusd;
  if (a == DType::u8 && b == DType::u8) return llvm::Intrinsic::x86_tdpbuud;
  return std::nullopt;
}

void load_configuration(Builder& b, llvm::Module& module, const Configuration& c) {
  llvm::Constant* bytes = llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef<uint8_t>(c));
  auto* constant = new llvm::GlobalVariable(module, bytes->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                            bytes, "tiles");
  constant->setAlignment(llvm::Align(64));
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {constant});
}

}  // namespace

void HostEmitter::configure_matrix_registers() {
  std::optional<Configuration> shared;
  bool alike = true;
  for (const thread::Stmt& s : program_.stmts) {
    const auto* m = std::get_if<HostMma>(&s.node);
    if (!m || m->tile.k <= 0 || !enough(registers_of(*m))) continue;
    const Configuration here = configuration_of(*m, ir::dtype_bytes(program_.memory(m->a).type));
    if (shared && *shared != here) alike = false;
    shared = here;
  }
  if (!shared) return;
  configured_ = true;
  one_configuration_ = alike;
  if (alike) load_configuration(b_, module_, *shared);
}

// Without it the system saves the registers with each switch of threads, and the core runs slower.
void HostEmitter::release_matrix_registers() {
  if (configured_) b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void HostEmitter::emit_matrix_registers(const HostMma& m) {
  const DType ta = program_.memory(m.a).type, tb = program_.memory(m.b).type, tc = program_.memory(m.c).type;
  const auto product = product_of(features_, ta, tb, tc);
  const Registers r = registers_of(m);
  if (!product || !enough(r))
    return refuse(std::string("a product of ") + ir::dtype_name(ta) + " and " + ir::dtype_name(tb) + " by " +
                  std::to_string(r.down) + "x" + std::to_string(r.across) + " matrix registers");
  const int bytes = ir::dtype_bytes(ta);
  if (!one_configuration_) load_configuration(b_, module_, configuration_of(m, bytes));
  const auto at = [&](Value* p, DType t, int64_t elements) {
    return elements ? b_.CreateConstGEP1_64(storage_type(context_, t), p, static_cast<uint64_t>(elements))
                    : p;
  };
  const auto number = [&](int reg) { return b_.getInt8(static_cast<uint8_t>(reg)); };
  const auto stride = [&](int64_t elements, DType t) {
    return b_.getInt64(static_cast<uint64_t>(elements * ir::dtype_bytes(t)));
  };
  const auto load = [&](int reg, Value* p, Value* row_bytes) {
    b_.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {number(reg), p, row_bytes});
  };
  const auto each_of_c = [&](auto&& body) {
    for (int i = 0; i < r.down; ++i)
      for (int j = 0; j < r.across; ++j) body(r.c(i, j), i * m.tile.rows * m.c_row + j * m.tile.columns);
  };
  Value *a = place(m.a, m.a_index).pointer, *b = place(m.b, m.b_index).pointer,
        *c = place(m.c, m.c_index).pointer;
  each_of_c([&](int reg, int64_t offset) {
    if (m.clear)
      b_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {number(reg)});
    else
      load(reg, at(c, tc, offset), stride(m.c_row, tc));
  });

  const int64_t steps = m.k / m.step(), b_step = m.step() / m.pack * m.b_k;
  const auto multiply = [&](Value* a_at, Value* b_at, int64_t step) {
    for (int j = 0; j < r.across; ++j)
      load(r.b(j), at(b_at, tb, step * b_step + j * m.tile.columns * m.pack), stride(m.b_k, tb));
    for (int i = 0; i < r.down; ++i) {
      load(r.a(i), at(a_at, ta, step * m.a_k + i * m.tile.rows * m.a_row), stride(m.a_row, ta));
      for (int j = 0; j < r.across; ++j)
        b_.CreateIntrinsic(*product, {}, {number(r.c(i, j)), number(r.a(i)), number(r.b(j))});
    }
  };
  const int64_t unroll = steps % 2 == 0 ? 2 : 1, trips = steps / unroll;
  if (trips > 1) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    CountedLoop loop = begin_counted_loop(b_.getInt64(static_cast<uint64_t>(trips)), "k");
    llvm::PHINode *a_at = b_.CreatePHI(a->getType(), 2), *b_at = b_.CreatePHI(b->getType(), 2);
    for (int64_t u = 0; u < unroll; ++u) multiply(a_at, b_at, u);
    a_at->addIncoming(a, before);
    b_at->addIncoming(b, before);
    a_at->addIncoming(at(a_at, ta, unroll * m.a_k), b_.GetInsertBlock());
    b_at->addIncoming(at(b_at, tb, unroll * b_step), b_.GetInsertBlock());
    end_counted_loop(loop);
  } else {
    for (int64_t u = 0; u < steps; ++u) multiply(a, b, u);
  }
  each_of_c([&](int reg, int64_t offset) {
    b_.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {},
                       {number(reg), at(c, tc, offset), stride(m.c_row, tc)});
  });
}

}  // namespace tilegen::codegen
