// Defects of a lowered specialised product, one of each kind, and the check that names each: at compile time
// verify_thread_program, verify_synchronization or verify_transactions, and the simulator under every order
// of warps and both times of landing.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../unit/sim/gpu_program.h"
#include "ir/text.h"
#include "launch_memory.h"
#include "runtime/kernel_version.h"
#include "thread/sync_verify.h"
#include "thread/transaction_verify.h"

namespace tilegen::differential {
namespace {

using ir::ExprId;
using sim::test::E;
using thread::StmtId;
using thread::ThreadProgram;

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

// One form with roles, and a launch of it: ragged tiles, several for a block where it walks them, 6 steps.
class Lowered {
 public:
  Lowered(const std::string& text, int64_t columns, int64_t k = 6 * 64 - 8) {
    auto parsed = ir::parse_program(text, "product.tl", Limits{});
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().to_text());
    const auto program = std::make_shared<const ir::Program>(std::move(*parsed));
    auto artifact = driver::compile(program, *target::find_target("sim:sm_90a"), {});
    EXPECT_TRUE(artifact) << (artifact ? "" : artifact.error().to_text());
    artifact_ = *artifact;
    Launch launch;
    launch.dims = {{"m", 3 * 128 + 24}, {"n", columns}, {"k", k}};
    EXPECT_EQ(memory_.bind(*program, launch), "");
    for (int tensor : memory_.tensor_of())
      extents_.push_back(
          {0, tensor < 0
                  ? 0
                  : static_cast<int64_t>(memory_.tensors()[static_cast<size_t>(tensor)].initial.size())});
    const auto memory = memory_.fresh(false);
    const auto forms = runtime::kernel_versions(*artifact_);
    const auto form = runtime::choose_version(forms[0], "gemm", memory_.slots(memory));
    EXPECT_TRUE(form);
    program_ = (*form)->program();
  }
  ThreadProgram program() const { return program_; }

  // Kinds of findings.
  std::set<std::string> simulate(const ThreadProgram& p, sim::SimOptions options) const {
    const std::vector<GuardedMemory> memory = memory_.fresh(false);
    options.count = false;
    if (p.dynamic_tiles) options.resident_blocks = 1;
    options.max_statements = 200'000;
    const auto result = sim::simulate(p, artifact_->target, memory_.slots(memory), extents_, options);
    std::set<std::string> kinds;
    if (!result) kinds.insert("refused: " + result.error().to_text());
    if (result)
      for (const sim::Finding& f : result->findings) kinds.insert(sim::finding_name(f.kind));
    return kinds;
  }

 private:
  std::shared_ptr<const driver::Artifact> artifact_;
  LaunchMemory memory_;
  std::vector<sim::TensorExtent> extents_;
  ThreadProgram program_;
};

// ---- finding and changing statements

// f(block, place in it) of every statement with that node, in program order.
template <class Node>
void each(ThreadProgram& p, thread::Block& block,
          const std::function<void(thread::Block&, size_t, Node&)>& f) {
  for (size_t i = 0; i < block.size(); ++i) {
    const StmtId id = block[i];
    auto& node = p.stmts[id.value].node;
    if (auto* found = std::get_if<Node>(&node)) f(block, i, *found);
    if (i >= block.size() || block[i] != id) {  // it was removed
      --i;
      continue;
    }
    for (thread::Block* inner : thread::blocks_inside(node)) each<Node>(p, *inner, f);
  }
}
template <class Node>
int change(ThreadProgram& p, const std::function<bool(Node&)>& f) {
  int changed = 0;
  each<Node>(p, p.body, [&](thread::Block&, size_t, Node& n) { changed += f(n); });
  return changed;
}
template <class Node>
int remove(ThreadProgram& p) {
  int removed = 0;
  each<Node>(p, p.body, [&](thread::Block& block, size_t i, Node&) {
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
    ++removed;
  });
  return removed;
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

// ---- the defects

struct Defect {
  const char* name;
  std::function<int(ThreadProgram&)> spoil;  // how many places
  const char*
      verifier;  // what verify_thread_program or verify_transactions says, with its name; null: nothing
  std::set<std::string> findings;  // of the simulator: one of these under every order
};

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

std::vector<std::string> verifiers(const ThreadProgram& p) {
  std::vector<std::string> all;
  for (const std::string& line : thread::verify_thread_program(p))
    all.push_back("verify_thread_program: " + line);
  for (const std::string& line : thread::verify_synchronization(p))
    all.push_back("verify_synchronization: " + line);
  for (const std::string& line : thread::verify_transactions(p))
    all.push_back("verify_transactions: " + line);
  return all;
}

void expect_named(const Lowered& lowered, const Defect& d) {
  SCOPED_TRACE(d.name);
  ThreadProgram p = lowered.program();
  ASSERT_GT(d.spoil(p), 0);
  const std::vector<std::string> said = verifiers(p);
  if (d.verifier == nullptr) {
    EXPECT_EQ(said, std::vector<std::string>());
  } else {
    EXPECT_TRUE(std::any_of(said.begin(), said.end(), [&](const auto& s) {
      return s.find(d.verifier) != s.npos;
    })) << testing::PrintToString(said);
  }
  sim::test::for_each_schedule([&](const sim::SimOptions& options) {
    const std::set<std::string> kinds = lowered.simulate(p, options);
    EXPECT_TRUE(
        std::any_of(kinds.begin(), kinds.end(), [&](const auto& k) { return d.findings.contains(k); }))
        << sim::test::order_name(options) << ": " << testing::PrintToString(kinds);
  });
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

// ---- defects around operands that threads write

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

TEST(SpecialisedMutants, OfABlockForEachTile) { expect_all_named(64, 3, false); }
TEST(SpecialisedMutants, OfBlocksThatWalkTheTiles) { expect_all_named(128, 4, true); }

}  // namespace
}  // namespace tilegen::differential
