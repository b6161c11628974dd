// Specialised kernels in which something is missing: each is found, by the operations that meet, before
// anything runs.
#include "thread/transaction_verify.h"

#include "../sim/specialised_gemm.h"
#include "thread/launch_numbers.h"
#include "thread/sync_accesses.h"
#include "thread/sync_verify.h"

namespace tilegen::thread {
namespace {

using sim::test::E;
using sim::test::GemmTiles;
using sim::test::SpecialisedGemm;
using Change = std::function<void(SpecialisedGemm&)>;

constexpr GemmTiles kTiles[] = {{64, 32, 64, true, 3}, {128, 64, 32, false, 3}, {128, 256, 64, false, 4}};

std::string joined(const std::vector<std::string>& list) {
  std::string all;
  for (const std::string& s : list) all += s + "\n";
  return all;
}

// One of the hazards has these words.
void expect_hazard(const std::string& words, const Change& change, size_t first = 0) {
  for (size_t i = first; i < std::size(kTiles); ++i) {
    SpecialisedGemm g(kTiles[i]);
    change(g);
    const std::string found = joined(verify_transactions(g.p));
    EXPECT_NE(found.find(words), std::string::npos) << "tiles " << i << ":\n" << found;
  }
}

TEST(TransactionVerify, AcceptsSpecialisedKernels) {
  for (const GemmTiles& t : kTiles) {
    const SpecialisedGemm g(t);
    EXPECT_EQ(joined(verify_transactions(g.p)), "");
    EXPECT_EQ(joined(verify_synchronization(g.p)), "");
  }
}

TEST(TransactionVerify, HasNothingToSayOfOtherPrograms) {
  sim::test::GpuProgram g(64);
  const MemoryId s = g.shared("s", ir::DType::i32, 64);
  g.store(s, g.thread(), sim::test::cast(ir::DType::i32, g.thread()));
  EXPECT_EQ(joined(verify_transactions(g.p)), "");
}

TEST(TransactionVerify, LoopsWhoseLengthsAreFixed) {
  // Dims that can be nothing else: 8192 points for the blocks, 32 steps each.
  SpecialisedGemm good(kTiles[0]), bad(kTiles[0]);
  for (SpecialisedGemm* g : {&good, &bad})
    for (const Param& param : g->p.params)
      if (param.kind == Param::Kind::dim) {
        ir::Var& v = g->p.vars[param.var.value];
        v.lower = v.upper = v.divisor = param.name == "K" ? 2048 : 4096;
      }
  bad.stmt<WarpgroupWait>("wait one").pending = 2;
  EXPECT_EQ(joined(verify_transactions(good.p)), "");
  EXPECT_NE(joined(verify_transactions(bad.p)), "");
}

TEST(TransactionVerify, LoopsWhoseLengthsAreMultiples) {
  for (const int64_t multiple : {2, 6, 16}) {
    SpecialisedGemm good(kTiles[0]), bad(kTiles[0]);
    for (SpecialisedGemm* g : {&good, &bad})
      for (const Param& param : g->p.params)
        if (param.name == "K") g->p.vars[param.var.value].divisor = 64 * multiple;
    bad.stmt<WarpgroupWait>("wait one").pending = 2;
    EXPECT_EQ(joined(verify_transactions(good.p)), "");
    EXPECT_NE(joined(verify_transactions(bad.p)), "") << multiple;
  }
}

TEST(TransactionVerify, LoopsWhoseLengthsAreReadFromATensor) {
  GemmTiles tiles = kTiles[0];
  tiles.depth_is_read = true;
  const SpecialisedGemm good(tiles);
  EXPECT_EQ(joined(verify_transactions(good.p)), "");
  SpecialisedGemm bad(tiles), late(tiles);
  bad.stmt<WarpgroupWait>("wait one").pending = 2;
  EXPECT_NE(joined(verify_transactions(bad.p)), "");
  // Seen only where the loop runs more often than there are slots.
  late.remove("wait empty");
  EXPECT_NE(joined(verify_transactions(late.p)).find("As (slot 0) is "), std::string::npos);
}

TEST(TransactionVerify, LoopsWhoseLengthsFollowSeveralDims) {
  GemmTiles tiles = kTiles[0];
  tiles.depth_of_two = true;
  tiles.slots = 5;
  const SpecialisedGemm good(tiles);
  EXPECT_EQ(joined(verify_transactions(good.p)), "");
  SpecialisedGemm late(tiles);
  late.remove("wait empty");
  const std::string found = joined(verify_transactions(late.p));
  EXPECT_NE(found.find("As (slot 0) is "), std::string::npos) << found;
}

// What is done where there is no step, after a loop over all steps but the first.
TEST(TransactionVerify, LoopsWithAnIterationInFrontOfThem) {
  for (const int64_t threads : {128, 256}) {
    SpecialisedGemm g(kTiles[0]);
    Block& consumer = g.stmt<Roles>("roles").roles[0].body;
    Block added = g.body([&] {
      g.loop(
          g.steps() - 1, LoopForm::serial, [&](E) { g.add(ProxyFence{}, "gemm/ko"); }, "rest");
      g.branch(g.steps() == 0, [&] { g.barrier(7, threads); });
    });
    consumer.insert(consumer.begin(), added.begin(), added.end());
    const std::string found = joined(verify_transactions(g.p));
    EXPECT_EQ(found.find("a deadlock: ") != found.npos, threads == 256) << found;
  }
}

// Extents may be written for multiples of 8 alone.
TEST(TransactionVerify, LaunchesThatTheGuardsAllow) {
  SpecialisedGemm g(kTiles[0]);
  std::set<ir::VarId> dims;
  for (size_t i = 0; i < g.p.params.size(); ++i) {
    if (g.p.params[i].kind != Param::Kind::dim) continue;
    ir::Var& v = g.p.vars[g.p.params[i].var.value];
    v.lower = 1, v.divisor = 3;
    g.p.guards.push_back({static_cast<int>(i), 8});
    dims.insert(g.p.params[i].var);
  }
  const RoleProgram roles(g.p);
  for (const int64_t trips : {7, 3, 2, 1, 0, -1}) {
    const PointValues launch = launch_numbers(roles, trips, 2);
    for (const ir::VarId dim : dims) {
      EXPECT_GE(*launch[dim], 24) << trips;
      EXPECT_EQ(*launch[dim] % 24, 0) << trips;
    }
  }
  // No such size is known: nothing overflows.
  for (const ir::VarId dim : dims) g.p.vars[dim.value].divisor = INT64_MAX;
  EXPECT_EQ(*launch_numbers(RoleProgram(g.p), 7, 2)[*dims.begin()], INT64_MAX);
}

// What a block would do that no launch has.
TEST(TransactionVerify, GridsWithoutBlocks) {
  for (const bool blocks : {true, false}) {
    SpecialisedGemm g(kTiles[0]);
    for (const Param& param : g.p.params)
      if (param.kind == Param::Kind::dim && !blocks) g.p.vars[param.var.value].upper = 0;
    Block& consumer = g.stmt<Roles>("roles").roles[0].body;
    const Block added = g.body([&] { g.barrier(7, 256); });
    consumer.insert(consumer.begin(), added.begin(), added.end());
    const std::string found = joined(verify_transactions(g.p));
    EXPECT_EQ(found.find("a deadlock: ") != found.npos, blocks) << found;
  }
}

// ---- phases, arrivals and bytes

ir::ExprId other_parity(SpecialisedGemm& g, ir::ExprId parity) { return (g.i(1) - E{&g.p.exprs, parity}).id; }

TEST(TransactionVerify, PhasesFlipped) {
  expect_hazard("a deadlock: ", [](SpecialisedGemm& g) {
    auto& wait = g.stmt<TransactionWait>("wait empty");
    wait.parity = other_parity(g, wait.parity);
  });
  expect_hazard("gemm/ko/gemm#0: As (slot 0) is used, but nothing has filled it yet", [](SpecialisedGemm& g) {
    auto& wait = g.stmt<TransactionWait>("wait full");
    wait.parity = other_parity(g, wait.parity);
  });
}

// A wait that is left out must be for the phase that was asked for.
TEST(TransactionVerify, AskedAhead) {
  // Puts the test before the wait, changed by `spoil`; none where that says so.
  const auto ask = [](SpecialisedGemm& g, const std::function<bool(TransactionTest&)>& spoil) {
    auto& wait = g.stmt<TransactionWait>("wait full");
    const MemoryId answer = g.registers("answer", ir::DType::i32, 1);
    wait.unless = op(ir::ExprOp::ne, g.load(answer, g.i(0)), g.num(0, ir::DType::i32)).id;
    TransactionTest test{wait.barriers, wait.index, wait.parity, answer, g.i(0).id};
    if (!spoil(test)) return;
    const StmtId before = g.at.at("wait full"), added = g.p.add(test, "gemm/ko");
    for (Stmt& s : g.p.stmts)
      for (Block* block : blocks_inside(s.node))
        if (const auto it = std::find(block->begin(), block->end(), before); it != block->end())
          block->insert(it, added);
  };
  SpecialisedGemm good(kTiles[0]);
  ask(good, [](TransactionTest&) { return true; });
  EXPECT_EQ(joined(verify_transactions(good.p)), "");
  EXPECT_EQ(joined(verify_thread_program(good.p)), "");
  const std::string wrong = " after a test that did not ask for that";
  expect_hazard(wrong, [&](SpecialisedGemm& g) {
    ask(g, [&](TransactionTest& t) { return t.parity = other_parity(g, t.parity), true; });
  });
  expect_hazard(wrong, [&](SpecialisedGemm& g) {
    ask(g, [&](TransactionTest& t) { return t.index = ((E{&g.p.exprs, t.index} + 1) % 2).id, true; });
  });
  expect_hazard(wrong, [&](SpecialisedGemm& g) { ask(g, [](TransactionTest&) { return false; }); });
}

TEST(TransactionVerify, WaitsRemoved) {
  expect_hazard("As (slot 0) is ", [](SpecialisedGemm& g) { g.remove("wait full"); });
  expect_hazard("gemm/ko/copy#0: As (slot 0) is filled again with no wait for those who release it",
                [](SpecialisedGemm& g) { g.remove("wait empty"); });
}

TEST(TransactionVerify, BytesAndArrivals) {
  expect_hazard("16 announced bytes that no copy brings",
                [](SpecialisedGemm& g) { g.stmt<TransactionArrive>("expect").bytes += 16; });
  expect_hazard("of those announced are left at full[",
                [](SpecialisedGemm& g) { g.stmt<TransactionArrive>("expect").bytes -= 16; });
  expect_hazard(" arrivals)", [](SpecialisedGemm& g) { ++g.p.barriers[1].arrivals; });
  expect_hazard(
      "is filled while a product may still read it", [](SpecialisedGemm& g) { --g.p.barriers[1].arrivals; },
      1);
  expect_hazard("a deadlock: ", [](SpecialisedGemm& g) { g.remove("release"); });
  expect_hazard("a deadlock: ", [](SpecialisedGemm& g) { g.remove("release last"); });
  expect_hazard("arrivals more than counted at empty[", [](SpecialisedGemm& g) {
    // Every thread of the warpgroup arrives.
    for (Stmt& s : g.p.stmts)
      if (auto* b = std::get_if<Branch>(&s.node); b != nullptr && b->then_body == Block{g.at["release"]})
        b->condition = (g.i(0) == 0).id;
  });
}

// A box begins at a multiple of 128 bytes, or of 8 rows of its swizzle, in every slot.
TEST(TransactionVerify, PlacesOfBoxes) {
  expect_hazard("a box begins at byte ", [](SpecialisedGemm& g) {
    auto& load = g.stmt<TensorLoad>("load a");
    load.dst_index = (E{&g.p.exprs, load.dst_index} + 16).id;
  });
}

// ---- what threads read

// Bytes of As that the threads would read after the wait for them: at `index` of the slot, as `lanes` lanes
// of one access.
std::string read_behind_wait(const std::function<E(SpecialisedGemm&, E thread)>& index, int64_t lanes,
                             bool waits) {
  SpecialisedGemm g(kTiles[0]);
  const MemoryId out = g.tensor("out", ir::DType::f16);
  const StmtId before = g.at.at("wait full");
  const E slot{&g.p.exprs, g.stmt<TransactionWait>("wait full").index};
  Block added = g.body([&] {
    g.loop(g.i(lanes), LoopForm::vectorized, [&](E lane) {
      const E at = index(g, g.thread() * lanes + lane);
      g.store(out, g.thread() * lanes + lane, g.load(g.as, slot * (g.t.m * g.t.k) + at));
    });
    g.barrier(7, 128);  // before the slot's release
  });
  for (Stmt& s : g.p.stmts)
    for (Block* block : blocks_inside(s.node))
      if (const auto it = std::find(block->begin(), block->end(), before); it != block->end()) {
        block->insert(waits ? it + 1 : it, added.begin(), added.end());
        return joined(verify_transactions(g.p));
      }
  return "no wait";
}

TEST(TransactionVerify, ReadsOfThreadsAtAnyIndex) {
  const int64_t elements = kTiles[0].m * kTiles[0].k;
  const std::function<E(SpecialisedGemm&, E)> indices[] = {
      [&](SpecialisedGemm&, E i) { return i % elements; },
      [&](SpecialisedGemm& g, E i) { return g.i(elements - 1) - i % elements / 2; },
      [&](SpecialisedGemm&, E i) { return (i + 5) % elements; },
      [&](SpecialisedGemm& g, E i) { return op(ir::ExprOp::bit_xor, i % elements, g.i(7)); },
      [&](SpecialisedGemm& g, E i) {
        return cast(ir::DType::i64, g.load(g.tensor("where", ir::DType::f32), i));
      }};
  for (size_t i = 0; i < std::size(indices); ++i)
    for (int64_t lanes : {1, 8}) {
      EXPECT_EQ(read_behind_wait(indices[i], lanes, true), "") << i;
      const std::string early = read_behind_wait(indices[i], lanes, false);
      EXPECT_NE(early.find("loop: As (slot 0) is "), std::string::npos) << i << ": " << early;
    }
}

// ---- products

TEST(TransactionVerify, ReleasedBeforeTheProductIsFinished) {
  const std::string words =
      "gemm/ko/copy#0 after gemm/ko/gemm#0: As (slot 0) is filled while a product may still read it";
  expect_hazard(words, [](SpecialisedGemm& g) { g.stmt<WarpgroupWait>("wait one").pending = 2; });
  expect_hazard(words, [](SpecialisedGemm& g) { g.remove("wait one"); });
  expect_hazard(words, [](SpecialisedGemm& g) { g.remove("commit"); });
  expect_hazard("is filled while a product may still read it",
                [](SpecialisedGemm& g) { g.remove("wait all"); });
}

TEST(TransactionVerify, SlotsOneFewerThanTheBarriersAssume) {
  expect_hazard("is filled again with no wait for those who release it", [](SpecialisedGemm& g) {
    auto& load = g.stmt<TensorLoad>("load a");
    const int64_t kept = g.t.m * g.t.k * (g.t.slots - 1);
    load.dst_index = (E{&g.p.exprs, load.dst_index} % kept).id;
    auto& product = g.stmt<WarpgroupMma>("product");
    product.a_index = (E{&g.p.exprs, product.a_index} % kept).id;
  });
}

// ---- stores

TEST(TransactionVerify, StagedStores) {
  expect_hazard("stage is used with no proxy fence of the threads that write it",
                [](SpecialisedGemm& g) { g.remove("proxy fence"); });
  expect_hazard("stage is used with no barrier after the threads that write it",
                [](SpecialisedGemm& g) { g.remove("barrier after"); });
  const std::string read = "stage is written while the copy engine may still read it";
  expect_hazard(read, [](SpecialisedGemm& g) { g.remove("bulk wait"); });
  expect_hazard(read, [](SpecialisedGemm& g) { g.remove("barrier before"); });
  expect_hazard(read, [](SpecialisedGemm& g) { g.remove("bulk commit"); });
  expect_hazard("the block ends with no wait for the copy",
                [](SpecialisedGemm& g) { g.remove("last bulk wait"); });
}

// ---- memory that is not ordered, in a role

TEST(TransactionVerify, OtherMemoryIsJudgedAmongTheRolesThreads) {
  for (bool barrier : {true, false}) {
    SpecialisedGemm g({128, 64, 32, false, 3});
    const MemoryId s = g.shared("scratch", ir::DType::i32, 256), r = g.registers("r", ir::DType::i32, 1);
    auto& body = g.stmt<Roles>("roles").roles[0].body;
    Block own;
    g.open = {&own};
    const E t = g.thread();
    g.store(s, t, sim::test::cast(ir::DType::i32, t), "scratch/write");
    if (barrier) g.barrier(5, 256, false, "scratch");
    g.store(r, g.i(0), g.load(s, t ^ g.i(1)), "scratch/read");
    std::get<Roles>(g.p.stmts[g.at["roles"].value].node)
        .roles[0]
        .body.insert(body.end(), own.begin(), own.end());
    EXPECT_EQ(joined(verify_transactions(g.p)), "");
    const std::string found = joined(verify_synchronization(g.p));
    EXPECT_EQ(found.find("scratch") == std::string::npos, barrier) << found;
  }
}

TEST(TransactionVerify, ProductsReadMemoryThatIsNotOrdered) {
  // The stage of C as an operand that threads write again.
  for (bool wait : {true, false}) {
    sim::test::GpuProgram g(128);
    const MemoryId bs = g.shared("Bs", ir::DType::f16, 32 * 16), acc = g.registers("acc", ir::DType::f32, 16),
                   ar = g.registers("ar", ir::DType::f16, 8);
    WarpgroupMma m;
    m.atom = "wgmma.m64n32k16.f32.f16.f16";
    m.a = ar, m.b = bs, m.c = acc;
    m.a_index = m.b_index = m.c_index = g.i(0).id;
    m.a_steps = m.b_steps = {0};
    m.b_form = {32, true, 0, 256};
    ASSERT_EQ(operand_ranges(g.p, m, false).size(), 1u);
    EXPECT_EQ(operand_ranges(g.p, m, false)[0].count, 32 * 16);
    const auto fill = [&] {
      g.loop(g.i(4), LoopForm::serial,
             [&](E j) { g.store(bs, j * 128 + g.thread(), g.num(0, ir::DType::f16), "fill"); });
    };
    fill();
    g.add(ProxyFence{}, "fill");
    g.barrier();
    g.add(m, "gemm");
    g.add(WarpgroupCommit{}, "gemm");
    if (wait) g.add(WarpgroupWait{0, {acc}}, "gemm");
    g.barrier();
    fill();
    const std::string found = joined(verify_synchronization(g.p));
    EXPECT_EQ(found.find("writes in Bs what a product reads that was not waited for") == std::string::npos,
              wait)
        << found;
  }
}

}  // namespace
}  // namespace tilegen::thread
