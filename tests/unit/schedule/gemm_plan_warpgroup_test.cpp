// Warpgroup gemms: operands where the hardware looks for them, accumulators where it leaves them, splits by
// cost.
#include <gtest/gtest.h>

#include "analysis/warpgroup_operand.h"
#include "ir/op_kinds.h"
#include "ir/text.h"
#include "layout/tensor_tile.h"
#include "schedule/products/gemm_plan.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

using analysis::matrix_dims;
using analysis::warpgroup_operand_form;

struct Gemm {
  ir::Program program;
  const ir::TileOp* op = nullptr;
};

Gemm gemm(int64_t m, int64_t n, int64_t k, const std::string& flags = "", const std::string& a = "shared f16",
          const std::string& b = "shared f16", const std::string& c = "f32") {
  auto shape = [](int64_t rows, int64_t cols, bool swap) {
    return "[" + std::to_string(swap ? cols : rows) + ", " + std::to_string(swap ? rows : cols) + "]\n";
  };
  const bool ta = flags.find("transpose_a") != std::string::npos,
             tb = flags.find("transpose_b") != std::string::npos;
  const std::string text = "tl 1 program p\ntensor T: f32[1]\nkernel k grid (b: 1) {\n alloc A: " + a +
                           shape(m, k, ta) + " alloc B: " + b + shape(k, n, tb) + " alloc C: fragment " + c +
                           shape(m, n, false) + " gemm A, B -> C {clear" + flags + "}\n}\n";
  Gemm g;
  auto p = ir::parse_program(text, "gemm.tl", Limits{});
  if (!p) {
    ADD_FAILURE() << p.error().to_text() << text;
    return g;
  }
  g.program = std::move(*p);
  g.op = g.program.as<ir::TileOp>(g.program.kernels[0].body.back());
  return g;
}

const target::Target& hopper() {
  static const target::Target t = *target::find_target("sm_90a");
  return t;
}

Expected<GemmPlan> plan(const Gemm& g, int64_t threads, const plan::OpPlan* given = nullptr) {
  return plan_gemm(g.program, *g.op, hopper(), threads, given, "k/gemm#0", {});
}

// The element of the operand that the instruction reads as (row, k) of the part at byte `start` (PTX ISA,
// "Shared memory matrix layout"): the canonical layout of the descriptor, then the XOR on the address.
int64_t hardware_byte(const thread::MatrixForm& f, int64_t start, int64_t row, int64_t k, int bytes) {
  // line of the pattern, bytes along it
  const int64_t rows = f.k_major ? row : k, along = (f.k_major ? k : row) * bytes;
  int64_t at = start + rows % 8 * f.swizzle + rows / 8 * f.stride_bytes + along % f.swizzle;
  if (!f.k_major) at += along / f.swizzle * f.leading_bytes;
  return at ^ ((at >> 7) & (f.swizzle / 16 - 1)) << 4;
}

void expect_operand(const layout::Layout& l, const MatrixDims& dims, int side, int64_t part, int bytes = 2) {
  const int64_t step = 32 / bytes;
  const auto o = warpgroup_operand_form(l, dims, side, bytes, part, step);
  ASSERT_TRUE(o) << l.to_text();
  const int64_t rows = dims.shape[static_cast<size_t>(side == 0 ? dims.row : dims.col)],
                ks = dims.shape[static_cast<size_t>(side == 0 ? dims.col : dims.row)];
  ASSERT_EQ(static_cast<int64_t>(o->steps.size()), ks / step);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < ks; ++k) {
      const int64_t start = (r / part * o->row_stride + o->steps[static_cast<size_t>(k / step)]) * bytes;
      EXPECT_EQ(start % 16, 0);
      const auto index = side == 0 ? dims.at<int64_t>(r, k, 0) : dims.at<int64_t>(k, r, 0);
      ASSERT_EQ(hardware_byte(o->form, start, r % part, k % step, bytes), l.offset(index) * bytes)
          << l.to_text() << " side " << side << " row " << r << " k " << k;
    }
}

