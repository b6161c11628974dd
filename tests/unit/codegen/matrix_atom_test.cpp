// HostMma against a naive loop, over shapes, element types and packs, on every target this machine runs.
#include "amx_emulator.h"
#include "kernel_builder.h"
#include "support/diag_codes.h"
#include "target/target.h"

namespace tilegen::codegen::test {
namespace {

struct Case {
  DType a, b, c;
  int mr, nr, k, pack;
  bool clear;
  thread::MatrixRegisters tile = {};
};

void check(const Case& q, const target::Target& target) {
  SCOPED_TRACE(std::string(ir::dtype_name(q.a)) + "*" + ir::dtype_name(q.b) + "->" + ir::dtype_name(q.c) +
               " mr=" + std::to_string(q.mr) + " nr=" + std::to_string(q.nr) + " k=" + std::to_string(q.k) +
               " pack=" + std::to_string(q.pack) + " tile " + std::to_string(q.tile.rows) + "x" +
               std::to_string(q.tile.columns) + "x" + std::to_string(q.tile.k) + " " + target.name);
  KernelBuilder kb;
  MemoryId a = kb.tensor("A", q.a), b = kb.tensor("B", q.b), c = kb.tensor("C", q.c);
  thread::HostMma m;
  m.mr = q.mr, m.nr = q.nr, m.k = q.k, m.pack = q.pack;
  m.a = a, m.b = b, m.c = c;
  m.a_index = kb.i(3), m.b_index = kb.i(5), m.c_index = kb.i(2);
  m.tile = q.tile;
  const int step = static_cast<int>(m.step());
  m.a_row = q.k + step, m.a_k = step, m.b_k = q.nr * q.pack + 1, m.c_row = q.nr + 3;
  m.clear = q.clear;
  kb.p.body = {kb.p.add(m, "gemm")};
  Compiled code(kb.p, target);
  ASSERT_TRUE(code);

  size_t an = 3 + q.mr * (q.k + step), bn = 5 + (q.k / q.pack + 1) * m.b_k, cn = 2 + q.mr * m.c_row;
  Elements A(q.a, an), B(q.b, bn), C(q.c, cn);
  std::mt19937_64 random(q.mr * 131 + q.nr * 7 + q.k);
  auto fill = [&](Elements& e, size_t n) {
    for (size_t x = 0; x < n; ++x) {
      if (ir::is_float(e.type()))
        e.set(x, {e.type(), 0, static_cast<double>(static_cast<int>(random() % 17) - 8) / 4});
      else
        e.set(x, {e.type(), ir::wrap_to(e.type(), static_cast<int64_t>(random())), 0});
    }
  };
  fill(A, an), fill(B, bn), fill(C, cn);
  std::vector<double> want_f(cn);
  std::vector<int64_t> want_i(cn);
  for (size_t x = 0; x < cn; ++x) want_f[x] = C.get(x).f, want_i[x] = C.get(x).i;
  for (int i = 0; i < q.mr; ++i)
    for (int j = 0; j < q.nr; ++j) {
      size_t at = 2 + i * m.c_row + j;
      double f = q.clear ? 0 : want_f[at];
      uint64_t n = q.clear ? 0 : static_cast<uint64_t>(want_i[at]);
      for (int k = 0; k < q.k; ++k) {
        auto x = A.get(3 + i * m.a_row + (k / step) * m.a_k + k % step);
        auto y = B.get(5 + (k / q.pack) * m.b_k + j * q.pack + k % q.pack);
        f += x.f * y.f;  // small multiples of 1/16: exact in every order
        n += static_cast<uint64_t>(x.i) * static_cast<uint64_t>(y.i);
      }
      want_f[at] = ir::is_float(q.c) ? ir::round_to(q.c, f) : 0;
      want_i[at] = ir::is_float(q.c) ? 0 : ir::wrap_to(q.c, static_cast<int64_t>(n));
    }
  code.run({A.slot(), B.slot(), C.slot()});
  for (size_t x = 0; x < cn; ++x) {
    ASSERT_EQ(C.get(x).f, want_f[x]) << "element " << x;
    ASSERT_EQ(C.get(x).i, want_i[x]) << "element " << x;
  }
}

TEST(MatrixAtom, Shapes) {
  for (const auto& t : runnable_targets())
    for (int mr : {1, 6, 14})
      for (int nr : {1, 6, 24, 32})
        for (int k : {1, 5, 32}) check({DType::f32, DType::f32, DType::f32, mr, nr, k, 1, k % 2 == 0}, t);
}

TEST(MatrixAtom, Types) {
  using D = DType;
  for (const auto& t : runnable_targets())
    for (int nr : {5, 16, 24}) {
      const bool clear = nr == 16;
      check({D::f64, D::f64, D::f64, 4, nr, 12, 1, clear}, t);
      check({D::f16, D::f16, D::f32, 4, nr, 12, 1, clear}, t);
      check({D::f16, D::f16, D::f16, 4, nr, 12, 1, clear}, t);
      check({D::f16, D::f16, D::f32, 4, nr, 12, 2, clear}, t);
      check({D::bf16, D::bf16, D::f32, 4, nr, 12, 1, clear}, t);
      check({D::bf16, D::bf16, D::f32, 4, nr, 12, 2, clear}, t);
      check({D::bf16, D::f32, D::f32, 4, nr, 12, 1, clear}, t);
      check({D::i32, D::i32, D::i32, 4, nr, 12, 1, clear}, t);
      for (int pack : {1, 4})
        for (D a : {D::i8, D::u8})
          for (D b : {D::i8, D::u8}) check({a, b, D::i32, 4, nr, 24, pack, clear}, t);
    }
}

// The target whose products are on matrix registers; carried out by software where the processor has none.
std::optional<target::Target> with_matrix_registers() {
  const HostCpu& cpu = host_cpu();
  if (!cpu.avx512_bf16 || !cpu.avx512_vnni || !amxemu::emulate_amx()) return std::nullopt;
  return *target::find_target("x86-64-v4-amx");
}

TEST(MatrixAtom, MatrixRegisters) {
  using D = DType;
  const auto t = with_matrix_registers();
  if (!t) GTEST_SKIP() << "no 512-bit vectors of 16-bit floats and bytes";
  for (bool clear : {false, true}) {
    for (auto [mr, nr, rows, columns] : {std::array{32, 32, 16, 16},
                                         {16, 48, 16, 16},
                                         {48, 16, 16, 16},
                                         {5, 7, 5, 7},
                                         {24, 20, 12, 10},
                                         {1, 16, 1, 16}})
      for (auto [k, step] : {std::array{32, 32}, {64, 32}, {160, 32}, {20, 20}, {6, 2}, {72, 24}})
        check({D::bf16, D::bf16, D::f32, mr, nr, k, 2, clear, {rows, columns, step}}, *t);
    for (D a : {D::i8, D::u8})
      for (D b : {D::i8, D::u8})
        for (auto [k, step] : {std::array{64, 64}, {192, 64}, {40, 20}})
          check({a, b, D::i32, 32, 24, k, 4, clear, {16, 12, step}}, *t);
  }
  EXPECT_TRUE(host_cpu().amx_bf16 || amxemu::emulated_instructions() > 1000) << "no product was made of them";
}

// Two products that divide differently change the registers' shapes between them.
TEST(MatrixAtom, ProductsOfSeveralShapes) {
  const auto t = with_matrix_registers();
  if (!t) GTEST_SKIP() << "no 512-bit vectors of 16-bit floats and bytes";
  KernelBuilder kb;
  const MemoryId a = kb.tensor("A", DType::bf16), b = kb.tensor("B", DType::bf16);
  std::vector<int> sizes = {32, 8};
  for (int n : sizes) {
    thread::HostMma m;
    m.mr = m.nr = n, m.k = 8, m.pack = 2, m.clear = true;
    m.tile = {std::min(n, 16), std::min(n, 16), 8};
    m.a = a, m.b = b, m.c = kb.tensor("C" + std::to_string(n), DType::f32);
    m.a_index = m.b_index = m.c_index = kb.i(0);
    m.a_row = 8, m.a_k = 8, m.b_k = 2 * n, m.c_row = n;
    kb.p.body.push_back(kb.p.add(m, "gemm"));
  }
  Compiled code(kb.p, *t);
  ASSERT_TRUE(code);
  Elements A(DType::bf16, 32 * 8), B(DType::bf16, 32 * 8), large(DType::f32, 32 * 32),
      small(DType::f32, 8 * 8);
  for (size_t x = 0; x < 32 * 8; ++x) {
    A.set(x, {DType::bf16, 0, static_cast<double>(x % 7) - 3});
    B.set(x, {DType::bf16, 0, static_cast<double>(x % 5) - 2});
  }
  code.run({A.slot(), B.slot(), large.slot(), small.slot()});
  for (int n : sizes)
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        double want = 0;
        for (int k = 0; k < 8; ++k)
          want += A.get(static_cast<size_t>(i * 8 + k)).f *
                  B.get(static_cast<size_t>(k / 2 * 2 * n + j * 2 + k % 2)).f;
        ASSERT_EQ((n == 32 ? large : small).get(static_cast<size_t>(i * n + j)).f, want)
            << n << " " << i << " " << j;
      }
}

TEST(MatrixAtom, RefusesMatrixRegistersThatTheTargetLacks) {
  KernelBuilder kb;
  thread::HostMma m;
  m.mr = m.nr = 16, m.k = 32, m.pack = 2, m.tile = {16, 16, 32};
  m.a = kb.tensor("A", DType::bf16), m.b = kb.tensor("B", DType::bf16), m.c = kb.tensor("C", DType::f32);
  m.a_index = m.b_index = m.c_index = kb.i(0);
  m.a_row = 32, m.a_k = 32, m.b_k = 32, m.c_row = 16;
  kb.p.body = {kb.p.add(m, "gemm")};
  auto r = compile_host({&kb.p, 1}, *target::find_target("x86-64-v4"), {});
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().to_text().find("bf16 and bf16 by 1x1 matrix registers"), std::string::npos)
      << r.error().to_text();
}

TEST(MatrixAtom, RefusesMixedTypes) {
  KernelBuilder kb;
  thread::HostMma m;
  m.a = kb.tensor("A", DType::f32), m.b = kb.tensor("B", DType::i8), m.c = kb.tensor("C", DType::f32);
  m.a_index = m.b_index = m.c_index = kb.i(0);
  kb.p.body = {kb.p.add(m, "gemm")};
  auto r = compile_host({&kb.p, 1}, this_machine(), {});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::backend_failure);
  EXPECT_NE(r.error().to_text().find("f32 by i8"), std::string::npos) << r.error().to_text();
}

}  // namespace
}  // namespace tilegen::codegen::test
