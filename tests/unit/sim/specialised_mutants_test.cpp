// Defects of a warp-specialised kernel: each is found by name, under every schedule.
#include "specialised_gemm.h"

#include <set>

namespace tilegen::sim::test {
namespace {

using Change = std::function<void(SpecialisedGemm&)>;

constexpr GemmTiles kOne{64, 32, 64, true, 3}, kTwo{128, 64, 32, false, 3};

// Runs the kernel with a change, 7 steps and several tiles a block. Every run has a finding of one of these
// kinds, which others may follow from; one of them says `text`.
void expect_found(const GemmTiles& t, const std::set<FindingKind>& kinds, const Change& change,
                  const std::string& text = "") {
  for_each_schedule([&](const SimOptions& options) {
    SpecialisedGemm g(t);
    change(g);
    SpecialisedData data(t, 4 * t.m + 24, t.n, 7 * t.k - 8);
    const Arguments arguments = data.arguments();
    auto result = simulate(g.p, sm90a(), arguments.slots, arguments.extents, options);
    ASSERT_TRUE(static_cast<bool>(result)) << result.error().to_text();
    bool found = false;
    for (const Finding& f : result->findings)
      found |= kinds.count(f.kind) == 1 && f.to_text().find(text) != std::string::npos;
    EXPECT_TRUE(found) << t.m << "x" << t.n << "x" << t.k << ", " << order_name(options) << ":\n"
                       << texts(*result);
  });
}
void expect_found(FindingKind kind, const Change& change, const std::string& text = "") {
  for (const GemmTiles& t : {kOne, kTwo}) expect_found(t, {kind}, change, text);
}

ExprId other_parity(SpecialisedGemm& g, ExprId parity) { return (g.i(1) - E{&g.p.exprs, parity}).id; }

// ---- phases, arrivals and bytes

TEST(SimSpecialisedMutants, ConsumerPhaseFlipped) {
  // The first wait passes before anything has landed, or, where everything has, never.
  for (const GemmTiles& t : {kOne, kTwo})
    expect_found(t, {FindingKind::async_not_waited, FindingKind::uninitialised_read, FindingKind::deadlock},
                 [](SpecialisedGemm& g) {
                   auto& wait = g.stmt<thread::TransactionWait>("wait full");
                   wait.parity = other_parity(g, wait.parity);
                 });
}

TEST(SimSpecialisedMutants, ProducerPhaseFlipped) {
  expect_found(
      FindingKind::deadlock,
      [](SpecialisedGemm& g) {
        auto& wait = g.stmt<thread::TransactionWait>("wait empty");
        wait.parity = other_parity(g, wait.parity);
      },
      "for phase parity 0 of empty[0] (in phase 0, 0 of ");
}

TEST(SimSpecialisedMutants, FullWaitRemoved) {
  expect_found(FindingKind::async_not_waited, [](SpecialisedGemm& g) { g.remove("wait full"); });
}

TEST(SimSpecialisedMutants, EmptyWaitRemoved) {
  expect_found(FindingKind::async_not_waited, [](SpecialisedGemm& g) { g.remove("wait empty"); });
}

TEST(SimSpecialisedMutants, MoreBytesExpected) {
  expect_found(
      FindingKind::deadlock,
      [](SpecialisedGemm& g) { g.stmt<thread::TransactionArrive>("expect").bytes += 16; },
      "full[0] (in phase 0, 1 of 1 arrivals there, 16 announced bytes that no copy brings)");
}

TEST(SimSpecialisedMutants, FewerBytesExpected) {
  expect_found(FindingKind::transaction_bytes,
               [](SpecialisedGemm& g) { g.stmt<thread::TransactionArrive>("expect").bytes -= 16; });
}

TEST(SimSpecialisedMutants, TooManyArrivalsCounted) {
  expect_found(
      FindingKind::deadlock,
      [](SpecialisedGemm& g) { ++g.p.barriers[static_cast<size_t>(g.empty)].arrivals; }, "arrivals there)");
}

TEST(SimSpecialisedMutants, TooFewArrivalsCounted) {
  expect_found(kTwo, {FindingKind::operand_in_flight},
               [](SpecialisedGemm& g) { --g.p.barriers[1].arrivals; });
}

TEST(SimSpecialisedMutants, ReleaseRemoved) {
  expect_found(FindingKind::deadlock, [](SpecialisedGemm& g) { g.remove("release last"); });
  expect_found(FindingKind::deadlock, [](SpecialisedGemm& g) { g.remove("release"); });
}

// ---- products

TEST(SimSpecialisedMutants, ReleasedBeforeTheProductIsFinished) {
  expect_found(FindingKind::operand_in_flight,
               [](SpecialisedGemm& g) { g.stmt<thread::WarpgroupWait>("wait one").pending = 2; });
}

TEST(SimSpecialisedMutants, ProductWaitRemoved) {
  expect_found(FindingKind::operand_in_flight, [](SpecialisedGemm& g) { g.remove("wait one"); });
  for (const GemmTiles& t : {kOne, kTwo})
    expect_found(t, {FindingKind::register_in_flight, FindingKind::operand_in_flight},
                 [](SpecialisedGemm& g) { g.remove("wait all"); });
}

TEST(SimSpecialisedMutants, WaitDoesNotNameTheRegisters) {
  expect_found(FindingKind::register_in_flight,
               [](SpecialisedGemm& g) { g.stmt<thread::WarpgroupWait>("wait all").registers.clear(); });
}

TEST(SimSpecialisedMutants, CommitRemoved) {
  for (const GemmTiles& t : {kOne, kTwo})
    expect_found(t, {FindingKind::register_in_flight, FindingKind::operand_in_flight},
                 [](SpecialisedGemm& g) { g.remove("commit"); });
}

TEST(SimSpecialisedMutants, WarpgroupFenceRemoved) {
  expect_found(FindingKind::product_not_fenced, [](SpecialisedGemm& g) { g.remove("fence"); });
}

TEST(SimSpecialisedMutants, StrideWrong) {
  // Half: rows fall onto each other. Twice: the operand leaves its slot.
  expect_found(FindingKind::matrix_form,
               [](SpecialisedGemm& g) { g.stmt<thread::WarpgroupMma>("product").a_form.stride_bytes /= 2; });
  for (const GemmTiles& t : {kOne, kTwo})
    expect_found(t, {FindingKind::out_of_bounds}, [](SpecialisedGemm& g) {
      g.stmt<thread::WarpgroupMma>("product").b_form.stride_bytes *= 2;
    });
}

TEST(SimSpecialisedMutants, SwizzleWrong) {
  for (const GemmTiles& t : {kOne, kTwo})
    expect_found(t, {FindingKind::matrix_form, FindingKind::misaligned, FindingKind::out_of_bounds},
                 [](SpecialisedGemm& g) { g.stmt<thread::WarpgroupMma>("product").a_form.swizzle /= 2; });
}

TEST(SimSpecialisedMutants, SlotsOneFewerThanTheBarriersAssume) {
  expect_found(FindingKind::async_not_waited, [](SpecialisedGemm& g) {
    for (const char* name : {"load a", "load b"}) {
      auto& load = g.stmt<thread::TensorLoad>(name);
      const int64_t kept = g.p.memory(load.dst).elements / g.t.slots * (g.t.slots - 1);
      load.dst_index = (E{&g.p.exprs, load.dst_index} % kept).id;
    }
    auto& product = g.stmt<thread::WarpgroupMma>("product");
    const int64_t a = g.t.m * g.t.k * (g.t.slots - 1), b = g.t.n * g.t.k * (g.t.slots - 1);
    product.a_index = (E{&g.p.exprs, product.a_index} % a).id;
    product.b_index = (E{&g.p.exprs, product.b_index} % b).id;
  });
}

// ---- stores

TEST(SimSpecialisedMutants, ProxyFenceRemoved) {
  expect_found(FindingKind::proxy_not_fenced, [](SpecialisedGemm& g) { g.remove("proxy fence"); });
}

TEST(SimSpecialisedMutants, BarrierRemoved) {
  for (const GemmTiles& t : {kOne, kTwo})
    expect_found(t, {FindingKind::data_race}, [](SpecialisedGemm& g) { g.remove("barrier after"); });
  for (const GemmTiles& t : {kOne, kTwo})
    expect_found(t, {FindingKind::async_source_changed},
                 [](SpecialisedGemm& g) { g.remove("barrier before"); });
}

TEST(SimSpecialisedMutants, BulkWaitRemoved) {
  expect_found(FindingKind::async_source_changed, [](SpecialisedGemm& g) { g.remove("bulk wait"); });
  expect_found(
      FindingKind::tensor_copy_unfinished, [](SpecialisedGemm& g) { g.remove("last bulk wait"); },
      "no wait covers its group");
}

TEST(SimSpecialisedMutants, TilesAreStoredToOnePlace) {
  const auto one_place = [](SpecialisedGemm& g) {
    g.stmt<thread::TensorStore>("store").coordinates = {g.i(0).id, g.i(0).id};
  };
  expect_found(FindingKind::data_race, one_place, "no barrier stands between them");
  // By a block for each.
  SpecialisedGemm g(kOne);
  one_place(g);
  SpecialisedData data(kOne, 4 * kOne.m, kOne.n, kOne.k);
  SimOptions options;
  options.resident_blocks = 4;
  const SimResult r = run(g, data, options);
  ASSERT_EQ(r.findings.size(), 1u) << texts(r);
  EXPECT_NE(r.findings[0].message.find("nothing orders two blocks"), std::string::npos) << texts(r);
}

TEST(SimSpecialisedMutants, BulkCommitRemoved) {
  for (const GemmTiles& t : {kOne, kTwo})
    expect_found(t, {FindingKind::async_source_changed, FindingKind::tensor_copy_unfinished},
                 [](SpecialisedGemm& g) { g.remove("bulk commit"); });
}

}  // namespace
}  // namespace tilegen::sim::test