TEST(WarpgroupGemm, OperandsLieWhereTheHardwareReadsThem) {
  std::set<int> swizzles[2];
  for (const char* flags : {"", ", transpose_a", ", transpose_b", ", transpose_a, transpose_b"})
    for (int64_t k : {16, 32, 48, 64, 80, 128})
      for (int64_t n : {32, 48, 64, 96, 192, 256}) {
        const Gemm g = gemm(128, n, k, flags);
        const auto planned = plan(g, 256);
        ASSERT_TRUE(planned) << planned.error().to_text();
        ASSERT_EQ(planned->engine, plan::Engine::warpgroup_mma) << planned->note;
        const auto atom = target::find_warpgroup_atom(hopper(), planned->atom);
        ASSERT_TRUE(atom) << planned->atom;
        for (int side : {0, 1}) {
          const MatrixDims dims =
              matrix_dims(g.program, g.op->operands[static_cast<size_t>(side)],
                          g.op->flag(side == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b));
          const layout::Layout& l = side == 0 ? *planned->a_memory : *planned->b_memory;
          expect_operand(l, dims, side, side == 0 ? 64 : atom->n);
          // And the copy engine can put them there.
          std::string why;
          const auto tile = layout::tensor_tile(l, 1, 2, &why);
          ASSERT_TRUE(tile) << why;
          EXPECT_EQ(tile->inner * 2, tile->swizzle);
          swizzles[side].insert(tile->swizzle);
        }
      }
  EXPECT_EQ(swizzles[0], (std::set<int>{32, 64, 128}));
  EXPECT_EQ(swizzles[1], (std::set<int>{32, 64, 128}));
}

TEST(WarpgroupGemm, OperandsOfBytesLieAlongK) {
  for (const char* types : {"i8 i8 i32", "e4m3 e5m2 f32"})
    for (int64_t k : {32, 64, 96, 128, 256}) {
      const std::string t = types, a = t.substr(0, t.find(' ')), rest = t.substr(t.find(' ') + 1);
      const Gemm g = gemm(128, 96, k, ", transpose_b", "shared " + a,
                          "shared " + rest.substr(0, rest.find(' ')), rest.substr(rest.find(' ') + 1));
      const auto planned = plan(g, 256);
      ASSERT_TRUE(planned) << planned.error().to_text();
      ASSERT_EQ(planned->engine, plan::Engine::warpgroup_mma) << planned->note;
      expect_operand(*planned->a_memory, matrix_dims(g.program, g.op->operands[0], false), 0, 64, 1);
      expect_operand(*planned->b_memory, matrix_dims(g.program, g.op->operands[1], true), 1,
                     target::find_warpgroup_atom(hopper(), planned->atom)->n, 1);
    }
}

TEST(WarpgroupGemm, OtherLayoutsAreNoOperands) {
  const MatrixDims dims{{64, 64}, 0, 1};
  const auto plain = layout::Layout::row_major(dims.shape);
  EXPECT_TRUE(warpgroup_operand_form(*plain.with_swizzle({3, 4, 3}, 2), dims, 0, 2, 64, 16));
  EXPECT_FALSE(warpgroup_operand_form(plain, dims, 0, 2, 64, 16));
  EXPECT_FALSE(warpgroup_operand_form(*plain.with_swizzle({2, 4, 3}, 2), dims, 0, 2, 64, 16));
  EXPECT_FALSE(warpgroup_operand_form(*plain.with_swizzle({3, 4, 4}, 2), dims, 0, 2, 64, 16));
  EXPECT_FALSE(warpgroup_operand_form(layout::Layout::padded_row_major(dims.shape, 8), dims, 0, 2, 64, 16));
  EXPECT_FALSE(warpgroup_operand_form(*plain.with_swizzle({3, 4, 3}, 2), dims, 0, 2, 48, 16));
}

struct Split {
  int64_t m, n, threads;
  const char* flags;
  const char* atom;
  int64_t warps_m, warps_n;
};

TEST(WarpgroupGemm, SplitsTakeLeastSharedMemoryTraffic) {
  const Split rows[] = {
      {128, 256, 256, "", "wgmma.m64n256k16.f32.f16.f16", 8, 1},
      {128, 128, 256, "", "wgmma.m64n128k16.f32.f16.f16", 8, 1},
      {128, 128, 128, "", "wgmma.m64n128k16.f32.f16.f16", 4, 1},
      {64, 256, 256, "", "wgmma.m64n128k16.f32.f16.f16", 4, 2},
      {64, 256, 128, "", "wgmma.m64n256k16.f32.f16.f16", 4, 1},
      {256, 128, 256, "", "wgmma.m64n128k16.f32.f16.f16", 8, 1},
      {192, 128, 384, "", "wgmma.m64n128k16.f32.f16.f16", 12, 1},
      {128, 192, 256, "", "wgmma.m64n192k16.f32.f16.f16", 8, 1},
      {128, 256, 256, ", policy=full_col", "wgmma.m64n128k16.f32.f16.f16", 4, 2},
      {128, 320, 256, "", "wgmma.m64n160k16.f32.f16.f16", 8, 1},
      {64, 24, 128, ", transpose_b", "wgmma.m64n24k16.f32.f16.f16", 4, 1},
  };
  for (const Split& r : rows) {
    const Gemm g = gemm(r.m, r.n, 64, r.flags);
    const auto planned = plan(g, r.threads);
    ASSERT_TRUE(planned) << planned.error().to_text();
    EXPECT_EQ(planned->atom, r.atom) << planned->note;
    EXPECT_EQ(planned->warps_m, r.warps_m) << r.atom;
    EXPECT_EQ(planned->warps_n, r.warps_n) << r.atom;
    EXPECT_EQ(planned->c.threads(), r.threads);
    EXPECT_EQ(planned->c.registers() * r.threads, r.m * r.n);
    EXPECT_LE(planned->c.registers(), 200);
  }
}

