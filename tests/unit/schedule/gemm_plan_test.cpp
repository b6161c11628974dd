// Atoms, register tiles and warp grids over a sweep of gemm shapes.
#include "schedule/products/gemm_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "analysis/warp_partition.h"
#include "ir/text.h"
#include "support/checked.h"
#include "support/diag_codes.h"
#include "target/host/host.h"
#include "target/micro_tile.h"

namespace tilegen::schedule {
namespace {

using analysis::gemm_shape;
using target::micro_tile_from_name;

struct Gemm {
  ir::Program program;
  const ir::TileOp* op = nullptr;
};

Gemm gemm(int64_t m, int64_t n, int64_t k, const std::string& types, const std::string& flags = "",
          const char* scope = "shared") {
  auto word = [&](int i) {
    size_t at = 0;
    for (; i > 0; --i) at = types.find(' ', at) + 1;
    return types.substr(at, types.find(' ', at) - at);
  };
  auto shape = [](int64_t rows, int64_t cols, bool swap) {
    return "[" + std::to_string(swap ? cols : rows) + ", " + std::to_string(swap ? rows : cols) + "]\n";
  };
  const bool ta = flags.find("transpose_a") != std::string::npos,
             tb = flags.find("transpose_b") != std::string::npos;
  const std::string text =
      "tl 1 program p\ntensor T: f32[1]\nkernel k grid (b: 1) {\n alloc A: " + std::string(scope) + " " +
      word(0) + shape(m, k, ta) + " alloc B: " + scope + " " + word(1) + shape(k, n, tb) +
      " alloc C: fragment " + word(2) + shape(m, n, false) + " gemm A, B -> C {clear" + flags + "}\n}\n";
  auto p = ir::parse_program(text, "gemm.tl", Limits{});
  Gemm g;
  if (!p) {
    ADD_FAILURE() << p.error().to_text() << text;
    return g;
  }
  g.program = std::move(*p);
  g.op = g.program.as<ir::TileOp>(g.program.kernels[0].body.back());
  return g;
}

Expected<GemmPlan> plan(const Gemm& g, const target::Target& t, int64_t threads,
                        const plan::OpPlan* given = nullptr) {
  return plan_gemm(g.program, *g.op, t, threads, given, "k/gemm#0", {});
}

std::vector<target::Target> hosts() {
  target::host::CpuFacts rich;
  rich.avx512 = rich.avx512_bf16 = rich.avx512_vnni = true;
  return {*target::find_target("x86-64-v3"), *target::find_target("x86-64-v4"),
          *target::find_target("x86-64-v4-amx"), target::host::from_facts("rich", rich)};
}

TEST(GemmPlan, RegisterTilesDivideTheGemmAndFitTheRegisters) {
  for (const target::Target& t : hosts())
    for (const char* types : {"f32 f32 f32", "f64 f64 f64", "bf16 bf16 f32", "f16 f16 f16", "i8 u8 i32"})
      for (int64_t m : {1, 3, 16, 31, 64, 96, 128})
        for (int64_t n : {1, 7, 8, 48, 56, 64, 200, 256})
          for (int64_t k : {1, 4, 34}) {
            const Gemm g = gemm(m, n, k, types);
            auto planned = plan(g, t, 1);
            ASSERT_TRUE(planned) << planned.error().to_text();
            const std::string what = t.name + " " + types + " " + std::to_string(m) + "x" +
                                     std::to_string(n) + "x" + std::to_string(k) + ": " + planned->atom;
            auto tile = micro_tile_from_name(t, planned->atom);
            ASSERT_TRUE(tile) << what;
            EXPECT_EQ(m % tile->mr, 0) << what;
            EXPECT_EQ(n % tile->nr, 0) << what;
            EXPECT_EQ(k % tile->atom->pack, 0) << what;
            // Accumulators, a row of B and a broadcast element of A; a tile narrower than a register still
            // takes one.
            if (const auto registers = matrix_tiles(*tile->atom, tile->mr, tile->nr, k)) {
              EXPECT_EQ(registers->down * registers->rows, tile->mr) << what;
              EXPECT_EQ(registers->across * registers->columns, tile->nr) << what;
              EXPECT_EQ(k % registers->k, 0) << what;
              EXPECT_LE(registers->down * registers->across + registers->across + 1, tile->atom->registers)
                  << what;
            } else {
              int64_t lanes = tile->atom->lanes;
              while (tile->nr % lanes != 0) lanes /= 2;
              EXPECT_LE(tile->mr * (tile->nr / lanes) + tile->nr / lanes + 1, tile->atom->registers) << what;
            }
            EXPECT_TRUE(planned->c.map().is_injective()) << what;
            EXPECT_TRUE(planned->a_memory->is_bijective()) << what;
            EXPECT_TRUE(planned->b_memory->is_bijective()) << what;
          }
}

// What a micro-kernel assumes of its operands: constant strides between the rows, k steps and tiles it walks.
TEST(GemmPlan, PanelsLieAsTheMicroKernelWalksThem) {
  for (const target::Target& t : hosts())
    for (const char* types : {"f32 f32 f32", "bf16 bf16 f32", "i8 i8 i32"})
      for (const char* flags : {"", ", transpose_a", ", transpose_b", ", transpose_a, transpose_b"}) {
        const int64_t m = 24, n = 96, k = 32;
        const Gemm g = gemm(m, n, k, types, flags);
        auto planned = plan(g, t, 1);
        ASSERT_TRUE(planned) << planned.error().to_text();
        auto tile = micro_tile_from_name(t, planned->atom);
        ASSERT_TRUE(tile);
        const int64_t pack = tile->atom->pack;
        const auto registers = matrix_tiles(*tile->atom, tile->mr, tile->nr, k);
        const int64_t step = registers ? registers->k : pack;
        const bool ta = std::string(flags).find("transpose_a") != std::string::npos,
                   tb = std::string(flags).find("transpose_b") != std::string::npos;
        auto a = [&](int64_t i, int64_t kk) {
          return planned->a_memory->offset(ta ? std::vector{kk, i} : std::vector{i, kk});
        };
        auto b = [&](int64_t kk, int64_t j) {
          return planned->b_memory->offset(tb ? std::vector{j, kk} : std::vector{kk, j});
        };
        auto c = [&](int64_t i, int64_t j) { return planned->c.register_of(std::vector{i, j}); };
        const std::string what = t.name + " " + types + flags + " " + planned->atom;
        const int64_t a_row = a(1, 0) - a(0, 0), a_k = step < k ? a(0, step) - a(0, 0) : 0,
                      b_k = b(pack, 0) - b(0, 0);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t kk = 0; kk < k; ++kk)
            ASSERT_EQ(a(i, kk),
                      a(i / tile->mr * tile->mr, 0) + i % tile->mr * a_row + kk / step * a_k + kk % step)
                << what;
        for (int64_t kk = 0; kk < k; ++kk)
          for (int64_t j = 0; j < n; ++j)
            ASSERT_EQ(b(kk, j),
                      b(0, j / tile->nr * tile->nr) + kk / pack * b_k + j % tile->nr * pack + kk % pack)
                << what;
        const int64_t c_row = tile->mr > 1 ? c(1, 0) - c(0, 0) : 0;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            ASSERT_EQ(c(i, j), c(i / tile->mr * tile->mr, j / tile->nr * tile->nr) + i % tile->mr * c_row +
                                   j % tile->nr)
                << what;
      }
}

TEST(GemmPlan, GivenRegisterTilesAreObeyedOrRefused) {
  const target::Target t = *target::find_target("x86-64-v3");
  const Gemm g = gemm(32, 64, 16, "f32 f32 f32");
  plan::OpPlan given;
  for (const char* atom : {"fma.f32:4x16", "fma.f32:1x8", "fma.f32:2x4"}) {
    given.atom = atom;
    auto planned = plan(g, t, 1, &given);
    ASSERT_TRUE(planned) << planned.error().to_text();
    EXPECT_EQ(planned->atom, atom);
  }
  for (const char* atom : {"fma.f32:5x16", "fma.f32:4x24", "fma.f32:8x64", "fma.f64:4x16", "dpbf16ps:4x16",
                           "fma.f32:0x16", "fma.f32:4x-1", "fma.f32", "nonsense", "fma.f32:4x16x"}) {
    given.atom = atom;
    auto refused = plan(g, t, 1, &given);
    ASSERT_FALSE(refused) << atom;
    EXPECT_EQ(refused.error().diagnostics[0].code, DiagCode::schedule_illegal) << atom;
    EXPECT_FALSE(refused.error().diagnostics[0].hint.empty()) << atom;
  }
}

TEST(GemmPlan, WarpGridsCoverTheTile) {
  const target::Target t = *target::find_target("sm_80");
  for (const char* types : {"f16 f16 f32", "i8 i8 i32", "f64 f64 f64", "f32 f32 f32"})
    for (const char* policy : {"square", "full_row", "full_col"})
      for (int64_t m : {16, 32, 48, 64, 128, 256})
        for (int64_t n : {8, 16, 24, 64, 128})
          for (int64_t threads : {32, 64, 128, 256}) {
            const Gemm g = gemm(m, n, 32, types, std::string(", policy=") + policy);
            auto planned = plan(g, t, threads);
            const int64_t warps = threads / 32;
            const std::string what = std::string(types) + " " + policy + " " + std::to_string(m) + "x" +
                                     std::to_string(n) + " warps " + std::to_string(warps);
            // Every tile is done; without copies where a split over all warps divides it, unless few warps do
            // it by tensor core.
            bool divided = false;
            for (const target::MmaAtom& atom : t.mma) {
              if (atom.a != gemm_shape(g.program, *g.op).a || atom.b != gemm_shape(g.program, *g.op).b ||
                  atom.c != gemm_shape(g.program, *g.op).c)
                continue;
              for (int64_t wm = 1; wm <= warps; ++wm)
                divided =
                    divided || (warps % wm == 0 && m % (wm * atom.m) == 0 && n % (warps / wm * atom.n) == 0 &&
                                32 % atom.k == 0 && (std::string(policy) != "full_row" || wm == warps) &&
                                (std::string(policy) != "full_col" || wm == 1));
            }
            ASSERT_TRUE(planned) << what << planned.error().to_text();
            EXPECT_EQ(warps % (planned->warps_m * planned->warps_n), 0) << what;
            if (policy == std::string("full_row")) {
              EXPECT_EQ(planned->warps_n, 1) << what;
            }
            if (policy == std::string("full_col")) {
              EXPECT_EQ(planned->warps_m, 1) << what;
            }
            const int64_t copies = warps / (planned->warps_m * planned->warps_n);
            if (divided && !planned->atom.starts_with("mma.")) {
              EXPECT_EQ(copies, 1) << what;
            }
            EXPECT_EQ(planned->c.shape(), (std::vector<int64_t>{m, n})) << what;
            EXPECT_EQ(planned->c.threads(), threads) << what;
            // Matrix instructions may overhang; what has no such instruction is divided.
            const auto atom = std::find_if(t.mma.begin(), t.mma.end(),
                                           [&](const auto& a) { return a.name == planned->atom; });
            ASSERT_NE(atom, t.mma.end()) << what;
            const int64_t rows = ceil_div(m, planned->warps_m * atom->m) * planned->warps_m * atom->m,
                          columns = ceil_div(n, planned->warps_n * atom->n) * planned->warps_n * atom->n;
            EXPECT_EQ(planned->c.registers() * threads, rows * columns * copies) << what;
            EXPECT_TRUE(rows * columns == m * n || atom->name.starts_with("mma.")) << what;
            EXPECT_TRUE(planned->c.map().is_injective()) << what;
          }
}

// What no matrix instruction divides is padded along m and n where that takes fewer cycles; along k it is
// not, and a note says so.
TEST(GemmPlan, MatrixInstructionsOverhangTiles) {
  const target::Target t = *target::find_target("sm_80");
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{40, 40, 32}, {24, 20, 64}, {8, 36, 32}, {80, 72, 48}}) {
    const Gemm g = gemm(m, n, k, "f16 f16 f32");
    const auto planned = plan(g, t, 128);
    ASSERT_TRUE(planned);
    EXPECT_EQ(planned->atom, "mma.m16n8k16.f32.f16") << m << "x" << n;
    EXPECT_EQ(planned->note, "") << m << "x" << n;
  }
  const auto odd = plan(gemm(64, 64, 20, "f16 f16 f32"), t, 128);
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->atom.starts_with("fma.")) << odd->atom;
  EXPECT_EQ(odd->note,
            "no matrix instructions: k is 20, no multiple of the mma.m16n8k16.f32.f16 instruction's 16 (copy "
            "the operands into tiles of "
            "more, filled with zeros)");
}

