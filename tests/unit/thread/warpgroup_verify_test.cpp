// The invariants of products and registers in flight: each test breaks one and expects its report.
#include "specialised_program.h"

namespace tilegen::thread {
namespace {

using ir::DType;
using ir::ExprId;
using ir::VarKind;

TEST_F(CooperationVerifyTest, PipelinedProductsAreClean) {
  Block round{fence(), product(), commit(), wait(1)};
  consumer = {write(acc), loop(round), wait(0, {acc}), read(acc)};
  expect_clean();
}

TEST_F(CooperationVerifyTest, ResultsInFlightAreNotRead) {
  consumer = {fence(), product(), commit(), read(acc), wait(0, {acc})};
  expect_report(
      "main/copy#3: registers acc are read while the warpgroup product of main/gemm#1 that writes them");
}

TEST_F(CooperationVerifyTest, ResultsInFlightAreNotWritten) {
  consumer = {fence(), product(), commit(), wait(1), write(acc)};
  expect_report("main/fill#2: registers acc are written while");
}

TEST_F(CooperationVerifyTest, WaitsCountCommits) {
  consumer = {fence(), product(), wait(0, {acc}), read(acc)};
  expect_report("acc are read while");  // never committed
}

TEST_F(CooperationVerifyTest, OlderGroupsAreCovered) {
  WarpgroupMma second = mma;
  second.c = other;
  consumer = {fence(),        product(), commit(),         add(second), commit(),
              wait(1, {acc}), read(acc), wait(0, {other}), read(other)};
  expect_clean();
  p.body.clear();
  consumer = {fence(), product(), commit(), add(second), commit(), wait(1, {acc}), read(other)};
  expect_report("other are read while");
}

TEST_F(CooperationVerifyTest, LoopsCarryProductsAround) {
  consumer = {loop({read(acc), fence(), product(), commit()}), wait(0, {acc})};
  expect_report("acc are read while");
}

TEST_F(CooperationVerifyTest, OperandsInRegistersStay) {
  mma.a = part, mma.a_steps = {0, 8, 16, 24};
  consumer = {fence(), product(), commit(), write(part), wait(0, {acc, part})};
  expect_report("part are written while the warpgroup product of main/gemm#1 that reads them");
  p.body.clear();
  consumer = {fence(), product(), commit(), read(part), wait(0, {acc, part}), write(part)};
  expect_clean();
}

TEST_F(CooperationVerifyTest, OperandsInRegistersAreFinished) {
  MemoryId halves = registers("halves", DType::f16, 64);
  WarpgroupMma first = mma;
  first.atom = "wgmma.m64n128k16.f16.f16.f16", first.c = halves, first.b_form.stride_bytes = 256;
  mma.a = halves, mma.a_steps = {0, 8, 16, 24};
  consumer = {fence(), add(first), commit(), product(), commit(), wait(0, {acc, halves})};
  expect_report("halves are read while");
}

TEST_F(CooperationVerifyTest, FenceStandsBehindTouchedRegisters) {
  consumer = {write(acc), product(), commit(), wait(0, {acc})};
  expect_report(
      "registers acc were touched, and no warpgroup fence stands before wgmma.m64n64k16.f32.f16.f16");
  p.body.clear();
  consumer = {fence(), write(acc), product(), commit(), wait(0, {acc})};
  expect_report("registers acc were touched");
  p.body.clear();
  mma.a = part, mma.a_steps = {0, 8, 16, 24};
  consumer = {loop({fence(), product(), commit(), wait(0, {acc, part}), write(part), product(), commit(),
                    wait(0, {acc})})};
  expect_report("registers part were touched");
}

TEST_F(CooperationVerifyTest, PlacesOfSparseProductsStay) {
  const MemoryId places = registers("places", DType::u32, 2);
  mma.atom = "wgmma.sp.m64n64k32.f32.f16.f16";
  mma.a_steps = {0, 16}, mma.b_steps = {0, 32};
  const auto write_places = [&] {
    return add(Store{places, c(0), p.exprs.const_int(4, DType::u32)}, "main/gemm#1");
  };
  consumer = {fence(), product(), commit(), wait(0, {acc})};
  expect_report("wgmma.sp.m64n64k32.f32.f16.f16 without places");
  p.body.clear();
  mma.places = places, mma.places_index = c(0);
  consumer = {loop({wait(0), write_places(), fence(), product(), commit()}), wait(0, {acc})};
  expect_clean();
  p.body.clear();
  consumer = {loop({write_places(), fence(), product(), commit()}), wait(0, {acc})};
  expect_report("registers places are written while the warpgroup product of main/gemm#1 that reads them");
  p.body.clear();
  consumer = {fence(), write_places(), product(), commit(), wait(0, {acc})};
  expect_report("registers places were touched, and no warpgroup fence stands before wgmma.sp");
  p.body.clear();
  mma.places_index = c(1);
  consumer = {fence(), product(), commit(), wait(0, {acc})};
  expect_report("places");
  p.body.clear();
  mma.places_index = c(0), mma.b_form = {32, true, 0, 256};
  consumer = {fence(), product(), commit(), wait(0, {acc})};
  expect_report("32 elements along k are more than a row of 32 bytes of B");
}

TEST_F(CooperationVerifyTest, WaitsHandResultsOver) {
  consumer = {fence(), product(), commit(), wait(0), read(acc)};
  expect_report("no warpgroup wait after the product names them");
}

TEST_F(CooperationVerifyTest, BranchesJoin) {
  StmtId branch = add(Branch{p.exprs.lt(p.exprs.var(p.thread_var), c(128)), {wait(0, {acc})}, {}});
  consumer = {fence(), product(), commit(), branch, read(acc)};
  expect_report("acc are read while");
}

}  // namespace
}  // namespace tilegen::thread