// Every element of C where the instructions of its warpgroup leave it (PTX ISA, "Register fragments for
// wgmma").
TEST(WarpgroupGemm, AccumulatorsFollowRepeatsAndWarpgroups) {
  for (const Split& r : {Split{256, 192, 256, "", "", 8, 1}, Split{128, 320, 256, "", "", 8, 1},
                         Split{128, 256, 256, ", policy=full_col", "", 4, 2}}) {
    const Gemm g = gemm(r.m, r.n, 32, r.flags);
    const auto planned = plan(g, r.threads);
    ASSERT_TRUE(planned) << planned.error().to_text();
    const int64_t n = target::find_warpgroup_atom(hopper(), planned->atom)->n;
    const int64_t wm = planned->warps_m / 4, wn = planned->warps_n, rows = r.m / wm, columns = r.n / wn;
    for (int64_t i = 0; i < r.m; ++i)
      for (int64_t j = 0; j < r.n; ++j) {
        const int64_t warpgroup = i / rows * wn + j / columns, row = i % rows, column = j % columns;
        const int64_t lane = row % 8 * 4 + column % 8 / 2, warp = row % 64 / 16;
        const int64_t atom = column % n / 8 * 4 + row % 16 / 8 * 2 + column % 2;
        const std::vector<int64_t> at = {i, j};
        ASSERT_EQ(planned->c.holders(at), std::vector<int64_t>{128 * warpgroup + 32 * warp + lane});
        ASSERT_EQ(planned->c.register_of(at), (row / 64 * (columns / n) + column / n) * (n / 2) + atom)
            << i << ", " << j;
      }
  }
}

TEST(WarpgroupGemm, OperandInRegistersRepeatsAlongK) {
  const Gemm g = gemm(256, 64, 48, ", transpose_b", "fragment f16");
  const auto planned = plan(g, 256);
  ASSERT_TRUE(planned) << planned.error().to_text();
  ASSERT_EQ(planned->engine, plan::Engine::warpgroup_mma) << planned->note;
  ASSERT_TRUE(planned->a_fragment);
  EXPECT_FALSE(planned->a_memory);
  for (int64_t i = 0; i < 256; ++i)
    for (int64_t k = 0; k < 48; ++k) {
      const int64_t warpgroup = i / 128, row = i % 128, lane = row % 8 * 4 + k % 8 / 2, warp = row % 64 / 16;
      const std::vector<int64_t> at = {i, k};
      ASSERT_EQ(planned->a_fragment->holders(at), std::vector<int64_t>{128 * warpgroup + 32 * warp + lane});
      const int64_t atom = k % 16 / 8 * 4 + row % 16 / 8 * 2 + k % 2;
      ASSERT_EQ(planned->a_fragment->register_of(at), (row / 64 * 3 + k / 16) * 8 + atom);
    }
}

