// The copy engine and products alone: what they move and compute, and findings about each with its clean
// twin.
#include "finding_checks.h"
#include "specialised_gemm.h"

namespace tilegen::sim::test {
namespace {

// One box there and back by a block of one warp: In -> shared -> Out, or shared as it lies to Raw.
struct BoxProgram : GpuProgram {
  MemoryId in, out, raw, tile;
  thread::StmtId expect, load, wait, fence, store;
  int64_t elements = 1;

  BoxProgram(std::vector<int64_t> extents, std::vector<int64_t> box, int swizzle, std::vector<int64_t> at)
      : GpuProgram(32) {
    in = tensor("In", DType::f16), out = tensor("Out", DType::f16), raw = tensor("Raw", DType::f16);
    p.memories[in.value].read_only = true;
    for (int64_t b : box) elements *= b;
    tile = shared("tile", DType::f16, elements, 1, 1024);
    p.memories[tile.value].alignment = 1024;
    p.barriers.push_back({"full", 1, 1, 0});
    std::vector<ExprId> sizes, strides, coordinates;
    int64_t stride = 2;
    for (size_t d = 0; d < extents.size(); ++d) {
      sizes.push_back(i(extents[d]).id);
      if (d > 0) strides.push_back(i(stride).id);
      stride *= (extents[d] + 7) / 8 * 8;
      coordinates.push_back(i(at[d]).id);
    }
    for (MemoryId m : {in, out})
      p.tensor_maps.push_back({p.memory(m).name + "_map", m, sizes, strides, box, swizzle});
    once([&] {
      expect = add(thread::TransactionArrive{0, i(0).id, elements * 2}, "copy#0");
      load = add(thread::TensorLoad{0, coordinates, tile, i(0).id, 0, i(0).id}, "copy#0");
    });
    wait = add(thread::TransactionWait{0, i(0).id, i(0).id}, "copy#0");
    loop(i(elements / 32), LoopForm::serial, [&](E j) {
      this->GpuProgram::store(raw, j * 32 + thread(), GpuProgram::load(tile, j * 32 + thread()), "copy#1");
    });
    once([&] {
      store = add(thread::TensorStore{1, coordinates, tile, i(0).id}, "copy#2");
      add(thread::BulkCommit{}, "copy#2");
      add(thread::BulkWait{0, false}, "copy#2");
    });
  }
  void once(const std::function<void()>& fill) {
    thread::OneThread one;
    open.push_back(&one.body);
    fill();
    open.pop_back();
    add(std::move(one), "copy");
  }
};

struct BoxData {
  std::vector<uint16_t> in, out, raw;
  BoxData(const std::vector<int64_t>& extents, int64_t box) : raw(static_cast<size_t>(box), 0xdead) {
    int64_t total = 1;
    for (int64_t e : extents) total *= (e + 7) / 8 * 8;
    for (int64_t i = 0; i < total; ++i) in.push_back(static_cast<uint16_t>(i + 1));
    out.assign(static_cast<size_t>(total), 0xbeef);
  }
  Arguments arguments() { return Arguments().tensor(in).tensor(out).tensor(raw); }
};

SimResult run90(const GpuProgram& g, const Arguments& a, const SimOptions& options = {}) {
  EXPECT_EQ(g.problems(), std::vector<std::string>());
  auto result = simulate(g.p, sm90a(), a.slots, a.extents, options);
  EXPECT_TRUE(static_cast<bool>(result)) << (result ? "" : result.error().to_text());
  return result ? *result : SimResult{};
}

// What the hardware calls an illegal instruction.
TEST(SimTensorEngine, PlacesAreMultiplesOf16BytesAndStoresBeginInTheTensor) {
  const auto found = [](std::vector<int64_t> at) {
    const BoxProgram g({40, 20}, {32, 8}, 64, std::move(at));
    BoxData data({40, 20}, g.elements);
    return texts(run90(g, data.arguments()));
  };
  EXPECT_EQ(found({8, 3}), "");
  EXPECT_NE(found({4, 3}).find("misaligned: copy#0"), std::string::npos);
  EXPECT_NE(found({4, 3}).find("the box begins at byte 8 of a row, no multiple of 16"), std::string::npos);
  EXPECT_NE(found({8, -3}).find("out_of_bounds: copy#2"), std::string::npos);
  EXPECT_EQ(found({8, -3}).find("copy#0"), std::string::npos);  // loads may
}

TEST(SimTensorEngine, MovesBoxesAndClips) {
  struct Case {
    std::vector<int64_t> extents, box, at;
    int swizzle;
  };
  const std::vector<Case> cases = {
      {{64, 16}, {64, 16}, {0, 0}, 128},        {{72, 20}, {64, 8}, {16, 16}, 128},
      {{40, 20}, {32, 8}, {8, 14}, 64},         {{40, 20}, {16, 16}, {32, 8}, 32},
      {{40, 20}, {24, 8}, {24, 2}, 0},          {{16, 5, 6}, {8, 4, 4}, {8, 3, 4}, 0},
      {{64, 3, 9}, {64, 2, 8}, {0, 2, 4}, 128}, {{104}, {64}, {48}, 0},
  };
  for (const Case& c : cases)
    for_each_schedule([&](const SimOptions& options) {
      const BoxProgram g(c.extents, c.box, c.swizzle, c.at);
      BoxData data(c.extents, g.elements);
      EXPECT_EQ(texts(run90(g, data.arguments(), options)), "");
      std::vector<uint16_t> out(data.out.size(), 0xbeef), raw(data.raw.size());
      for (int64_t e = 0; e < g.elements; ++e) {
        int64_t rest = e, from = 0, pitch = 1;
        bool inside = true;
        for (size_t d = 0; d < c.box.size(); ++d) {
          const int64_t x = c.at[d] + rest % c.box[d];
          rest /= c.box[d];
          inside &= x >= 0 && x < c.extents[d];
          from += x * pitch;
          pitch *= (c.extents[d] + 7) / 8 * 8;
        }
        // Rows of the swizzle's width: unit u of row r is at u ^ r, as far as the swizzle has units and rows.
        const int64_t units = c.swizzle / 16, line = e * 2 / 128;
        int64_t place = e;
        if (units > 0) place = (e / 8 ^ line % units) * 8 + e % 8;
        raw[static_cast<size_t>(place)] = inside ? data.in[static_cast<size_t>(from)] : 0;
        if (inside) out[static_cast<size_t>(from)] = data.in[static_cast<size_t>(from)];
      }
      EXPECT_EQ(data.raw, raw);
      EXPECT_EQ(data.out, out);
    });
}

// Sums of 16-bit floats: 1.0 and what there is.
TEST(SimTensorEngine, CombinesElementsOfATensor) {
  for_each_schedule([&](const SimOptions& options) {
    BoxProgram g({40, 20}, {32, 8}, 64, {8, 14});
    std::get<thread::TensorStore>(g.p.stmts[g.store.value].node).reduction = ir::AtomicKind::add;
    BoxData data({40, 20}, g.elements);
    for (size_t i = 0; i < data.in.size(); ++i) data.in[i] = 0x3c00, data.out[i] = i % 2 ? 0x4000 : 0x3c00;
    EXPECT_EQ(texts(run90(g, data.arguments(), options)), "");
    for (size_t i = 0; i < data.out.size(); ++i) {
      const bool stored = i / 40 >= 14 && i / 40 < 20 && i % 40 >= 8;
      const int sum = (i % 2 ? 2 : 1) + (stored ? 1 : 0);
      EXPECT_EQ(data.out[i], sum == 1 ? 0x3c00 : sum == 2 ? 0x4000 : 0x4200) << i;
    }
  });
}

FindingKind only_kind(const SimResult& r) {
  EXPECT_EQ(r.findings.size(), 1u) << texts(r);
  return r.findings.empty() ? FindingKind::too_long : r.findings[0].kind;
}

void expect_box(FindingKind kind, const std::function<void(BoxProgram&)>& change) {
  for_each_schedule([&](const SimOptions& options) {
    BoxProgram g({64, 16}, {64, 16}, 128, {0, 0});
    change(g);
    BoxData data({64, 16}, g.elements);
    const Arguments a = data.arguments();
    EXPECT_EQ(only_kind(*simulate(g.p, sm90a(), a.slots, a.extents, options)), kind) << order_name(options);
  });
}

TEST(SimTensorEngine, CountsBytes) {
  const BoxProgram g({64, 16}, {64, 16}, 128, {0, 8});
  BoxData data({64, 16}, g.elements);
  const SimResult r = run90(g, data.arguments());
  EXPECT_EQ(r.counters.tensor_bytes, 64 * 16 * 2 + 64 * 8 * 2);
}

TEST(SimTensorEngine, MapsThatItDoesNotTake) {
  expect_box(FindingKind::tensor_map, [](BoxProgram& g) { g.p.tensor_maps[1].strides[0] = g.i(136).id; });
  expect_box(FindingKind::tensor_map, [](BoxProgram& g) { g.p.tensor_maps[1].swizzle = 64; });
}

TEST(SimTensorEngine, ExtentsBeyondTheTensor) {
  expect_box(FindingKind::out_of_bounds, [](BoxProgram& g) { g.p.tensor_maps[1].strides[0] = g.i(144).id; });
}

TEST(SimTensorEngine, PlacesThatAreNotAligned) {
  for_each_schedule([&](const SimOptions& options) {
    BoxProgram g({64, 16}, {64, 16}, 128, {0, 0});
    g.p.memories[g.tile.value].arena_offset += 512;
    g.p.arena_bytes += 512;
    BoxData data({64, 16}, g.elements);
    const Arguments a = data.arguments();
    const auto r = simulate(g.p, sm90a(), a.slots, a.extents, options);
    ASSERT_EQ(r->findings.size(), 2u) << texts(*r);  // the load and the store
    for (const Finding& f : r->findings) EXPECT_EQ(f.kind, FindingKind::misaligned);
  });
}

TEST(SimTensorEngine, SeveralThreadsIssueACopy) {
  for (bool several : {true, false}) {
    BoxProgram g({64, 16}, {64, 16}, 128, {0, 0});
    auto& one = std::get<thread::OneThread>(g.p.stmts[g.p.body.back().value].node);
    if (several)
      g.p.body.insert(g.p.body.end(), one.body.begin(), one.body.end()), g.p.body.erase(g.p.body.end() - 4);
    BoxData data({64, 16}, g.elements);
    const SimResult r = run90(g, data.arguments());
    if (!several) {
      EXPECT_EQ(texts(r), "");
    }
    if (several) {
      EXPECT_EQ(only_kind(r), FindingKind::divergent_copy);
    }
  }
}

TEST(SimTensorEngine, MoreArrivalsThanCounted) {
  expect_box(FindingKind::transaction_arrivals, [](BoxProgram& g) {
    // A second arrival while the bytes are to land.
    auto& body = std::get<thread::OneThread>(g.p.stmts[g.p.body[0].value].node).body;
    body.insert(body.begin() + 1, g.p.add(thread::TransactionArrive{0, g.i(0).id, 0}, "copy#0"));
  });
}

TEST(SimTensorEngine, StoreBehindPlainWrites) {
  const auto build = [](BoxProgram& g, bool fence, bool barrier) {
    g.open = {&g.p.body};
    thread::Block rest = {g.p.body.back()};
    g.p.body.pop_back();
    g.loop(g.i(32), LoopForm::serial,
           [&](E j) { g.GpuProgram::store(g.tile, j * 32 + g.thread(), g.num(1, DType::f16), "fill#0"); });
    if (fence) g.add(thread::ProxyFence{}, "fill#0");
    if (barrier) g.barrier();
    g.p.body.push_back(rest[0]);
  };
  for (bool fence : {true, false})
    for (bool barrier : {true, false})
      for_each_schedule([&](const SimOptions& options) {
        BoxProgram g({64, 16}, {64, 16}, 128, {0, 0});
        build(g, fence, barrier);
        BoxData data({64, 16}, g.elements);
        const SimResult r = run90(g, data.arguments(), options);
        if (fence && barrier) {
          EXPECT_EQ(texts(r), "");
          EXPECT_EQ(data.out, std::vector<uint16_t>(data.out.size(), f16_bits(1)));
        } else {
          // Of the elements that the issuing lane wrote itself the order holds without a barrier.
          EXPECT_FALSE(r.findings.empty());
          for (const Finding& f : r.findings)
            EXPECT_TRUE(f.kind == FindingKind::data_race ||
                        (!fence && f.kind == FindingKind::proxy_not_fenced))
                << f.to_text();
          if (barrier) {
            EXPECT_EQ(only_kind(r), FindingKind::proxy_not_fenced);
          }
        }
      });
}

// ---- one lane for a warp

TEST_F(SimFindings, OneLaneReleasesForAll) {
  // Warp 0 reads, lane 0 arrives, warp 1 waits and writes: what the other lanes read was not released.
  const auto build = [](GpuProgram& g, bool all_arrive, bool one_reads) {
    const MemoryId s = g.shared("s", DType::i32, 32, 1, 128), r = g.registers("r", DType::i32, 1);
    g.p.barriers.push_back({"done", 1, all_arrive ? 32 : 1, 0});
    const E zero = g.i(0);
    g.branch(g.warp() < 1, [&] { g.store(s, g.thread(), as_i32(g.thread()), "k/fill"); });
    g.barrier();
    g.branch(
        g.warp() < 1,
        [&] {
          if (one_reads)
            g.branch(g.lane() == 0, [&] { g.store(r, zero, g.load(s, zero), "k/read"); });
          else
            g.store(r, zero, g.load(s, g.thread()), "k/read");
          const auto arrive = [&] { g.add(thread::TransactionArrive{0, zero.id, 0}, "k/done"); };
          all_arrive ? arrive() : g.branch(g.lane() == 0, arrive);
        },
        [&] {
          g.add(thread::TransactionWait{0, zero.id, zero.id}, "k/done");
          g.store(s, g.lane(), as_i32(g.lane()), "k/write");
        });
  };
  for (bool all : {true, false})
    for (bool one : {true, false}) {
      GpuProgram g(64);
      build(g, all, one);
      all || one ? expect_clean(g, none) : void(expect_one(g, FindingKind::data_race, none));
    }
}

TEST_F(SimFindings, OneLaneWaitsForAll) {
  // Warp 0 writes and arrives; of warp 1 lane 0 or all lanes wait, and all read.
  for (bool all : {true, false}) {
    GpuProgram g(64);
    const MemoryId s = g.shared("s", DType::i32, 32, 1, 128), r = g.registers("r", DType::i32, 1);
    g.p.barriers.push_back({"done", 1, 32, 0});
    const E zero = g.i(0);
    g.branch(
        g.warp() < 1,
        [&] {
          g.store(s, g.thread(), as_i32(g.thread()), "k/write");
          g.add(thread::TransactionArrive{0, zero.id, 0}, "k/done");
        },
        [&] {
          const auto wait = [&] { g.add(thread::TransactionWait{0, zero.id, zero.id}, "k/done"); };
          all ? wait() : g.branch(g.lane() == 0, wait);
          g.store(r, zero, g.load(s, g.lane()), "k/read");
        });
    if (all) expect_clean(g, none);
    // The reads of lanes that did not wait come before or after the writes.
    if (!all)
      for_each_schedule([&](const SimOptions& options) {
        const SimResult result = run(g, none(), options);
        ASSERT_FALSE(result.findings.empty());
        EXPECT_EQ(result.findings[0].kind, FindingKind::data_race) << texts(result);
      });
  }
}

TEST(SimSpecialised, RegistersOfTheRoles) {
  const GemmTiles t{128, 64, 32, false, 2};
  for (int consumer : {216, 224, 232}) {
    SpecialisedGemm g(t);
    auto& roles = g.stmt<thread::Roles>("roles").roles;
    // 288 threads are launched with 224 registers: 256 * 224 + 32 * 224 in all.
    roles[0].registers = consumer, roles[1].registers = 224;
    SpecialisedData data(t, t.m, t.n, t.k);
    const Arguments a = data.arguments();
    const auto r = simulate(g.p, sm90a(), a.slots, a.extents, {});
    if (consumer <= 224) {
      EXPECT_EQ(texts(*r), "");
    }
    if (consumer > 224) {
      EXPECT_EQ(only_kind(*r), FindingKind::register_budget);
    }
  }
}

}  // namespace
}  // namespace tilegen::sim::test
