// A matrix product in the shape of a Hopper kernel: one warp feeds a ring of tiles through the copy engine,
// warpgroups multiply, results leave through a stage. Blocks walk several tiles.
#pragma once

#include <map>

#include "gpu_program.h"

namespace tilegen::sim::test {

struct GemmTiles {
  int64_t m = 64, n = 32, k = 64;
  bool b_is_nk = true;  // B is [N, K], else [K, N]
  int64_t slots = 3;
  bool depth_is_read = false;  // the number of steps follows from two elements of a tensor, ends[1] - ends[0]
  bool depth_of_two = false;   // ... from two dims, the lesser of K and K + N
};

// C[M x N] = A[M x K] * B, f16 with f32 sums. Statements that tests change have names in `at`.
struct SpecialisedGemm : GpuProgram {
  GemmTiles t;
  MemoryId a, b, c, ends, as, bs, stage, acc;
  E m, n, k;
  ir::VarId launched;
  std::map<std::string, thread::StmtId> at;
  int full = 0, empty = 1, map_a = 0, map_b = 1, map_c = 2;
  int64_t b_columns = 0;  // of one box of B

  explicit SpecialisedGemm(const GemmTiles& tiles) : GpuProgram(tiles.m / 64 * 128 + 32), t(tiles) {
    a = tensor("A", DType::f16), b = tensor("B", DType::f16), c = tensor("C", DType::f32);
    p.memories[a.value].read_only = p.memories[b.value].read_only = true;
    for (MemoryId g : {a, b, c}) p.memories[g.value].alignment = 16;
    m = dim("M"), n = dim("N"), k = dim("K");
    if (t.depth_is_read) ends = tensor("ends", DType::i32);
    launched = p.add_var("launched", ir::VarKind::block_index);
    p.launched_var = launched;
    p.grid = {tile_count().id};
    as = ring("As", DType::f16, t.slots * t.m * t.k, t.slots);
    bs = ring("Bs", DType::f16, t.slots * t.n * t.k, t.slots);
    stage = ring("stage", DType::f32, groups() * 64 * t.n, 1);
    acc = registers("acc", DType::f32, t.n / 2);
    barriers("full", 1);
    barriers("empty", groups());
    b_columns = t.b_is_nk ? t.n : std::min<int64_t>(t.n, 64);
    const auto row_bytes = [&](int64_t elements) { return static_cast<int>(elements * 2); };
    const auto times = [&](E e, int64_t f) { return (e * f).id; };
    p.tensor_maps = {
        {"map_a", a, {k.id, m.id}, {times(k, 2)}, {t.k, t.m}, row_bytes(t.k)},
        t.b_is_nk ? thread::TensorMap{"map_b", b, {k.id, n.id}, {times(k, 2)}, {t.k, t.n}, row_bytes(t.k)}
                  : thread::TensorMap{"map_b",
                                      b,
                                      {n.id, k.id},
                                      {times(n, 2)},
                                      {b_columns, t.k},
                                      row_bytes(b_columns)},
        {"map_c", c, {n.id, m.id}, {times(n, 4)}, {t.n, 64}, 0}};
    thread::Roles roles;
    roles.roles.push_back({"consumer", 0, consumers(), 0, body([&] { consume(); })});
    roles.roles.push_back({"producer", consumers(), 32, 0, body([&] { produce(); })});
    at["roles"] = add(std::move(roles), "gemm");
  }

  int64_t groups() const { return t.m / 64; }
  int64_t consumers() const { return groups() * 128; }
  int64_t slot_bytes() const { return (t.m + t.n) * t.k * 2; }
  E up(E e, int64_t by) { return (e + (by - 1)) / by; }
  E n_tiles() { return up(n, t.n); }
  E tile_count() { return up(m, t.m) * n_tiles(); }
  E launched_blocks() { return {&p.exprs, p.exprs.var(launched)}; }
  E steps() {
    if (t.depth_of_two) return up(op(ExprOp::min, k, k + n), t.k);
    if (!t.depth_is_read) return up(k, t.k);
    return up(cast(DType::i64, load(ends, i(1))) - cast(DType::i64, load(ends, i(0))), t.k);
  }
  E group() { return thread() / 128; }
  E leader() { return thread() % 128 == 0; }
  E more_than(E e, int64_t v) { return op(ExprOp::lt, i(v), e); }