// A lane multiplies what it holds: for every element of C, the rows of A and the columns of B that its warp's
// atom reads.
TEST(GemmPlan, OperandFragmentsBelongToTheWarpsThatUseThem) {
  const target::Target t = *target::find_target("sm_80");
  for (const char* policy : {"square", "full_row", "full_col"}) {
    const Gemm g = gemm(64, 64, 32, "f16 f16 f32", std::string(", policy=") + policy, "fragment");
    auto planned = plan(g, t, 128);
    ASSERT_TRUE(planned) << planned.error().to_text();
    auto warps = [&](const layout::Fragment& f, int64_t r, int64_t c) {
      std::set<int64_t> set;
      for (int64_t thread : f.holders(std::vector<int64_t>{r, c})) set.insert(thread / 32);
      return set;
    };
    for (int64_t i = 0; i < 64; ++i)
      for (int64_t j = 0; j < 64; ++j)
        for (int64_t warp : warps(planned->c, i, j))
          for (int64_t k = 0; k < 32; k += 5) {
            EXPECT_TRUE(warps(*planned->a_fragment, i, k).count(warp))
                << policy << " A(" << i << "," << k << ")";
            EXPECT_TRUE(warps(*planned->b_fragment, k, j).count(warp))
                << policy << " B(" << k << "," << j << ")";
          }
  }
}

}  // namespace
}  // namespace tilegen::schedule