TEST(WarpgroupGemm, WhatItCannotDoGoesToWarpsWithANote) {
  auto note = [](const Gemm& g, int64_t threads) {
    const auto planned = plan(g, threads);
    EXPECT_TRUE(planned) << planned.error().to_text();
    if (!planned) return std::string();
    EXPECT_EQ(planned->engine, plan::Engine::mma);
    return planned->note;
  };
  const std::string no = "no warpgroup instructions: ";
  EXPECT_EQ(note(gemm(128, 128, 32, "", "shared f32", "shared f32"), 256),
            no + "none multiplies f32 by f32 into f32");
  EXPECT_EQ(note(gemm(128, 80, 32, "", "shared i8", "shared i8", "i32"), 256),
            no + "B of i8 must be stored with k as the last dimension: warps turn blocks of 16x32, which do "
                 "not divide 32x80");
  EXPECT_EQ(note(gemm(128, 64, 16, ", transpose_a, transpose_b, tf32", "shared f32", "shared f32"), 256),
            no + "A of f32 must be stored with k as the last dimension: warps turn blocks of 32x16, which do "
                 "not divide 16x128");
  EXPECT_EQ(note(gemm(96, 96, 32), 256), no + "96 rows are no multiple of 64");
  EXPECT_EQ(note(gemm(96, 128, 32, "", "fragment f16"), 256),
            no + "A is in registers, it takes A from shared memory");
  EXPECT_EQ(note(gemm(128, 256, 128, ", transpose_b, promote", "shared e4m3", "shared e4m3"), 128),
            no + "a thread would need 292 registers of 255; use more threads or a smaller tile");
  EXPECT_EQ(note(gemm(128, 128, 32), 64), no + "64 threads are no multiple of a warpgroup's 128");
  EXPECT_EQ(note(gemm(128, 96, 32, "", "shared f16", "fragment f16"), 256),
            no + "B is in registers and has no multiple of 64 columns, it takes B from shared memory");
  EXPECT_EQ(note(gemm(128, 128, 32, "", "fragment f16", "fragment f16"), 256),
            no + "B is in registers, it takes B from shared memory");
  EXPECT_EQ(note(gemm(128, 256, 32), 128),
            no + "a thread would need 288 registers of 255; use more threads or a smaller tile");
  EXPECT_EQ(note(gemm(64, 24, 32), 128),
            no + "no instruction's width divides a 64x24x32 tile split over 1 warpgroup");
}

// B in the place of A: C's rows are the columns of the instructions.
TEST(WarpgroupGemm, FewRowsAreMultipliedAsColumns) {
  for (const int64_t m : {16, 32, 96}) {
    const Gemm g = gemm(m, 128, 64, ", transpose_b");
    const auto planned = plan(g, 256);
    ASSERT_TRUE(planned) << planned.error().to_text();
    ASSERT_EQ(planned->engine, plan::Engine::warpgroup_mma) << planned->note;
    EXPECT_EQ(planned->atom, "wgmma.m64n" + std::to_string(m) + "k16.f32.f16.f16");
    EXPECT_EQ(planned->warps_m, 1);
    EXPECT_EQ(planned->warps_n, 8);
    EXPECT_NE(planned->reason.find("B in the place of A"), std::string::npos) << planned->reason;
    expect_operand(*planned->b_memory, matrix_dims(g.program, g.op->operands[1], true), 1, 64);
    expect_operand(*planned->a_memory, matrix_dims(g.program, g.op->operands[0], false), 0, m);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < 128; ++j) {
        const int64_t lane = j % 8 * 4 + i % 8 / 2, thread = 128 * (j / 64) + 32 * (j % 64 / 16) + lane;
        const std::vector<int64_t> at = {i, j};
        ASSERT_EQ(planned->c.holders(at), std::vector<int64_t>{thread});
        ASSERT_EQ(planned->c.register_of(at), i / 8 * 4 + j % 16 / 8 * 2 + i % 2);
      }
  }
}

// B in registers is the instructions' A, which alone they take from there, however many rows there are.
TEST(WarpgroupGemm, BInRegistersIsInThePlaceOfA) {
  for (const int64_t m : {16, 64, 256})
    for (const bool transposed : {false, true}) {
      const Gemm g = gemm(m, 128, 64, transposed ? ", transpose_b" : "", "shared f16", "fragment f16");
      const auto planned = plan(g, 256);
      ASSERT_TRUE(planned) << planned.error().to_text();
      ASSERT_EQ(planned->engine, plan::Engine::warpgroup_mma) << planned->note;
      EXPECT_EQ(planned->warps_m, 1);
      EXPECT_EQ(planned->warps_n, 8);
      EXPECT_NE(planned->reason.find("B in the place of A: it is in registers"), std::string::npos)
          << planned->reason;
      EXPECT_TRUE(planned->a_memory && !planned->a_fragment && !planned->b_memory);
      ASSERT_TRUE(planned->b_fragment);
      for (int64_t k = 0; k < 64; ++k)
        for (int64_t n = 0; n < 128; ++n) {
          const std::vector<int64_t> at = transposed ? std::vector{n, k} : std::vector{k, n};
          const int64_t thread = n / 16 * 32 + n % 8 * 4 + k % 8 / 2;
          ASSERT_EQ(planned->b_fragment->holders(at), std::vector<int64_t>{thread});
          ASSERT_EQ(planned->b_fragment->register_of(at), k / 8 * 4 + n % 16 / 8 * 2 + k % 2);
        }
    }
}