  MemoryId ring(const std::string& name, DType type, int64_t elements, int64_t slots) {
    const MemoryId id = shared(name, type, elements, slots, (p.arena_bytes + 1023) / 1024 * 1024);
    p.memories[id.value].alignment = 1024;
    return id;
  }
  void barriers(const std::string& name, int64_t arrivals) {
    p.arena_bytes = (p.arena_bytes + 7) / 8 * 8;
    p.barriers.push_back({name, t.slots, arrivals, p.arena_bytes});
    p.arena_bytes += 8 * t.slots;
  }
  thread::Block body(const std::function<void()>& fill) {
    thread::Block block;
    open.push_back(&block);
    fill();
    open.pop_back();
    return block;
  }
  void named(const std::string& name, thread::StmtNode node, const std::string& origin) {
    at[name] = add(std::move(node), origin);
  }
  void one_thread(const std::function<void()>& fill) { add(thread::OneThread{body(fill)}, "gemm"); }

  // Calls f(tile, number of the round) for the block's tiles.
  void each_tile(const std::function<void(E, E)>& f) {
    loop((tile_count() - block() + launched_blocks() - 1) / launched_blocks(), LoopForm::serial,
         [&](E round) { f(block() + round * launched_blocks(), round); }, "tile");
  }

  void produce() {
    one_thread([&] {
      each_tile([&](E tile, E round) {
        loop(
            steps(), LoopForm::serial,
            [&](E ko) {
              const E count = round * steps() + ko, slot = count % t.slots;
              named("wait empty", thread::TransactionWait{empty, slot.id, ((count / t.slots + 1) % 2).id},
                    "gemm/ko");
              named("expect", thread::TransactionArrive{full, slot.id, slot_bytes()}, "gemm/ko/copy#0");
              const E row = tile / n_tiles() * t.m, column = tile % n_tiles() * t.n, depth = ko * t.k;
              named("load a",
                    thread::TensorLoad{map_a, {depth.id, row.id}, as, (slot * (t.m * t.k)).id, full, slot.id},
                    "gemm/ko/copy#0");
              for (int64_t box = 0; box < t.n / b_columns; ++box) {
                const E first = column + box * b_columns;
                named("load b",
                      thread::TensorLoad{map_b,
                                         t.b_is_nk ? std::vector<ExprId>{depth.id, first.id}
                                                   : std::vector<ExprId>{first.id, depth.id},
                                         bs, (slot * (t.n * t.k) + box * b_columns * t.k).id, full, slot.id},
                      "gemm/ko/copy#1");
              }
            },
            "ko");
      });
    });
  }

  void multiply(E slot, E ko) {
    thread::WarpgroupMma mma;
    mma.atom = "wgmma.m64n" + std::to_string(t.n) + "k16.f32.f16.f16";
    mma.a = as, mma.b = bs, mma.c = acc;
    mma.a_index = (slot * (t.m * t.k) + group() * (64 * t.k)).id;
    mma.b_index = (slot * (t.n * t.k)).id;
    mma.c_index = i(0).id;
    const int a_row = static_cast<int>(t.k * 2), b_row = static_cast<int>((t.b_is_nk ? t.k : b_columns) * 2);
    mma.a_form = {a_row, true, 0, 8 * a_row};
    mma.b_form = {b_row, t.b_is_nk, t.b_is_nk ? 0 : t.k * b_row, 8 * b_row};
    for (int64_t s = 0; s < t.k / 16; ++s) {
      mma.a_steps.push_back(s * 16);
      mma.b_steps.push_back(t.b_is_nk ? s * 16 : s * 16 * b_columns);
    }
    mma.accumulate = more_than(ko, 0).id;
    named("product", std::move(mma), "gemm/ko/gemm#0");
  }

  void release(const std::string& name, E count) {
    branch(leader(), [&] {
      named(name, thread::TransactionArrive{empty, (count % t.slots).id, 0}, "gemm/ko/gemm#0");
    });
  }

