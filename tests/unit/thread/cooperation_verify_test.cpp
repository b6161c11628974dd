// The invariants of statements that several warps carry out together: each test breaks one and expects its
// report.
#include "specialised_program.h"

namespace tilegen::thread {
namespace {

using ir::DType;
using ir::ExprId;
using ir::VarKind;

TEST_F(CooperationVerifyTest, SpecialisedProgramIsClean) {
  consumer = {add(TransactionWait{0, c(1), c(0)}),
              fence(),
              product(),
              commit(),
              wait(0, {acc}),
              add(TransactionArrive{1, c(1), 0}),
              read(acc),
              add(ProxyFence{}),
              add(TensorStore{1, {c(0), c(-8)}, b_tile, c(0)}),
              add(BulkCommit{}),
              add(BulkWait{0, true})};
  producer = {add(OneThread{
      {add(TransactionArrive{0, c(1), 16384}), add(TensorLoad{0, {c(0), c(0)}, a_tile, c(0), 0, c(1)})}})};
  expect_clean();
}

TEST_F(CooperationVerifyTest, Barriers) {
  auto broken = [&](auto change, const std::string& part) {
    ThreadProgram good = p;
    change(p.barriers[0]);
    expect_reports(verify_thread_program(p), part);
    p = good;
  };
  broken([](auto& b) { b.count = 0; }, "barriers full are 0");
  broken([](auto& b) { b.arrivals = 0; }, "0 arrivals");
  broken([](auto& b) { b.arena_offset = 4; }, "no place in the arena");
  broken([](auto& b) { b.arena_offset = -1; }, "no place in the arena");
  broken([&](auto& b) { b.arena_offset = p.arena_bytes; }, "no place in the arena");
  broken([](auto& b) { b.arena_offset = 0; }, "barriers full overlap A");
  broken([](auto& b) { b.count = 3; }, "barriers full overlap empty");
}

TEST_F(CooperationVerifyTest, TensorMaps) {
  auto broken = [&](auto change, const std::string& part) {
    ThreadProgram good = p;
    change(p.tensor_maps[0]);
    expect_reports(verify_thread_program(p), part);
    p = good;
  };
  broken([&](auto& m) { m.tensor = MemoryId(99); }, "memory id out of range");
  broken([&](auto& m) { m.tensor = a_tile; }, "A is not global");
  broken([](auto& m) { m.strides.clear(); }, "0 strides");
  broken([](auto& m) { m.box.push_back(1); }, "box of 3");
  broken([&](auto& m) { m.extents[0] = p.exprs.var(p.block_vars[0]); }, "neither a dim nor a scalar");
  broken([&](auto& m) { m.strides[0] = c(24); }, "stride of 24 bytes");
  broken([](auto& m) { m.box[1] = 257; }, "257 elements along a dimension");
  broken([](auto& m) { m.box[0] = 0; }, "0 elements along a dimension");
  broken([](auto& m) { m.swizzle = 16; }, "swizzle of 16 bytes");
  broken([](auto& m) { m.swizzle = 64; }, "rows of 128 bytes and a swizzle of 64");
  broken([](auto& m) { m.box[0] = 4; }, "rows of 8 bytes");
}

TEST_F(CooperationVerifyTest, PersistentPrograms) {
  p.vars[p.launched_var.value].kind = VarKind::dim;
  expect_reports(verify_thread_program(p), "variable of another kind");
  p.vars[p.launched_var.value].kind = VarKind::block_index;
  p.grid.push_back(c(2)), p.block_vars.push_back(p.add_var("c", VarKind::block_index));
  expect_reports(verify_thread_program(p), "a persistent program with 2 grid extents");
}

TEST_F(CooperationVerifyTest, Claims) {
  Memory m;
  m.name = "number", m.space = Space::local, m.type = ir::DType::i32, m.elements = 1, m.alignment = 4,
  m.in_registers = true;
  const MemoryId number = p.add_memory(m);
  p.body.push_back(add(FetchTile{number, c(0)}));
  expect_reports(verify_thread_program(p), "a fetched tile, and no counter");
  p.dynamic_tiles = true;
  EXPECT_EQ(verify_thread_program(p), std::vector<std::string>());
  p.memories[number.value].type = ir::DType::i64;
  p.memories[number.value].alignment = 8;
  expect_reports(verify_thread_program(p), "a fetched tile into number, which holds i64");
  p.memories[number.value].type = ir::DType::i32;
  const ir::VarId launched = std::exchange(p.launched_var, ir::VarId());
  expect_reports(verify_thread_program(p), "the program is not persistent");
  p.launched_var = launched;
  p.cluster = 2;
  expect_reports(verify_thread_program(p), "blocks of a cluster take tiles");
}

TEST_F(CooperationVerifyTest, RolesStandLastAndOnce) {
  finish();
  p.body.push_back(add(ProxyFence{}));
  expect_reports(verify_thread_program(p), "roles stand elsewhere");
  p.body.pop_back();
  p.body = {loop(p.body)};
  expect_reports(verify_thread_program(p), "roles stand elsewhere");
  p.body.clear();
  finish(), finish();
  expect_reports(verify_thread_program(p), "roles stand elsewhere");
}

TEST_F(CooperationVerifyTest, RolesMakeUpTheBlock) {
  auto broken = [&](auto change, const std::string& part) {
    p.body.clear();
    finish();
    change(roles());
    expect_reports(verify_thread_program(p), part);
  };
  broken([](Roles& r) { r.roles[1].first_thread = 128; }, "begins at thread 128, expected 256");
  broken([](Roles& r) { r.roles.pop_back(); }, "make up 256 threads of a block of 384");
  broken([](Roles& r) { r.roles[1].threads = 96; }, "multiples of 128");
  broken([](Roles& r) { r.roles[1].threads = 16, r.roles[1].registers = 0; }, "multiples of 32");
  broken([](Roles& r) { r.roles[1].registers = 20; }, "asks for 20 registers");
  broken([](Roles& r) { r.roles[1].registers = 264; }, "asks for 264 registers");
  broken([](Roles& r) { r.roles[0].registers = 240; }, "a block is launched with 64512");
}

TEST_F(CooperationVerifyTest, OneThreadOfWholeWarps) {
  p.threads = 16;
  p.body = {add(OneThread{})};
  expect_reports(verify_thread_program(p), "chosen among 16");
}

TEST_F(CooperationVerifyTest, ArrivalsAndWaits) {
  auto broken = [&](StmtId s, const std::string& part) {
    p.body = {s};
    expect_reports(verify_thread_program(p), part);
  };
  broken(add(TransactionArrive{2, c(0), 0}), "barriers that do not exist");
  broken(add(TransactionArrive{0, c(2), 0}), "full[2] of 2");
  broken(add(TransactionArrive{0, p.exprs.const_float(0, DType::f32), 0}), "expected i64");
  broken(add(TransactionArrive{0, c(0), -16}), "announces -16 bytes");
  broken(add(TransactionWait{-1, c(0), c(0)}), "barriers that do not exist");
  broken(add(TransactionWait{0, c(0), c(2)}), "a wait for parity 2");
  broken(add(TransactionWait{0, c(0), c(0), c(1)}), "answer of a test");
  const MemoryId answer = registers("answer", DType::i32, 1);
  broken(add(TransactionTest{2, c(0), c(0), answer, c(0)}), "barriers that do not exist");
  broken(add(TransactionTest{0, c(0), c(-1), answer, c(0)}), "a test for parity -1");
  broken(add(TransactionTest{0, c(0), c(0), answer, c(1)}), "a test");
  broken(add(TransactionTest{0, c(0), c(0), acc, c(0)}), "a test into");
  broken(add(BulkWait{-1, false}), "-1 pending bulk groups");
}

TEST_F(CooperationVerifyTest, Clusters) {
  auto broken = [&](auto node, const std::string& part) {
    p.body = {add(std::move(node))};
    expect_reports(verify_thread_program(p), part);
  };
  TensorLoad load{0, {c(0), c(0)}, a_tile, c(0), 0, c(1), 3};
  broken(load, "a tensor load to several blocks, and no cluster");
  broken(ClusterBarrier{}, "a barrier of the cluster, and no cluster");
  broken(TransactionArrive{0, c(0), 0, c(1)}, "the barrier of another block, and no cluster");
  p.cluster = 3;
  broken(OneThread{}, "a cluster has 3 blocks, expected a power of two, at most 16");
  p.cluster = 32;
  broken(OneThread{}, "a cluster has 32 blocks");
  p.cluster = 2;
  p.body = {add(load), add(ClusterBarrier{}), add(TransactionArrive{0, c(0), 0, c(1)})};
  EXPECT_TRUE(verify_thread_program(p).empty());
  load.multicast = 4;
  broken(load, "a tensor load to blocks 4 (bits) of a cluster of 2");
  load.multicast = -1;
  broken(load, "a tensor load to blocks -1 (bits)");
  broken(TransactionArrive{0, c(0), 0, c(2)}, "the barrier of block 2 of a cluster of 2");
  broken(TransactionArrive{0, c(0), 64, c(1)}, "the barrier of another block announces 64 bytes");
  broken(TransactionArrive{0, c(0), 0, p.exprs.const_float(0, DType::f32)}, "expected i64");
}

TEST_F(CooperationVerifyTest, LoadsFromBlocksOfTheCluster) {
  const MemoryId sums = shared("sums", 128);
  thread::Memory& memory = p.memories[sums.value];
  memory.type = DType::f32, memory.elements = 64, memory.alignment = 16;
  auto broken = [&](auto change, const std::string& part) {
    ClusterLoad load{acc, c(0), sums, c(4), 4, c(1)};
    change(load);
    p.body = {add(std::move(load))};
    expect_reports(verify_thread_program(p), part);
  };
  broken([](auto&) {}, "a load from a block of the cluster, and no cluster");
  p.cluster = 2;
  p.body = {add(ClusterLoad{acc, c(0), sums, c(4), 4, c(1)})};
  EXPECT_EQ(verify_thread_program(p), std::vector<std::string>());
  broken([](auto& l) { l.elements = 3; }, "a load from a block of the cluster of 3 elements");
  broken([&](auto& l) { l.block = c(2); }, "block 2 of a cluster of 2");
  broken([&](auto& l) { l.src = a_tile; }, "expected shared memory and registers of one type of 4 bytes");
  broken([&](auto& l) { l.dst = sums; }, "is not in registers");
  broken([&](auto& l) { l.src_index = c(p.memory(sums).elements); }, "are outside");
  memory.alignment = 4, memory.arena_offset -= 4;
  broken([](auto&) {}, "expected a multiple of 16");
}

TEST_F(CooperationVerifyTest, TensorCopies) {
  auto broken = [&](auto copy, const std::string& part) {
    p.body = {add(std::move(copy))};
    expect_reports(verify_thread_program(p), part);
  };
  const TensorLoad good{0, {c(0), c(0)}, a_tile, c(0), 0, c(1)};
  TensorLoad load = good;
  load.map = 2;
  broken(load, "tensor map that does not exist");
  load = good, load.coordinates.pop_back();
  broken(load, "has 1 coordinates");
  load = good, load.coordinates[0] = p.exprs.const_float(0, DType::f32);
  broken(load, "expected i64");
  load = good, load.dst = acc;
  broken(load, "expected shared memory");
  load = good, load.dst = b_tile;
  broken(load, "outside B");
  load = good, load.dst_index = c(256);
  broken(load, "expected a multiple of 1024");
  Memory& slots = p.memories[a_tile.value];
  const Memory whole = slots;
  slots.slots = 32, slots.elements = 32 * 320;
  broken(good, "slots of A take 640 bytes, expected a multiple of 1024");
  slots = whole;
  load = good, load.barriers = 7;
  broken(load, "barriers that do not exist");
  broken(TensorStore{0, {c(0), c(0)}, a_tile, c(0)}, "X is read-only");
}

TEST_F(CooperationVerifyTest, ProductsOfAWarpgroup) {
  const WarpgroupMma good = mma;
  auto broken = [&](const std::string& part) {
    p.body = {fence(), product()};
    expect_reports(verify_thread_program(p), part);
    mma = good;
  };
  mma.atom = "mma.m16n8k16.f32.f16";
  broken("no product of a warpgroup");
  mma.a_steps.pop_back();
  broken("3 steps of A and 4 of B");
  mma.accumulate = c(1);
  broken("expected bool");
  mma.c = a_tile;
  broken("A is not in registers");
  mma.c_index = c(8);
  broken("outside acc");
  mma.b = acc;
  broken("acc is not shared");
  mma.a = in;
  broken("X is not shared");
  mma.b_form.swizzle = 16;
  broken("swizzle 16");
  mma.b_form.stride_bytes = 1000;
  broken("distances 0 and 1000");
  mma.b_steps[1] = 4;
  broken("a step of 4 elements");
  mma.b_steps[3] = 64 * 64;
  broken("than B[4096] has");
  mma.a = part, mma.a_steps = {0, 8, 16, 32};
  broken("outside part");
  p.threads = 96;
  broken("expected whole warpgroups");
  p.threads = 384;
  p.body = {wait(-1)};
  expect_reports(verify_thread_program(p), "-1 pending warpgroup groups");
  p.body = {wait(0, {a_tile})};
  expect_reports(verify_thread_program(p), "not in registers");
}

TEST_F(CooperationVerifyTest, RolesOfWholeWarpgroupsMultiply) {
  producer = {fence()};
  finish();
  roles().roles[1].registers = 0, roles().roles[1].threads = 32;
  p.threads = 288;
  expect_reports(verify_thread_program(p), "32 threads from 256");
}

}  // namespace
}  // namespace tilegen::thread
