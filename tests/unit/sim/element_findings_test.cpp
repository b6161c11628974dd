// Elements that are taken for others of their tile: copies and products that mean another layout than the
// plan.
#include "finding_checks.h"
#include "gemm_program.h"
#include "mutants.h"

namespace tilegen::sim::test {
namespace {

// A tile of whole rows, `chunk` elements at a time exchanged within their row by `key` of the row.
TilePlaces swizzled_tile(int64_t rows, int64_t columns, int64_t chunk,
                         const std::function<int64_t(int64_t)>& key) {
  TilePlaces t;
  t.shape = {rows, columns};
  t.element.resize(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      t.element[static_cast<size_t>(r * columns + (c / chunk ^ key(r)) * chunk + c % chunk)] =
          static_cast<int32_t>(r * columns + c);
  return t;
}

struct SimElements : SimFindings {
  GpuProgram g{32};
  MemoryId x = g.tensor("X", DType::i32), y = g.tensor("Y", DType::i32), t = g.shared("T", DType::i32, 128);
  ElementPlaces places;

  // X is 8 x `pitch`, T 8 x 16 with chunks of 4; statements of "copy" move X to T.
  void describe(int64_t pitch) {
    places.memories.resize(g.p.memories.size());
    places.memories[t.value] = swizzled_tile(8, 16, 4, [](int64_t r) { return r % 4; });
    places.statements.resize(g.p.stmts.size());
    places.ops = 1;
    for (size_t s = 0; s < g.p.stmts.size(); ++s) {
      StatementPlaces& at = places.statements[s];
      at.copy = g.p.stmts[s].origin == "copy";
      at.from.tensor = true;
      at.from.dimensions = {{pitch, 8, 1000003}, {1, pitch, 17}};
      at.to.weights = {1000003, 17};
    }
  }
  std::vector<std::string> found() {
    std::vector<std::string> kinds;
    const Arguments a = two();
    SimOptions options;
    options.places = &places;
    for (const Finding& f : run(g, a, options).findings) kinds.push_back(finding_name(f.kind));
    return kinds;
  }
  E row() { return g.thread() / 4; }
  E chunk() { return g.thread() % 4; }
  const std::vector<std::string> wrong = {"wrong_element"}, nothing = {};
};

TEST_F(SimElements, CopyByTheLayoutIsClean) {
  g.copy_async(t, row() * 16 + (chunk() ^ row() % 4) * 4, x, row() * 20 + chunk() * 4);
  describe(20);
  EXPECT_EQ(found(), nothing);
}

TEST_F(SimElements, CopyThatForgetsTheSwizzle) {
  g.copy_async(t, row() * 16 + chunk() * 4, x, row() * 20 + chunk() * 4);
  describe(20);
  EXPECT_EQ(found(), wrong);
}

// Eight columns of X and sixteen of the tile: what lies beyond a row is the next one.
TEST_F(SimElements, CopyThatRunsIntoTheNextRow) {
  g.copy_async(t, row() * 16 + (chunk() ^ row() % 4) * 4, x, row() * 8 + chunk() * 4);
  describe(8);
  EXPECT_EQ(found(), wrong);
}

TEST_F(SimElements, StoreThatForgetsTheSwizzle) {
  g.store(t, row() * 16 + chunk() * 4, g.load(x, row() * 20 + chunk() * 4), "copy");
  describe(20);
  EXPECT_EQ(found(), wrong);
}

TEST_F(SimElements, OtherStatementsMayMoveAnything) {
  g.store(t, row() * 16 + chunk() * 4, g.load(x, row() * 20 + chunk() * 4), "parallel");
  describe(20);
  EXPECT_EQ(found(), nothing);
}

// Every matrix load of a product without its swizzle.
TEST(SimProducts, OfOtherElementsAreFound) {
  const GemmProgram gemm(2, 2);
  ElementPlaces places;
  const auto describe = [&](const thread::ThreadProgram& p) {
    places = {};
    places.memories.resize(p.memories.size());
    places.memories[gemm.as.value] = swizzled_tile(128, 32, 8, [](int64_t r) { return r / 2 % 4; });
    places.memories[gemm.bs.value] = swizzled_tile(32, 128, 8, [](int64_t r) { return r % 8; });
    places.statements.resize(p.stmts.size());
    places.ops = 1;
    for (size_t s = 0; s < p.stmts.size(); ++s)
      places.statements[s].product = p.stmts[s].origin == "gemm/ko/gemm#0";
  };
  const auto findings = [&](const thread::ThreadProgram& p) {
    describe(p);
    GemmData data(2 * 32);
    const Arguments a = data.arguments();
    SimOptions options;
    options.places = &places;
    std::vector<std::string> kinds;
    const auto result = simulate(p, sm80(), a.slots, a.extents, options);
    for (const Finding& f : result->findings) kinds.push_back(finding_name(f.kind));
    return kinds;
  };
  EXPECT_EQ(findings(gemm.p), std::vector<std::string>());
  int spoilt = 0;
  for (const MutationSite& site : mutation_sites(gemm.p)) {
    if (site.mutation != Mutation::swizzle_dropped || gemm.p.stmts[site.at].origin != "gemm/ko/gemm#0")
      continue;
    const auto mutant = mutate(gemm.p, site);
    if (!mutant) continue;
    ++spoilt;
    const auto kinds = findings(*mutant);
    ASSERT_FALSE(kinds.empty()) << site.where;
    for (const std::string& k : kinds) EXPECT_EQ(k, "wrong_element") << site.where;
  }
  EXPECT_EQ(spoilt, 2);
}

// Sums of plain products: every lane one element of each tile.
TEST(SimProducts, PlainMultiplyAdds) {
  for (const int64_t shift : {0, 1}) {
    GpuProgram g(32);
    const MemoryId out = g.tensor("Out", DType::f32), a = g.shared("A", DType::f32, 64),
                   b = g.shared("B", DType::f32, 64);
    const MemoryId ra = g.registers("ra", DType::f32, 2), rb = g.registers("rb", DType::f32, 2),
                   c = g.registers("c", DType::f32, 1);
    for (const MemoryId m : {a, b})
      for (int64_t half : {0, 1}) g.store(m, g.thread() + half * 32, g.num(1, DType::f32));
    g.barrier();
    g.store(c, g.i(0), g.num(0, DType::f32));
    for (int64_t k : {0, 1}) {
      // A is 32 x 2, B is 2 x 32; the second k of A is read where `shift` says.
      g.store(ra, g.i(k), g.load(a, g.thread() * 2 + (k - k * shift)), "gemm");
      g.store(rb, g.i(k), g.load(b, g.thread() + k * 32), "gemm");
    }
    for (int64_t k : {0, 1})
      g.store(c, g.i(0), g.load(c, g.i(0)) + g.load(ra, g.i(k)) * g.load(rb, g.i(k)), "gemm");
    g.store(out, g.thread(), g.load(c, g.i(0)));
    ElementPlaces places;
    places.memories.resize(g.p.memories.size());
    places.memories[a.value] = swizzled_tile(32, 2, 1, [](int64_t) { return 0; });
    places.memories[b.value] = swizzled_tile(2, 32, 1, [](int64_t) { return 0; });
    places.statements.resize(g.p.stmts.size());
    places.ops = 1;
    for (size_t s = 0; s < g.p.stmts.size(); ++s)
      places.statements[s].product = g.p.stmts[s].origin == "gemm";
    std::vector<float> y(32);
    const Arguments arguments = Arguments().tensor(y);
    SimOptions options;
    options.places = &places;
    const SimResult r = run(g, arguments, options);
    ASSERT_EQ(r.findings.size(), static_cast<size_t>(shift)) << texts(r);
    for (const Finding& f : r.findings) EXPECT_STREQ(finding_name(f.kind), "wrong_element");
  }
}

// Elements that all threads meet in: a maximum, and behind it another operation.
void meet(GpuProgram& g, ir::AtomicKind second, bool barrier, const std::string& origin, bool global) {
  const MemoryId out = g.tensor("Out", DType::i32), tile = global ? out : g.shared("Tile", DType::i32, 64);
  if (!global) g.store(tile, g.thread(), as_i32(g.thread()), "k/write");
  if (!global) g.barrier();
  const auto atomic = [&](ir::AtomicKind kind, E index, const std::string& of) {
    thread::Store store{tile, index.id, as_i32(g.thread()).id, {}};
    store.atomic = kind;
    g.add(store, of);
  };
  atomic(ir::AtomicKind::max, g.thread(), "k/maximum");
  if (barrier) g.barrier();
  atomic(second, g.i(63) - g.thread(), origin);
}

TEST_F(SimFindings, AtomicOperationsWhoseOrderShows) {
  for (const bool global : {false, true})
    for (const auto second : {ir::AtomicKind::add, ir::AtomicKind::exchange, ir::AtomicKind::max}) {
      GpuProgram ordered(64), unordered(64), together(64);
      meet(ordered, second, true, "k/second", global);
      meet(unordered, second, false, "k/second", global);
      meet(together, second, false, "k/maximum", global);
      expect_clean(ordered, one);
      expect_clean(together, one);
      if (second == ir::AtomicKind::max) {
        expect_clean(unordered, one);
        continue;
      }
      const Finding f = expect_one(unordered, FindingKind::data_race, one);
      EXPECT_EQ(f.site.op + " " + f.other.op, "k/maximum k/second");
    }
}

}  // namespace
}  // namespace tilegen::sim::test