  void consume() {
    each_tile([&](E tile, E round) {
      branch(steps() == 0, [&] {
        loop(i(t.n / 2), LoopForm::unrolled, [&](E r) { store(acc, r, num(0, DType::f32), "gemm/fill#0"); });
      });
      loop(
          steps(), LoopForm::serial,
          [&](E ko) {
            const E count = round * steps() + ko, slot = count % t.slots;
            named("wait full", thread::TransactionWait{full, slot.id, (count / t.slots % 2).id}, "gemm/ko");
            named("fence", thread::WarpgroupFence{}, "gemm/ko/gemm#0");
            multiply(slot, ko);
            named("commit", thread::WarpgroupCommit{}, "gemm/ko/gemm#0");
            named("wait one", thread::WarpgroupWait{1, {}}, "gemm/ko/gemm#0");
            branch(more_than(ko, 0), [&] { release("release", count - 1); });
          },
          "ko");
      named("wait all", thread::WarpgroupWait{0, {acc}}, "gemm/ko/gemm#0");
      branch(more_than(steps(), 0), [&] { release("release last", (round + 1) * steps() - 1); });
      store_out(tile);
    });
    branch(leader(), [&] { named("last bulk wait", thread::BulkWait{0, true}, "gemm/copy#2"); });
  }

  void group_barrier(const std::string& name) {
    // Barriers have constant numbers: one branch a warpgroup.
    for (int64_t g = 0; g < groups(); ++g)
      branch(group() == g, [&] {
        named(name, thread::Barrier{static_cast<int>(1 + g), 128, false}, "gemm/copy#2");
      });
  }

  void store_out(E tile) {
    const E place = group() * (64 * t.n);
    branch(leader(), [&] { named("bulk wait", thread::BulkWait{0, true}, "gemm/copy#2"); });
    group_barrier("barrier before");
    loop(i(t.n / 2), LoopForm::unrolled, [&](E r) {
      const E row = warp() % 4 * 16 + r / 2 % 2 * 8 + lane() / 4, column = r / 4 * 8 + lane() % 4 * 2 + r % 2;
      store(stage, place + row * t.n + column, load(acc, r), "gemm/copy#2");
    });
    named("proxy fence", thread::ProxyFence{}, "gemm/copy#2");
    group_barrier("barrier after");
    branch(leader(), [&] {
      const E row = tile / n_tiles() * t.m + group() * 64, column = tile % n_tiles() * t.n;
      named("store", thread::TensorStore{map_c, {column.id, row.id}, stage, place.id}, "gemm/copy#2");
      named("bulk commit", thread::BulkCommit{}, "gemm/copy#2");
    });
  }

  // Changes the statement of that name.
  template <class Node>
  Node& stmt(const std::string& name) {
    return std::get<Node>(p.stmts[at.at(name).value].node);
  }
  void remove(const std::string& name) {
    p.stmts[at.at(name).value].node = thread::Prefetch{c, p.exprs.const_int(0), 0};  // does nothing
  }
};

// Small integers, whose products and sums are exact.
struct SpecialisedData {
  int64_t m, n, k;
  std::vector<uint16_t> a, b;
  std::vector<float> c, expected;

  SpecialisedData(const GemmTiles& t, int64_t rows, int64_t columns, int64_t depth)
      : m(rows), n(columns), k(depth), a(m * k + 8), b(n * k + 8), c(m * n, -1), expected(m * n, 0) {
    const auto at_a = [&](int64_t i, int64_t x) {
      return static_cast<float>((i * 7 + x * 3 + i / 16) % 5) - 2;
    };
    const auto at_b = [&](int64_t x, int64_t j) {
      return static_cast<float>((x * 5 + j * 11 + x / 8) % 7) - 3;
    };
    for (int64_t x = 0; x < k; ++x) {
      for (int64_t i = 0; i < m; ++i) a[i * k + x] = f16_bits(at_a(i, x));
      for (int64_t j = 0; j < n; ++j) b[t.b_is_nk ? j * k + x : x * n + j] = f16_bits(at_b(x, j));
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) expected[i * n + j] += at_a(i, x) * at_b(x, j);
    }
  }
  Arguments arguments() { return Arguments().tensor(a).tensor(b).tensor(c).dim(m).dim(n).dim(k); }
};

inline target::Target sm90a() { return *target::find_target("sm_90a"); }

inline SimResult run(const SpecialisedGemm& g, SpecialisedData& data, const SimOptions& options = {}) {
  const Arguments arguments = data.arguments();
  EXPECT_EQ(g.problems(), std::vector<std::string>());
  auto result = simulate(g.p, sm90a(), arguments.slots, arguments.extents, options);
  EXPECT_TRUE(static_cast<bool>(result)) << (result ? "" : result.error().to_text());
  return result ? *result : SimResult{};
}

}  // namespace tilegen::sim::test
