// Random nests through fusion, forwarding, prefetching and joining of rows: what the tensors hold after them
// must not change, wherever the caller's tensors overlap.
#include <random>

#include "lower/host/forward_stores.h"
#include "lower/host/fuse_loops.h"
#include "lower/host/interleave_rows.h"
#include "lower/host/prefetch_blocks.h"
#include "lower/host/skip_selects.h"
#include "nest_builder.h"
#include "thread_executor.h"

namespace tilegen::lower {
namespace {

using namespace test;

class RandomNests : public NestBuilder {
 public:
  explicit RandomNests(uint64_t seed) : random_(seed) {
    tensors_ = {tensor("X"), tensor("Y"), tensor("Z")};
    for (const char* name : {"T", "U", "V", "A", "B", "C"}) tiles_.push_back(tile(name, 128));
    counters_ = tile("n", 4);
    for (int64_t k = 0; k < 4; ++k) p.body.push_back(store(counters_, c(k), c(k)));
    // Tiles start with something of the block's own.
    for (MemoryId t : tiles_) {
      VarId v = var("f");
      p.body.push_back(loop(v, c(128), LoopForm::serial, {store(t, use(v), load(tensors_[0], use(v)))}));
    }
    shape_ = pick(4);
    for (size_t s = 1 + pick(4); s > 0; --s) p.body.push_back(statement(2));
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  bool chance(int percent) { return pick(100) < static_cast<size_t>(percent); }

  StmtId statement(int depth) {
    const size_t kind = pick(100);
    if (kind < 70 || depth == 0) return random_nest();
    if (kind < 80) return store(counters_, c(static_cast<int64_t>(pick(4))), counter_value());
    if (kind < 85)
      return p.add(
          thread::LaneReduce{thread::Combine::sum, any_tile(), c(5), any_tile(), c(8), 8, chance(50)}, "op");
    Block body;
    for (size_t s = 1 + pick(3); s > 0; --s) body.push_back(statement(depth - 1));
    if (kind < 92) return p.add(thread::Branch{p.exprs.lt(load(counters_, c(0)), c(2)), body, {}}, "op");
    return loop(var("k"), c(2), LoopForm::serial, std::move(body));
  }

  MemoryId any_tile() { return tiles_[pick(tiles_.size())]; }
  MemoryId any() { return chance(75) ? any_tile() : tensors_[pick(tensors_.size())]; }
  ExprId counter() { return load(counters_, c(static_cast<int64_t>(pick(4)))); }
  // 0..3, so that an index with it stays in range.
  ExprId counter_value() {
    return p.exprs.floormod(add(chance(50) ? counter() : load(any_tile(), c(3)), 1), c(4));
  }

  // One of few shapes, so that neighbours often agree.
  StmtId random_nest() {
    const size_t shape = chance(80) ? shape_ : pick(4);
    vars_ = {var("i"), var("v")};
    if (shape == 3) vars_.pop_back();
    last_ = MemoryId();
    if (shape == 0 && chance(8)) return apart_copy();
    if (shape != 3 && chance(8)) return mask();
    Block stores;
    for (size_t s = 1 + pick(4); s > 0; --s) stores.push_back(random_store());
    if (shape == 3) return loop(vars_[0], counter(), LoopForm::serial, std::move(stores));
    const LoopForm inner = shape == 1 ? LoopForm::serial : LoopForm::vectorized;
    const LoopForm outer = shape == 2 ? LoopForm::unrolled : LoopForm::serial;
    return loop(vars_[0], c(4), outer, {loop(vars_[1], c(8), inner, std::move(stores))});
  }

  // Rows whose elements stand side by side, or not quite.
  StmtId apart_copy() {
    const ExprId at = random_index();
    const ExprId to = add(mul(use(vars_[1]), chance(50) ? 4 : 2), use(vars_[0]));
    return loop(vars_[0], c(4), LoopForm::serial,
                {loop(vars_[1], c(8), LoopForm::vectorized,
                      {store(any_tile(), to, load(tensors_[pick(tensors_.size())], at))})});
  }

  // Keeps what is there, or not.
  StmtId mask() {
    const ExprId index = random_index(), limit = chance(50) ? use(bx) : c(static_cast<int64_t>(pick(40)));
    const MemoryId memory = any();
    const ExprId hides = chance(70) ? p.exprs.lt(index, limit) : p.exprs.le(limit, index);
    const ExprId kept = load(memory, chance(90) ? index : random_index());
    const StmtId s = store(memory, index, p.exprs.select(hides, kept, c(-1)));
    return loop(vars_[0], c(4), LoopForm::serial, {loop(vars_[1], c(8), LoopForm::vectorized, {s})});
  }

  StmtId random_store() {
    if (chance(6)) return store(counters_, c(static_cast<int64_t>(pick(4))), counter_value());
    ExprId predicate = chance(20) ? p.exprs.lt(random_value(1), c(40)) : ExprId();
    ExprId index = random_index(), value = random_value(2);
    MemoryId memory = any();
    if (memory.value >= tensors_.size()) last_ = memory, last_index_ = index;
    return store(memory, index, value, predicate);
  }

  // Below 64; mostly one element a point.
  ExprId random_index() {
    ExprId inner = vars_.size() > 1 ? use(vars_[1]) : c(0);
    ExprId row_major = add(mul(use(vars_[0]), 8), inner);
    switch (pick(20)) {
      case 0:
        return c(static_cast<int64_t>(pick(8)));
      case 1:
        return use(vars_[0]);
      case 2:
        return inner;
      case 3:
        return add(mul(inner, 4), use(vars_[0]));
      case 4:
        return add(row_major, 1);
      case 5:
        return p.exprs.floormod(row_major, c(16));
      case 6:
        return p.exprs.floordiv(row_major, c(2));
      case 7:
        return add(mul(use(vars_[0]), 7), inner);
      case 8:
        return p.exprs.sub(c(31), row_major);
      case 9:
        return p.exprs.floormod(load(any_tile(), row_major), c(64));
      case 10:
      case 11:
      case 12:
        return add(load(counters_, c(0)), row_major);
      default:
        return row_major;
    }
  }

  ExprId random_value(int depth) {
    if (depth == 0 || chance(40)) {
      if (chance(15)) return c(static_cast<int64_t>(pick(50)));
      // Mostly what was written just before, at the same point.
      const bool recent = last_ && chance(60);
      ExprId index = recent && chance(85) ? last_index_ : random_index();
      return load(recent ? last_ : any(), index, chance(15) ? p.exprs.lt(random_index(), c(20)) : ExprId());
    }
    ExprId a = random_value(depth - 1), b = random_value(depth - 1);
    switch (pick(4)) {
      case 0:
        return p.exprs.add(a, b);
      case 1:
        return p.exprs.sub(a, b);
      case 2:
        return p.exprs.binary(ExprOp::max, a, b);
      default:
        return p.exprs.select(p.exprs.lt(a, b), b, a);
    }
  }

  std::mt19937_64 random_;
  std::vector<MemoryId> tensors_, tiles_;
  MemoryId counters_;
  std::vector<VarId> vars_;
  MemoryId last_;  // tile written in this nest, and where
  ExprId last_index_;
  size_t shape_ = 0;
};

// Contents of the arrays after two blocks.
std::vector<std::vector<int64_t>> result_of(const thread::ThreadProgram& p, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<ThreadExecutor::Place> places(p.memories.size());
  const bool alias = random() % 2;
  for (size_t m = 0; m < 3; ++m)
    places[m] =
        alias ? ThreadExecutor::Place{0, static_cast<int64_t>(random() % 3)} : ThreadExecutor::Place{m, 0};
  std::vector<std::vector<int64_t>> arrays(3, std::vector<int64_t>(192));
  for (auto& array : arrays)
    for (int64_t& v : array) v = static_cast<int64_t>(random() % 100);
  ThreadExecutor executor(p, places, arrays);
  executor.run(2);
  EXPECT_TRUE(executor.in_bounds());
  return arrays;
}

size_t stores_of(const thread::ThreadProgram& p) {
  size_t count = 0;
  const std::string text = thread::print_thread_program(p);
  for (size_t at = text.find("] = "); at != std::string::npos; at = text.find("] = ", at + 1)) ++count;
  return count;
}

TEST(RandomNests, MeanWhatTheyMeant) {
  int fused = 0, forwarded = 0, skipped = 0, interleaved = 0;
  constexpr uint64_t kPrograms = 400;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    RandomNests nests(seed);
    nests.expect_legal();
    const std::string before = nests.body();
    const auto expected = result_of(nests.p, seed);
    size_t count = stores_of(nests.p);
    auto check = [&](const char* step) {
      nests.expect_legal();
      EXPECT_EQ(result_of(nests.p, seed), expected) << "seed " << seed << " after " << step << "\n"
                                                    << before << "->\n"
                                                    << nests.body();
      return !::testing::Test::HasFailure();
    };
    fuse_loops(nests.p);
    fused += nests.body() != before;
    if (!check("fuse_loops")) return;
    forward_stores(nests.p);
    forwarded += stores_of(nests.p) < count;
    if (!check("forward_stores")) return;
    const std::string kept = nests.body();
    skip_selects(nests.p);
    skipped += nests.body() != kept;
    if (!check("skip_selects")) return;
    prefetch_blocks(nests.p);
    if (!check("prefetch_blocks")) return;
    const std::string apart = nests.body();
    interleave_rows(nests.p);
    interleaved += nests.body() != apart;
    if (!check("interleave_rows")) return;
  }
  // Programs on which nothing happens test nothing.
  EXPECT_GT(fused, static_cast<int>(kPrograms) / 10);
  EXPECT_GT(forwarded, static_cast<int>(kPrograms) / 20);
  EXPECT_GT(skipped, 10);
  EXPECT_GT(interleaved, 2);
}

}  // namespace
}  // namespace tilegen::lower
