// Defects around operands of lowered products that threads write.
#include <utility>

#include "lowered_defects.h"

namespace tilegen::differential {
namespace {

// Barriers of the loop: of all computing threads before the writes or after their fence, or of a
// warpgroup after it.
enum class Around { front, behind, warpgroup };
int remove_barriers(ThreadProgram& p, Around where) {
  int removed = 0;
  each<thread::Barrier>(p, p.body, [&](thread::Block& block, size_t i, thread::Barrier& b) {
    if (p.stmts[block[i].value].origin != "gemm/ko" || b.id >= 10) return;
    const bool fenced = i > 0 && std::holds_alternative<thread::ProxyFence>(p.stmts[block[i - 1].value].node);
    if ((b.threads == 128) != (where == Around::warpgroup)) return;
    if (where != Around::warpgroup && fenced != (where == Around::behind)) return;
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
    ++removed;
  });
  return removed;
}
int remove_fences(ThreadProgram& p) {
  int removed = 0;
  each<thread::ProxyFence>(p, p.body, [&](thread::Block& block, size_t i, thread::ProxyFence&) {
    if (p.stmts[block[i].value].origin != "gemm/ko") return;
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
    ++removed;
  });
  return removed;
}
// What the threads read goes back before their meeting.
int release_read_at_once(ThreadProgram& p) {
  int moved = 0;
  each<thread::ProxyFence>(p, p.body, [&](thread::Block& block, size_t i, thread::ProxyFence&) {
    if (p.stmts[block[i].value].origin != "gemm/ko" || i + 2 >= block.size()) return;
    std::swap(block[i + 1], block[i + 2]);
    ++moved;
  });
  return moved;
}
int forget_products(ThreadProgram& p) {
  return change<thread::WarpgroupWait>(p, [&](thread::WarpgroupWait& w) {
    w.pending += 2;
    return true;
  });
}

void expect_named_around(const std::string& text, int64_t columns, const std::vector<Defect>& list) {
  const Lowered lowered(text, columns, 6 * 64 - 16);
  const ThreadProgram p = lowered.program();
  ASSERT_EQ(verifiers(p), std::vector<std::string>());
  sim::test::for_each_schedule([&](const sim::SimOptions& options) {
    ASSERT_EQ(lowered.simulate(p, options), std::set<std::string>()) << sim::test::order_name(options);
  });
  for (const Defect& d : list) expect_named(lowered, d);
}

// B of bytes that threads unpack.
std::string unpacking_text(const std::string& unpack) {
  return R"(tl 1 program gemm
dim m
dim n
dim k
tensor A: f16[m, k] readonly
tensor B: i8[n, k] readonly
tensor C: f16[m, n]
kernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, 64)) threads 256 {
  alloc a: shared f16[128, 64]
  alloc raw: shared i8[64, 64]
  alloc b: shared f16[64, 64]
  alloc c: fragment f32[128, 64]
  fill c, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 64) stages 3 {
    copy B[bx * 64 :+ 64, ko * 64 :+ 64] -> raw
    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> a
)" + unpack +
         R"(    gemm a, b -> c {transpose_b}
  }
  copy c -> C[by * 128 :+ 128, bx * 64 :+ 64]
}
)";
}

// Slots in turn: one meeting.
TEST(SpecialisedMutants, OfAnOperandThatAllWarpgroupsWrite) {
  expect_named_around(unpacking_text("parallel i, j in 64, 64 {\n b[i, j] = cast(f16, raw[i, j])\n }\n"), 64,
                      {{"proxy fence dropped",
                        remove_fences,
                        "verify_transactions: gemm/ko/gemm#0 after gemm/ko/i.j: gemm:b (slot 0) is used "
                        "with no proxy fence of the threads",
                        {"proxy_not_fenced"}},
                       {"barrier before the product dropped",
                        [](ThreadProgram& p) { return remove_barriers(p, Around::behind); },
                        "verify_transactions: gemm/ko/gemm#0 after gemm/ko/i.j: gemm:b (slot 0) is used "
                        "with no barrier after the threads",
                        {"data_race"}},
                       {"tile of the threads given back before all have read it",
                        release_read_at_once,
                        "verify_transactions: gemm/ko/copy#0 after gemm/ko/i.j: gemm:raw (slot 0) is filled "
                        "while threads may still read it",
                        {"data_race"}},
                       {"wait for the product dropped",
                        forget_products,
                        "verify_transactions: gemm/ko/i.j after gemm/ko/gemm#0: gemm:b (slot 0) is written "
                        "while a product may still read it",
                        {"operand_in_flight", "data_race"}}});
}