// What lies along m or n is brought as it lies and copied with rows along k.
TEST(WarpgroupGemm, OperandsAlongRowsAreTurned) {
  const Gemm g = gemm(128, 256, 128, ", transpose_a", "shared i8", "shared u8", "i32");
  const auto planned = plan(g, 256);
  ASSERT_TRUE(planned) << planned.error().to_text();
  ASSERT_EQ(planned->engine, plan::Engine::warpgroup_mma) << planned->note;
  ASSERT_TRUE(planned->a_copy && planned->b_copy);
  expect_operand(*planned->a_copy, {{128, 128}, 0, 1}, 0, 64, 1);
  expect_operand(*planned->b_copy, {{256, 128}, 1, 0}, 1,
                 target::find_warpgroup_atom(hopper(), planned->atom)->n, 1);
  for (const auto* l : {&planned->a_memory, &planned->b_memory}) {
    std::string why;
    const auto tile = layout::tensor_tile(**l, 1, 1, &why);
    ASSERT_TRUE(tile) << why;
    EXPECT_EQ(tile->swizzle, 128);
  }
  EXPECT_NE(planned->reason.find("B turned on the way"), std::string::npos) << planned->reason;
  EXPECT_FALSE(plan(gemm(128, 256, 64), 256)->b_copy);
}

// What warps do in fewer cycles stays with them.
TEST(WarpgroupGemm, FewestCyclesWin) {
  const Gemm g = gemm(16, 64, 16, ", transpose_b");
  const auto planned = plan(g, 128);
  ASSERT_TRUE(planned) << planned.error().to_text();
  plan::OpPlan given;
  given.engine = plan::Engine::mma;
  const auto by_warps = plan(g, 128, &given);
  given.engine = plan::Engine::warpgroup_mma;
  const auto by_warpgroups = plan(g, 128, &given);
  ASSERT_TRUE(by_warps && by_warpgroups);
  EXPECT_EQ(by_warps->engine, plan::Engine::mma);
  EXPECT_EQ(by_warpgroups->engine, plan::Engine::warpgroup_mma);
  EXPECT_EQ(planned->cycles, std::min(by_warps->cycles, by_warpgroups->cycles));
}

TEST(WarpgroupGemm, PartialSumsAreRegistersToo) {
  const Gemm plain = gemm(128, 256, 128, ", transpose_b", "shared e4m3", "shared e4m3"),
             promoting = gemm(128, 256, 128, ", transpose_b, promote", "shared e4m3", "shared e4m3");
  const auto a = plan(plain, 256), b = plan(promoting, 256);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->atom, "wgmma.m64n256k32.f32.e4m3.e4m3");
  EXPECT_EQ(a->own_registers, 0);
  // 128 sums and 128 more are too many.
  ASSERT_EQ(b->engine, plan::Engine::warpgroup_mma) << b->note;
  EXPECT_EQ(b->atom, "wgmma.m64n128k32.f32.e4m3.e4m3");
  EXPECT_EQ(b->own_registers, 64);
  EXPECT_EQ(b->registers, 128 + 64 + 32);
}

TEST(WarpgroupGemm, GivenEnginesAtomsAndSplitsAreObeyedOrRefused) {
  const Gemm g = gemm(128, 256, 64);
  plan::OpPlan given;
  given.atom = "wgmma.m64n64k16.f32.f16.f16";
  auto planned = plan(g, 256, &given);
  ASSERT_TRUE(planned) << planned.error().to_text();
  EXPECT_EQ(planned->atom, given.atom);

  given = {};
  given.engine = plan::Engine::warpgroup_mma;
  given.warps_m = 4;
  given.warps_n = 2;
  planned = plan(g, 256, &given);
  ASSERT_TRUE(planned) << planned.error().to_text();
  EXPECT_EQ(planned->atom, "wgmma.m64n128k16.f32.f16.f16");

  given = {};
  given.engine = plan::Engine::mma;
  planned = plan(g, 256, &given);
  ASSERT_TRUE(planned) << planned.error().to_text();
  EXPECT_EQ(planned->engine, plan::Engine::mma);
  EXPECT_EQ(planned->note, "");

  given = {};
  given.atom = "wgmma.m64n48k16.f32.f16.f16";
  planned = plan(g, 256, &given);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().diagnostics[0].code, DiagCode::schedule_illegal);
  EXPECT_NE(planned.error().diagnostics[0].message.find("as the schedule says"), std::string::npos)
      << planned.error().to_text();
}

}  // namespace
}  // namespace tilegen::schedule
