// Targets by name, and what the tables of vendors must agree in.
#include "target/registry.h"
#include "support/diag_codes.h"

#include <gtest/gtest.h>

#include <set>

namespace tilegen::target {
namespace {

TEST(FindTarget, EveryNameItLists) {
  std::set<std::string> seen;
  for (const std::string& name : target_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name << " twice";
    auto t = find_target(name);
    ASSERT_TRUE(t) << name;
    EXPECT_EQ(t->name, name);
    EXPECT_NE(target_to_json(*t).find("\"name\": \"" + name + "\""), std::string::npos);
  }
}

TEST(FindTarget, AnUnknownNameListsTheKnownOnes) {
  for (const char* name : {"sm_75", "", "SM_80", "x86-64", "host "}) {
    auto t = find_target(name);
    ASSERT_FALSE(t) << name;
    const Diagnostic& d = t.error().diagnostics.at(0);
    EXPECT_EQ(d.code, DiagCode::no_such_target);
    EXPECT_EQ(d.op, name);
    EXPECT_EQ(d.message, "no target is called '" + std::string(name) + "'");
    EXPECT_EQ(d.hint,
              "known targets: host, x86-64-v3, x86-64-v4, x86-64-v4-amx, sm_80, sm_86, sm_87, sm_89, sm_90, "
              "sm_90a, gfx942, "
              "gfx90a, sim:sm_80, sim:sm_86, sim:sm_87, sim:sm_89, sim:sm_90, sim:sm_90a, "
              "sim:gfx942, sim:gfx90a");
  }
}

TEST(FindTarget, ASimulatedTargetIsTheDeviceByAnotherName) {
  size_t simulated = 0;
  for (const std::string& name : target_names()) {
    Target t = *find_target(name);
    EXPECT_EQ(t.simulated, simulated_name(name) != name) << name;
    if (!t.simulated) continue;
    ++simulated;
    t.name = simulated_name(name);
    EXPECT_EQ(target_to_json(t), target_to_json(*find_target(t.name)));
  }
  EXPECT_GT(simulated, 0u);
  EXPECT_FALSE(find_target("sim:host"));
  EXPECT_FALSE(find_target("sim:"));
  EXPECT_FALSE(find_target("sim:sim:sm_80"));
}

TEST(Targets, FiguresOfAMachineFitTogether) {
  for (const std::string& name : target_names()) {
    const Target t = *find_target(name);
    SCOPED_TRACE(name);
    EXPECT_EQ(t.has_block_threads(), t.warp > 1);
    EXPECT_EQ(t.warpgroup % t.warp, 0);
    EXPECT_EQ(t.max_threads % t.warpgroup, 0);
    EXPECT_EQ(t.default_threads % t.warp, 0);
    EXPECT_EQ(t.micro_kernels.empty(), t.has_block_threads());
    EXPECT_EQ(t.mma.empty(), !t.has_block_threads());
    EXPECT_EQ(t.addressable_registers(), t.registers_per_multiprocessor == 0);
    if (!t.has_block_threads()) continue;
    EXPECT_EQ(t.banks.row_bytes() % t.vector_bytes, 0);
    EXPECT_EQ(t.max_role_registers % t.register_unit, 0);
    EXPECT_LE(t.registers_per_thread, t.max_role_registers);
    EXPECT_GE(t.registers_per_multiprocessor, t.min_role_registers * t.max_threads);
    EXPECT_GT(t.line_bytes, 0);
    EXPECT_EQ(t.line_bytes % std::max<int64_t>(1, t.fetch_bytes), 0);
    EXPECT_GT(t.fetch_bytes, 0);
    EXPECT_GT(t.blocks_per_multiprocessor, 0);
    EXPECT_GT(t.special_lanes * t.convert_lanes, 0);
    // 0, the role's, and one of each warpgroup.
    if (!t.warpgroup_mma.empty()) {
      EXPECT_GE(t.named_barriers, 2 + t.max_threads / t.warpgroup);
    }
    for (int bytes : t.async_copy_bytes) EXPECT_LE(bytes, t.vector_bytes);
    if (t.copies_in_lane_order) {
      EXPECT_LE(t.async_copy_bytes.size(), 1u) << "one word of each lane";
    }
    if (t.tensor_copy) {
      EXPECT_GT(t.transaction_barrier_bytes, 0);
      EXPECT_EQ(t.tensor_tile_alignment % t.banks.row_bytes(), 0);
      EXPECT_GT(t.line_bytes_per_cycle, 0);
      EXPECT_GT(t.max_cluster, 1);
    }
  }
}

TEST(Targets, OfAmdHaveWavesOf64Lanes) {
  for (const char* name : {"gfx942", "gfx90a"}) {
    const Target t = *find_target(name);
    SCOPED_TRACE(name);
    EXPECT_EQ(t.vendor, "amd");
    EXPECT_EQ(t.code, CodeFormat::hsaco);
    EXPECT_EQ(t.cpu, name);
    EXPECT_EQ(t.warp, 64);
    EXPECT_EQ(t.shared_bytes, 64 << 10);
    EXPECT_TRUE(t.async_copy());
    EXPECT_EQ(t.buffer_async_copies, t.cpu == "gfx90a");
    EXPECT_GT(t.buffer_bytes, INT64_C(1) << 31);
    // A block of 1024 threads has 128 registers a lane, one of 256 all that plain code reaches.
    EXPECT_EQ(t.registers_at_launch(1024), 128);
    EXPECT_GE(t.registers_at_launch(256), t.registers_per_thread);
    const auto simulated = find_target("sim:" + std::string(name));
    EXPECT_TRUE(simulated && simulated->simulated && simulated->warp == 64);
  }
}

TEST(Targets, AtomsAreOfTheMachine) {
  for (const std::string& name : target_names()) {
    const Target t = *find_target(name);
    SCOPED_TRACE(name);
    for (const MmaAtom& atom : t.mma) {
      EXPECT_EQ(find_mma_atom(t, atom.name), &atom);
      const bool dots = atom.unit == MmaUnit::dot && t.vendor == "amd";  // intrinsics of LLVM
      EXPECT_EQ(atom.instruction.empty(), atom.unit != MmaUnit::matrix && !dots) << atom.name;
      for (const layout::Fragment* f : {&atom.a_layout, &atom.b_layout, &atom.c_layout})
        EXPECT_EQ(f->threads(), t.warp) << atom.name;
    }
    for (const MmaAtom& atom : t.sparse_mma) {
      EXPECT_EQ(find_mma_atom(t, atom.name), &atom);
      ASSERT_TRUE(atom.sparse()) << atom.name;
      EXPECT_EQ(atom.a_layout.shape(), (std::vector<int64_t>{atom.m, atom.k / 2})) << atom.name;
      EXPECT_EQ(atom.places->shape(), (std::vector<int64_t>{atom.m, atom.k / 4})) << atom.name;
      // Groups of four bits in a word: a whole one, or those of the lane's own values.
      const int64_t groups = t.vendor == "nvidia" ? 8 : int64_t{atom.m} * atom.k / (4 * t.warp);
      EXPECT_EQ(atom.places->registers(), groups) << atom.name;
      for (const layout::Fragment* f : {&atom.a_layout, &atom.b_layout, &atom.c_layout, &*atom.places})
        EXPECT_EQ(f->threads(), t.warp) << atom.name;
    }
    EXPECT_EQ(find_mma_atom(t, "mma"), nullptr);
    for (const WarpgroupAtom& atom : t.warpgroup_mma) {
      EXPECT_EQ(atom.m, t.warpgroup_rows()) << atom.name;
      EXPECT_GE(atom.isa_version, t.isa_version) << atom.name;
      for (int n : atom.widths) {
        const auto found = find_warpgroup_atom(t, warpgroup_instruction_name(atom, n));
        ASSERT_TRUE(found) << atom.name << " " << n;
        EXPECT_EQ(found->atom, &atom);
        EXPECT_EQ(found->n, n);
        EXPECT_EQ(atom.accumulator(n).threads(), t.warpgroup);
        EXPECT_EQ(atom.accumulator(n).shape(), (std::vector<int64_t>{atom.m, n}));
      }
      EXPECT_EQ(atom.a_operand().threads(), t.warpgroup);
      EXPECT_EQ(atom.a_operand().shape(), (std::vector<int64_t>{atom.m, atom.k}));
    }
  }
  EXPECT_FALSE(find_warpgroup_atom(*find_target("sm_90a"), "wgmma.m64n12k16.f32.f16.f16"));
  EXPECT_FALSE(find_warpgroup_atom(*find_target("sm_90"), "wgmma.m64n64k16.f32.f16.f16"));
}

// PTX ISA, "Sparse matrix storage": 16-bit types by the first two lanes of a quad, a half of the register for
// each of two rows; 8-bit ones by all, the second lane of a pair for the second row.
TEST(Targets, PlacesOfSparseAtomsLieAsTheManualSays) {
  const Target t = *find_target("sm_80");
  const auto holders = [&](const char* name, int64_t row, int64_t group) {
    return find_mma_atom(t, name)->places->holders(std::vector<int64_t>{row, group});
  };
  const auto position = [&](const char* name, int64_t row, int64_t group) {
    return find_mma_atom(t, name)->places->register_of(std::vector<int64_t>{row, group});
  };
  const char *halves = "mma.sp.m16n8k32.f32.f16", *bytes = "mma.sp.m16n8k64.s32.s8.u8";
  for (int64_t row = 0; row < 16; ++row) {
    for (int64_t group = 0; group < 8; ++group) {
      const int64_t lane = row % 8 * 4 + group / 4;
      EXPECT_EQ(holders(halves, row, group), (std::vector<int64_t>{lane, lane + 2}));
      EXPECT_EQ(position(halves, row, group), row / 8 * 4 + group % 4);
    }
    for (int64_t group = 0; group < 16; ++group) {
      EXPECT_EQ(holders(bytes, row, group), (std::vector<int64_t>{row % 8 * 4 + group / 8 * 2 + row / 8}));
      EXPECT_EQ(position(bytes, row, group), group % 8);
    }
  }
}

// A warp of a warpgroup has the places of its 16 rows, as those of mma.sp lie.
TEST(Targets, PlacesOfSparseWarpgroupAtomsLieAsTheManualSays) {
  const Target t = *find_target("sm_90a");
  ASSERT_EQ(t.sparse_warpgroup_mma.size(), 11u);
  for (const WarpgroupAtom& atom : t.sparse_warpgroup_mma) {
    const bool bytes = ir::dtype_bytes(atom.a) == 1;
    EXPECT_EQ(atom.k, bytes ? 64 : 32) << atom.name;
    EXPECT_EQ(atom.a_operand().shape(), (std::vector<int64_t>{64, atom.k / 2})) << atom.name;
    const MmaAtom& warp = *find_mma_atom(t, bytes ? "mma.sp.m16n8k64.s32.s8.s8" : "mma.sp.m16n8k32.f32.f16");
    for (int64_t row = 0; row < 64; ++row)
      for (int64_t group = 0; group < atom.k / 4; ++group) {
        const std::vector<int64_t> at = {row, group}, in_warp = {row % 16, group};
        std::vector<int64_t> holders = warp.places->holders(in_warp);
        for (int64_t& lane : holders) lane += row / 16 * 32;
        EXPECT_EQ(atom.places->holders(at), holders) << atom.name;
        EXPECT_EQ(atom.places->register_of(at), warp.places->register_of(in_warp)) << atom.name;
      }
    const auto found = find_warpgroup_atom(t, warpgroup_instruction_name(atom, 64));
    ASSERT_TRUE(found) << atom.name;
    EXPECT_EQ(found->atom, &atom);
  }
}

// CDNA 3 instruction set: lane l has row l % size, and of A the values, and of its places those, of the k
// that it has of B.
TEST(Targets, PlacesOfSmfmacLieBesideTheValues) {
  const Target t = *find_target("gfx942");
  ASSERT_EQ(t.sparse_mma.size(), 14u);
  EXPECT_TRUE(find_target("gfx90a")->sparse_mma.empty());
  for (const MmaAtom& atom : t.sparse_mma) {
    const int64_t held = atom.k * atom.m / 64;
    for (int64_t row = 0; row < atom.m; ++row)
      for (int64_t k = 0; k < atom.k; ++k) {
        const std::vector<int64_t> group = {row, k / 4}, value = {row, k / 2}, of_b = {k, row};
        const std::vector<int64_t> lane = {row + atom.m * (k / held)};
        EXPECT_EQ(atom.places->holders(group), lane) << atom.name;
        EXPECT_EQ(atom.a_layout.holders(value), lane) << atom.name;
        EXPECT_EQ(atom.b_layout.holders(of_b), lane) << atom.name;
        EXPECT_EQ(atom.places->register_of(group), k % held / 4) << atom.name;
        EXPECT_EQ(atom.a_layout.register_of(value), k % held / 2) << atom.name;
        EXPECT_EQ(atom.b_layout.register_of(of_b), k % held) << atom.name;
      }
  }
}

}  // namespace
}  // namespace tilegen::target