// Copied by the threads asynchronously, in a loop of their own before that of the products.
TEST(SpecialisedMutants, OfAnOperandOfAsynchronousCopies) {
  const char* const text = R"(tl 1 program gemm
dim m
dim n
dim k
tensor A: f16[m, k] readonly
tensor B: f16[n, k] readonly
tensor C: f16[m, n]
kernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, 64)) threads 256 {
  alloc a: shared f16[128, 64]
  alloc b: shared f16[64, 64]
  alloc c: fragment f32[128, 64]
  fill c, 0.0f32
  serial once in 0 .. 1 {
    copy A[by * 128 :+ 128, 0 :+ 64] -> a
  }
  pipelined ko in 0 .. ceildiv(k, 64) stages 3 {
    copy B[bx * 64 :+ 64, ko * 64 :+ 64] -> b
    gemm a, b -> c {transpose_b}
  }
  copy c -> C[by * 128 :+ 128, bx * 64 :+ 64]
}
)";
  expect_named_around(
      text, 64,
      {{"wait for the copies dropped",
        [](ThreadProgram& p) {
          return change<thread::AsyncWait>(p, [](thread::AsyncWait& w) {
            w.pending += 2;
            return true;
          });
        },
        "verify_transactions: gemm/ko/gemm#0 after gemm/once/copy#0: gemm:a is used with no wait for the "
        "asynchronous copies that write it",
        {"async_not_waited"}}});
}

// Rows of bytes that the engine cannot take are the threads' to copy, and the product stays.
TEST(SpecialisedMutants, OfAnOperandWhoseBytesTheEngineDoesNotTake) {
  const Lowered lowered(unpacking_text("parallel i, j in 64, 64 {\n b[i, j] = cast(f16, raw[i, j])\n }\n"),
                        64, 6 * 64 - 8);
  const ThreadProgram p = lowered.program();
  int products = 0;
  for (const thread::Stmt& s : p.stmts) products += std::holds_alternative<thread::WarpgroupMma>(s.node);
  EXPECT_GT(products, 0);
  EXPECT_EQ(p.tensor_maps.size(), 1u);
  EXPECT_EQ(verifiers(p), std::vector<std::string>());
}

// Two writers, one place: a meeting on either side of the product.
TEST(SpecialisedMutants, OfAnOperandInOnePlace) {
  expect_named_around(
      unpacking_text("parallel i, j in 32, 64 {\n b[i, j] = cast(f16, raw[i, j])\n }\n"
                     "parallel i, j in 32, 64 {\n b[i + 32, j] = cast(f16, raw[i + 32, j])\n }\n"),
      64,
      {{"proxy fence dropped",
        remove_fences,
        "verify_transactions: gemm/ko/gemm#0 after gemm/ko/i.j#1: gemm:b is used with no proxy fence of the "
        "threads",
        {"proxy_not_fenced"}},
       {"barrier before the product dropped",
        [](ThreadProgram& p) { return remove_barriers(p, Around::behind); },
        "verify_transactions: gemm/ko/gemm#0 after gemm/ko/i.j#1: gemm:b is used with no barrier after the "
        "threads",
        {"data_race"}},
       {"barrier after the product dropped",
        [](ThreadProgram& p) { return remove_barriers(p, Around::front); },
        "verify_transactions: gemm/ko/i.j after gemm/ko/gemm#0: gemm:b is written while a product may still "
        "read it",
        {"operand_in_flight", "data_race"}},
       {"wait for the product dropped",
        forget_products,
        "verify_transactions: gemm/ko/i.j after gemm/ko/gemm#0: gemm:b is written while a product may still "
        "read it",
        {"operand_in_flight", "data_race"}}});
}

TEST(SpecialisedMutants, OfAnOperandThatWarpgroupsWriteForThemselves) {
  expect_named_around(
      R"(tl 1 program gemm
dim m
dim n
dim k
tensor A: f16[m, 64] readonly
tensor B: f16[k, 64] readonly
tensor V: f16[k, n] readonly
tensor C: f16[m, n]
kernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, 64)) threads 256 {
  alloc a: shared f16[128, 64]
  alloc b: shared f16[64, 64]
  alloc v: shared f16[64, 64]
  alloc s: fragment f32[128, 64]
  alloc w: shared f16[128, 64]
  alloc c: fragment f32[128, 64]
  copy A[by * 128 :+ 128, 0 :+ 64] -> a
  fill c, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 64) stages 3 {
    copy B[ko * 64 :+ 64, 0 :+ 64] -> b
    gemm a, b -> s {transpose_b, clear}
    copy s -> w
    copy V[ko * 64 :+ 64, bx * 64 :+ 64] -> v
    gemm w, v -> c
  }
  copy c -> C[by * 128 :+ 128, bx * 64 :+ 64]
}
)",
      64,
      {{"proxy fence dropped",
        remove_fences,
        "verify_transactions: gemm/ko/gemm#1 after gemm/ko/copy#1: gemm:w is used with no proxy fence of "
        "the threads",
        {"proxy_not_fenced"}},
       {"barrier of the warpgroup dropped",
        [](ThreadProgram& p) { return remove_barriers(p, Around::warpgroup); },
        "verify_synchronization: gemm/ko/gemm#1 after gemm/ko/copy#1: thread 0 reads what several threads "
        "writes in gemm:w",
        {"data_race"}},
       {"wait for the product dropped",
        forget_products,
        "verify_transactions: gemm/ko/copy#1 after gemm/ko/gemm#1: gemm:w is written while a product may "
        "still read it",
        {"operand_in_flight", "data_race"}}});
}

}  // namespace
}  // namespace tilegen::differential
