// Defects of a lowered specialised product, one of each kind.
#include "lowered_defects.h"

namespace tilegen::differential {
namespace {

using ir::ExprId;

// C[m, n] = A[m, k] B[n, k], in tiles of 128 x `columns` x 64; `steps` of k.
std::string product_text(int columns, int stages, const std::string& steps = "ceildiv(k, 64)") {
  const std::string n = std::to_string(columns), s = std::to_string(stages);
  return "tl 1 program gemm\ndim m\ndim n\ndim k\ntensor A: f16[m, k] readonly\ntensor B: f16[n, k] "
         "readonly\n"
         "tensor C: f16[m, n]\nkernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, " +
         n +
         ")) threads 256 {\n"
         "  alloc a: shared f16[128, 64]\n  alloc b: shared f16[" +
         n + ", 64]\n  alloc c: fragment f32[128, " + n +
         "]\n"
         "  fill c, 0.0f32\n  pipelined ko in 0 .. " +
         steps + " stages " + s +
         " {\n"
         "    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> a\n    copy B[bx * " +
         n + " :+ " + n +
         ", ko * 64 :+ 64] -> b\n"
         "    gemm a, b -> c {transpose_b}\n  }\n  copy c -> C[by * 128 :+ 128, bx * " +
         n + " :+ " + n + "]\n}\n";
}

bool is_full(const ThreadProgram& p, int barriers) {
  return p.barriers[static_cast<size_t>(barriers)].name.ends_with(".full");
}
int flip(ThreadProgram& p, bool full) {
  return change<thread::TransactionWait>(p, [&](thread::TransactionWait& w) {
    if (is_full(p, w.barriers) != full) return false;
    w.parity = p.exprs.sub(p.exprs.const_int(1), w.parity);
    return true;
  });
}
int expect_more(ThreadProgram& p, int64_t bytes) {
  return change<thread::TransactionArrive>(p, [&](thread::TransactionArrive& a) {
    if (a.bytes == 0) return false;
    a.bytes += bytes;
    return true;
  });
}
int count_more(ThreadProgram& p, int64_t arrivals) {
  int changed = 0;
  for (size_t b = 0; b < p.barriers.size(); ++b) {
    if (is_full(p, static_cast<int>(b))) continue;
    p.barriers[b].arrivals += arrivals;
    ++changed;
  }
  return changed;
}
int weaken(ThreadProgram& p, int64_t pending) {
  return change<thread::WarpgroupWait>(p, [&](thread::WarpgroupWait& w) {
    if (w.pending != pending) return false;
    ++w.pending;
    return true;
  });
}
// The last slot of the tiles falls onto the first, and the barriers do not know.
int fewer_slots(ThreadProgram& p) {
  const auto fold = [&](ExprId& index, thread::MemoryId m) {
    const thread::Memory& tile = p.memory(m);
    if (tile.slots < 2) return false;
    index = p.exprs.floormod(index, p.exprs.const_int(tile.elements / tile.slots * (tile.slots - 1)));
    return true;
  };
  return change<thread::TensorLoad>(p, [&](thread::TensorLoad& l) { return fold(l.dst_index, l.dst); }) +
         change<thread::WarpgroupMma>(
             p, [&](thread::WarpgroupMma& m) { return fold(m.a_index, m.a) && fold(m.b_index, m.b); });
}

const std::vector<Defect>& defects() {
  using thread::BulkWait;
  using thread::WarpgroupMma;
  static const std::vector<Defect> list = {
      {"phase of the consumer flipped",
       [](ThreadProgram& p) { return flip(p, true); },
       "verify_transactions: gemm/ko/gemm#0: gemm:a (slot 0) is used, but nothing has filled it yet",
       {"async_not_waited", "uninitialised_read", "deadlock"}},
      {"phase of the producer flipped",
       [](ThreadProgram& p) { return flip(p, false); },
       "verify_transactions: gemm/ko after gemm/ko/copy#0: a deadlock: thread 0 waits for parity 0 of "
       "gemm/ko.full[0]",
       {"deadlock"}},
      {"warpgroup fence dropped",
       [](ThreadProgram& p) { return remove<thread::WarpgroupFence>(p); },
       "verify_thread_program: gemm/ko/gemm#0: registers gemm:c were touched, and no warpgroup fence stands "
       "before",
       {"product_not_fenced"}},
      {"proxy fence dropped",
       [](ThreadProgram& p) { return remove<thread::ProxyFence>(p); },
       "verify_transactions: gemm/copy#0: gemm/copy#0.stage is used with no proxy fence",
       {"proxy_not_fenced"}},
      {"16 bytes more expected",
       [](ThreadProgram& p) { return expect_more(p, 16); },
       "1 of 1 arrivals, 16 announced bytes that no copy brings",
       {"deadlock"}},
      {"16 bytes fewer expected",
       [](ThreadProgram& p) { return expect_more(p, -16); },
       "verify_transactions: gemm/ko/copy#1: brings ",
       {"transaction_bytes"}},
      {"an arrival more counted",
       [](ThreadProgram& p) { return count_more(p, 1); },
       "verify_transactions: gemm/ko after gemm/ko/copy#0: a deadlock: ",
       {"deadlock"}},
      {"an arrival fewer counted",
       [](ThreadProgram& p) { return count_more(p, -1); },
       "verify_transactions: gemm/ko/copy#0 after gemm/ko/gemm#0: gemm:a (slot 0) is filled while a product "
       "may still read it",
       {"operand_in_flight"}},
      {"stride of A halved",
       [](ThreadProgram& p) {
         return change<WarpgroupMma>(p, [](WarpgroupMma& m) { return m.a_form.stride_bytes /= 2, true; });
       },
       nullptr,
       {"matrix_form"}},
      {"stride of B doubled",
       [](ThreadProgram& p) {
         return change<WarpgroupMma>(p, [](WarpgroupMma& m) { return m.b_form.stride_bytes *= 2, true; });
       },
       "verify_transactions: gemm/ko/gemm#0 after gemm/ko/copy#1: gemm:b (slot 1) is used with no wait for "
       "the copy",
       {"out_of_bounds"}},
      {"wait before the release weakened",
       [](ThreadProgram& p) { return weaken(p, 1); },
       "verify_transactions: gemm/ko/copy#0 after gemm/ko/gemm#0: gemm:a (slot 0) is filled while a product "
       "may still read it",
       {"operand_in_flight"}},
      {"wait before the results weakened",
       [](ThreadProgram& p) { return weaken(p, 0); },
       "verify_thread_program: gemm/copy#0: registers gemm:c are read while the warpgroup product of "
       "gemm/ko/gemm#0",
       {"register_in_flight"}},
      {"bulk wait weakened",
       [](ThreadProgram& p) { return change<BulkWait>(p, [](BulkWait& w) { return ++w.pending, true; }); },
       "verify_transactions: gemm/copy#0: the block ends with no wait for the copy, which may still read its "
       "stage",
       {"tensor_copy_unfinished"}},
      {"a slot fewer",
       fewer_slots,
       "verify_transactions: gemm/ko/copy#0: gemm:a (slot 0) is filled again with no wait for those who "
       "release it",
       {"async_not_waited"}},
  };
  return list;
}

void expect_all_named(int columns, int stages, bool persistent) {
  const Lowered lowered(product_text(columns, stages), columns);
  const ThreadProgram p = lowered.program();
  ASSERT_EQ(p.launched_var.valid(), persistent);
  ASSERT_EQ(verifiers(p), std::vector<std::string>());
  sim::test::for_each_schedule([&](const sim::SimOptions& options) {
    ASSERT_EQ(lowered.simulate(p, options), std::set<std::string>()) << sim::test::order_name(options);
  });
  for (const Defect& d : defects()) expect_named(lowered, d);
}

// ---- defects of the way to the next tile, where blocks take theirs from a counter

bool of_claims(const ThreadProgram& p, int barriers, const char* which) {
  return p.barriers[static_cast<size_t>(barriers)].name == std::string("gemm:tile_scheduler.") + which;
}
template <class Node>
int remove_of_claims(ThreadProgram& p, const char* which) {
  int removed = 0;
  each<Node>(p, p.body, [&](thread::Block& block, size_t i, Node& n) {
    if (!of_claims(p, n.barriers, which)) return;
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
    ++removed;
  });
  return removed;
}
// What stands after the threads' taking of the next number: the meeting of the warpgroup.
int release_at_once(ThreadProgram& p) {
  int removed = 0;
  each<thread::Shuffle>(p, p.body, [&](thread::Block& block, size_t i, thread::Shuffle& s) {
    if (!p.memory(s.dst).name.starts_with("number")) return;
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ++removed;
  });
  return removed;
}

const std::vector<Defect>& claim_defects() {
  using thread::TransactionArrive;
  using thread::TransactionWait;
  static const std::vector<Defect> list = {
      {"the next tile read before it is there",
       [](ThreadProgram& p) { return remove_of_claims<TransactionWait>(p, "full"); },
       "gemm:tile_scheduler",
       {"uninitialised_read", "data_race"}},
      {"the next tile handed over in the place of one that nobody took",
       [](ThreadProgram& p) {
         return remove_of_claims<TransactionWait>(p, "empty") +
                remove_of_claims<TransactionArrive>(p, "empty");
       },
       "a deadlock",
       {"data_race", "deadlock"}},
      {"the next tile released before all have it", release_at_once, "gemm:tile_scheduler", {"data_race"}},
      {"the next tile never handed over",
       [](ThreadProgram& p) { return remove_of_claims<TransactionArrive>(p, "full"); },
       "a deadlock",
       {"deadlock"}},
      {"the next tile never released",
       [](ThreadProgram& p) { return remove_of_claims<TransactionArrive>(p, "empty"); },
       "a deadlock",
       {"deadlock"}},
      {"nothing claimed",
       [](ThreadProgram& p) { return remove<thread::FetchTile>(p); },
       "verify_transactions: gemm/ko/copy#1: nobody waits for the copy to gemm/ko.full",
       {"uninitialised_read"}},
  };
  return list;
}

// Tiles of 0 to 3 steps, so that blocks part ways, all of one block, so that slots are used again.
TEST(SpecialisedMutants, OfBlocksThatClaimTheTiles) {
  const Lowered lowered(product_text(128, 4, "min(ceildiv(k, 64), by)"), 128);
  const ThreadProgram p = lowered.program();
  ASSERT_TRUE(p.dynamic_tiles);
  ASSERT_EQ(verifiers(p), std::vector<std::string>());
  sim::test::for_each_schedule([&](const sim::SimOptions& options) {
    ASSERT_EQ(lowered.simulate(p, options), std::set<std::string>()) << sim::test::order_name(options);
  });
  for (const Defect& d : claim_defects()) expect_named(lowered, d);
}

TEST(SpecialisedMutants, OfABlockForEachTile) { expect_all_named(64, 3, false); }
TEST(SpecialisedMutants, OfBlocksThatWalkTheTiles) { expect_all_named(128, 4, true); }

}  // namespace
}  // namespace tilegen::differential
