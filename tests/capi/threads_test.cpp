// Blocks of threads: what lanes give each other, against the same in C++, on every executor.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

constexpr int64_t kThreads = 128;
constexpr const char* kMore[] = {"", "host", "sim:sm_80", "sim:sm_90a", "sim:gfx942"};

// What thread t of block b gives, of all inputs (0 beyond their end).
using Meaning = int64_t (*)(const std::vector<int64_t>& in, int64_t first, int64_t t);

std::vector<int64_t> padded(std::vector<int64_t> in) {
  in.resize((in.size() + kThreads - 1) / kThreads * kThreads, 0);
  return in;
}

void expect_threads(const Program& program, Meaning meaning) {
  for (const int64_t count : {kThreads, int64_t{300}}) {
    const std::vector<int64_t> in = numbers(count), all = padded(in);
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < count; ++i)
      expected.push_back(meaning(all, i / kThreads * kThreads, i % kThreads));
    for (const char* executor : kMore) EXPECT_EQ(run(program, executor, in), expected) << executor;
  }
}

// Y[b * 128 + t] = what `make` gives of X's element there.
template <class Make>
Program of_threads(int64_t lanes, const Make& make, std::string* mistake = nullptr,
                   int64_t threads = kThreads) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kThreads);
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kThreads - 1)), size);
  tl_expr block, ids[2];
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, threads, nullptr, &block);
  const int64_t extents[] = {kThreads / lanes, lanes};
  const tl_scope scope = tl_begin_threads(b, 2, extents, nullptr, ids);
  const tl_expr t = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, ids[0], tl_index(b, lanes)), ids[1]);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, size), t);
  tl_store(b, y, 1, &at, make(b, tl_load(b, x, 1, &at), ids));
  tl_end(b, scope);
  tl_end(b, kernel);
  return made_by(owner, mistake);
}

constexpr int64_t kGroup = 16;

TEST(Threads, Shuffles) {
  const auto shuffle = [](tl_shuffle_kind kind, int64_t number) {
    return of_threads(kGroup, [=](tl_builder* b, tl_expr x, const tl_expr*) {
      return tl_shuffle(b, kind, x, tl_index(b, number));
    });
  };
  expect_threads(shuffle(TL_SHUFFLE_INDEX, 3), [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    return in[first + t / kGroup * kGroup + 3];
  });
  expect_threads(shuffle(TL_SHUFFLE_XOR, 5), [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    return in[first + (t ^ 5)];
  });
  expect_threads(shuffle(TL_SHUFFLE_UP, 3), [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    return in[first + (t % kGroup >= 3 ? t - 3 : t)];
  });
  expect_threads(shuffle(TL_SHUFFLE_DOWN, 6), [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    return in[first + (t % kGroup + 6 < kGroup ? t + 6 : t)];
  });
  expect_threads(shuffle(TL_SHUFFLE_UP, kGroup),
                 [](const std::vector<int64_t>& in, int64_t first, int64_t t) { return in[first + t]; });
}

// The lane is a value of each thread, taken modulo the group.
TEST(Threads, ShufflesFromComputedLanes) {
  const Program program = of_threads(
      32, [](tl_builder* b, tl_expr x, const tl_expr*) { return tl_shuffle(b, TL_SHUFFLE_INDEX, x, x); });
  expect_threads(program, [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    return in[first + t / 32 * 32 + in[first + t] % 32];
  });
}

TEST(Threads, Votes) {
  const Program program = of_threads(8, [](tl_builder* b, tl_expr x, const tl_expr*) {
    const tl_expr large = tl_binary(b, TL_GT, x, tl_index(b, 20));
    const tl_expr word = tl_cast(b, TL_I64, tl_vote(b, TL_VOTE_BALLOT, large));
    const tl_expr any = tl_vote(b, TL_VOTE_ANY, tl_binary(b, TL_GT, x, tl_index(b, 57)));
    const tl_expr all = tl_vote(b, TL_VOTE_ALL, tl_binary(b, TL_GT, x, tl_index(b, 2)));
    const auto bit = [&](tl_expr c, int64_t v) { return tl_select(b, c, tl_index(b, v), tl_index(b, 0)); };
    return tl_binary(b, TL_ADD, word, tl_binary(b, TL_ADD, bit(any, 1000), bit(all, 2000)));
  });
  expect_threads(program, [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    int64_t word = 0, any = 0, all = 2000;
    for (int64_t lane = 0; lane < 8; ++lane) {
      const int64_t v = in[first + t / 8 * 8 + lane];
      if (v > 20) word |= int64_t{1} << lane;
      if (v > 57) any = 1000;
      if (v <= 2) all = 0;
    }
    return word + any + all;
  });
}

TEST(Threads, MatchesAndElections) {
  const Program program = of_threads(8, [](tl_builder* b, tl_expr x, const tl_expr*) {
    const tl_expr low = tl_binary(b, TL_FLOORMOD, x, tl_index(b, 3));
    const tl_expr word = tl_cast(b, TL_I64, tl_vote(b, TL_VOTE_MATCH_ANY, low));
    const tl_expr first = tl_vote(b, TL_VOTE_ELECT, tl_binary(b, TL_GT, x, tl_index(b, 20)));
    return tl_binary(b, TL_ADD, word, tl_select(b, first, tl_index(b, 1000), tl_index(b, 0)));
  });
  expect_threads(program, [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    const int64_t own = in[first + t];
    int64_t word = 0, elected = -1;
    for (int64_t lane = 0; lane < 8; ++lane) {
      const int64_t v = in[first + t / 8 * 8 + lane];
      if (v % 3 == own % 3) word |= int64_t{1} << lane;
      if (v > 20 && elected < 0) elected = lane;
    }
    return word + (elected == t % 8 ? 1000 : 0);
  });
}

// Sums of warps go through shared memory; a serial loop of run-time bounds has exchanges, as has an if of the
// block; what the loop carries is a value of each thread.
// Numbers of threads count 32 to a warp, whatever the block's extents are.
TEST(Threads, Numbers) {
  for (const std::vector<int64_t>& extents :
       {std::vector<int64_t>{kThreads}, {4, 32}, {16, 8}, {2, 64}, {2, 2, 32}, {8, 1, 2, 8}}) {
    const Context context = make_context();
    const Builder owner = make_builder(context);
    tl_builder* b = owner.get();
    const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kThreads);
    const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
    const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
    const tl_expr blocks =
        tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kThreads - 1)), size);
    const tl_expr grid[] = {tl_index(b, 1), blocks};
    tl_expr block[2], ids[4];
    const tl_scope kernel = tl_begin_kernel(b, "k", 2, grid, kThreads, nullptr, block);
    const tl_scope scope =
        tl_begin_threads(b, static_cast<uint32_t>(extents.size()), extents.data(), nullptr, ids);
    tl_expr sum = tl_id(b, TL_ID_LANE);
    const auto add = [&](tl_id_kind kind, int64_t times) {
      sum = tl_binary(b, TL_ADD, sum, tl_binary(b, TL_MUL, tl_id(b, kind), tl_index(b, times)));
    };
    add(TL_ID_WARP, 100), add(TL_ID_WARPGROUP, 1000), add(TL_ID_BLOCK, 10000);
    add(TL_ID_CLUSTER_RANK, 100000), add(TL_ID_CLUSTER_BLOCKS, 1000000);
    const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block[1], size), tl_id(b, TL_ID_THREAD));
    tl_store(b, y, 1, &at, tl_binary(b, TL_ADD, sum, tl_load(b, x, 1, &at)));
    tl_end(b, scope);
    tl_end(b, kernel);
    expect_threads(made_by(owner), [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
      return in[first + t] + t % 32 + t / 32 * 100 + first / kThreads * 10000 + 1000000;
    });
  }
}

TEST(Threads, NumbersOfWarpgroupsAndClusters) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr grid = tl_index(b, 6);
  tl_expr block, t;
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &grid, nullptr, 0);
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 512, nullptr, &block);
  tl_annotate_kernel(b, "cluster = 4");
  const int64_t extent = 512;
  const tl_scope scope = tl_begin_threads(b, 1, &extent, nullptr, &t);
  const tl_scope one = tl_begin_if(b, tl_binary(b, TL_EQ, t, tl_index(b, 300)));
  tl_store(b, y, 1, &block,
           tl_binary(b, TL_ADD, tl_id(b, TL_ID_WARPGROUP),
                     tl_binary(b, TL_MUL, tl_index(b, 10),
                               tl_binary(b, TL_MUL, tl_id(b, TL_ID_CLUSTER_RANK),
                                         tl_id(b, TL_ID_CLUSTER_BLOCKS)))));
  tl_end(b, one), tl_end(b, scope), tl_end(b, kernel);
  const Program program = made_by(owner);
  std::vector<int64_t> out(6, -1);
  const tl_arg arg{TL_ARG_POINTER, TL_I64, reinterpret_cast<uint64_t>(out.data())};
  ASSERT_EQ(tl_interpret_launch(program.get(), nullptr, &arg, 1, nullptr), TL_OK);
  EXPECT_EQ(out, (std::vector<int64_t>{2, 42, 82, 122, 2, 42}));
}

TEST(Threads, MeetInLoopsAndIfs) {
  const Program program = parse(
      "kernel k grid(b: ceildiv(n, 128)) threads 128 {\n  alloc part: shared i64[4]\n"
      "  threads w, l in 4, 32 {\n    let x = X[b * 128 + w * 32 + l]\n    var s = x\n"
      "    unroll d in 0 .. 5 { s += shuffle_xor(s, 16 >> d) }\n    if l == 0 { part[w] = s }\n    barrier\n"
      "    var all = part[0] + part[1] + part[2] + part[3]\n"
      "    serial r in 0 .. b + 2 {\n      all += shuffle(x, r)\n      if r % 2 == 0 { all += l }\n    }\n"
      "    if b == 1 { all = all * 2 + shuffle_down(x, 1) } else { all -= 1 }\n"
      "    Y[b * 128 + w * 32 + l] = all\n  }\n}\n");
  expect_threads(program, [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    const int64_t b = first / kThreads, lane = t % 32, warp = first + t - lane;
    int64_t all = 0;
    for (int64_t i = 0; i < kThreads; ++i) all += in[first + i];
    for (int64_t r = 0; r < b + 2; ++r) all += in[warp + r] + (r % 2 == 0 ? lane : 0);
    return b == 1 ? 2 * all + in[warp + (lane < 31 ? lane + 1 : lane)] : all - 1;
  });
}

// Warps with tasks of their own, which nest, hold loops and votes, and change what the block has named.
TEST(Threads, GroupsGoTheirOwnWays) {
  const Program program = parse(
      "kernel k grid(b: ceildiv(n, 128)) threads 128 {\n  alloc part: shared i64[4]\n"
      "  threads w, l in 4, 32 {\n    let x = X[b * 128 + w * 32 + l]\n    var s = x\n"
      "    unroll d in 0 .. 5 { s += shuffle_xor(s, 16 >> d) }\n    if l == 0 { part[w] = s }\n    barrier\n"
      "    var r = 5\n"
      "    if w == 1 {\n      var t = select(l < 4, part[l % 4], 0)\n"
      "      serial d in 0 .. 2 { t += shuffle_xor(t, 2 >> d) }\n      r = t + x\n"
      "    } else {\n      r += shuffle(x, 3)\n"
      "      if part[w] % 2 == 0 { r = select(any(x == 60), r * 2 + shuffle(r, 1), r) }\n"
      "      if l > 7 { r -= 1 }\n    }\n"
      "    Y[b * 128 + w * 32 + l] = r + shuffle_down(r, 1)\n  }\n}\n");
  expect_threads(program, [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    const auto sum = [&](int64_t from, int64_t count) {
      int64_t all = 0;
      for (int64_t i = from; i < from + count; ++i) all += in[i];
      return all;
    };
    const int64_t warp = first + t / 32 * 32;
    const auto r_of = [&](int64_t lane) {
      if (warp == first + 32) return (lane < 4 ? sum(first, kThreads) : 0) + in[warp + lane];
      bool any = false;
      for (int64_t i = 0; i < 32; ++i) any = any || in[warp + i] == 60;
      int64_t r = 5 + in[warp + 3];
      if (sum(warp, 32) % 2 == 0 && any) r = r * 2 + r;
      return lane > 7 ? r - 1 : r;
    };
    const int64_t lane = t % 32;
    return r_of(lane) + r_of(lane < 31 ? lane + 1 : lane);
  });
}

// Warps that meet among themselves, in branches and loops of their own.
TEST(Threads, GroupsMeetAmongThemselves) {
  const Program program = parse(
      "kernel k grid(b: ceildiv(n, 128)) threads 128 {\n  alloc s: shared i64[64]\n  alloc u: shared i64[2, "
      "32]\n"
      "  threads w, l in 4, 32 {\n    var r = X[b * 128 + w * 32 + l]\n"
      "    if w < 2 {\n      s[w * 32 + l] = r\n      barrier\n      r = r * 3 + s[63 - w * 32 - l]\n"
      "    } else {\n      serial d in 0 .. 3 {\n"
      "        if w == 2 { u[d % 2, l] = r }\n        barrier\n        r += u[d % 2, 31 - l]\n        "
      "barrier\n      }\n"
      "    }\n    Y[b * 128 + w * 32 + l] = r\n  }\n}\n");
  expect_threads(program, [](const std::vector<int64_t>& in, int64_t first, int64_t t) {
    const int64_t lane = t % 32;
    if (t < 64) return in[first + t] * 3 + in[first + 63 - t];
    int64_t r = in[first + t], of_two[32];
    for (int64_t i = 0; i < 32; ++i) of_two[i] = in[first + 64 + i];
    for (int d = 0; d < 3; ++d) {
      int64_t next[32];
      r += of_two[31 - lane];
      for (int64_t i = 0; i < 32; ++i) next[i] = of_two[i] + of_two[31 - i];
      std::copy(next, next + 32, of_two);
    }
    return r;
  });
}

// One variable; values of others go through shared memory, and a barrier is what makes them visible.
TEST(Threads, BarriersOrderStores) {
  const auto program = [](const std::string& barrier) {
    return "tl 1 program p\ndim n\ntensor X: i64[n] readonly\ntensor Y: i64[n]\n"
           "kernel k grid(b: ceildiv(n, 128)) threads 128 {\n  alloc s: shared i64[128]\n"
           "  threads t in 128 {\n    s[t] = X[b * 128 + t]\n" +
           barrier + "    Y[b * 128 + t] = s[127 - t]\n  }\n}\n";
  };
  const Context context = make_context();
  expect_threads(parsed(context, program("barrier\n")), [](const std::vector<int64_t>& in, int64_t first,
                                                           int64_t t) { return in[first + 127 - t]; });
  tl_program* refused = nullptr;
  tl_error* error = nullptr;
  const std::string text = program("");
  EXPECT_NE(tl_program_parse(context.get(), text.data(), text.size(), "p.tl", &refused, &error), TL_OK);
  EXPECT_NE(std::string(tl_error_message(error)).find("race"), std::string::npos) << tl_error_message(error);
  tl_error_release(error), tl_program_release(refused);
}

// Two groups of copies, of which the first is awaited alone; lanes copy under a condition of their own.
TEST(Threads, CopiesInGroups) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kThreads);
  const int64_t shape[] = {2, kThreads}, one[] = {1, 1}, extents[] = {4, 32};
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kThreads - 1)), size);
  tl_expr block, ids[2];
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, kThreads, nullptr, &block);
  const tl_buffer tile = tl_alloc(b, "tile", TL_SCOPE_SHARED, TL_I64, 2, shape);
  const tl_scope scope = tl_begin_threads(b, 2, extents, nullptr, ids);
  const tl_expr t = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, ids[0], tl_index(b, 32)), ids[1]);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, size), t);
  const tl_expr back = tl_binary(b, TL_SUB, tl_index(b, kThreads - 1), t);
  for (int64_t slot = 0; slot < 2; ++slot) {
    const tl_expr place[] = {tl_index(b, slot), t};
    tl_store(b, tile, 2, place, tl_const_i64(b, TL_I64, 7));
  }
  tl_barrier(b);
  for (int64_t slot = 0; slot < 2; ++slot) {
    const tl_expr place[] = {tl_index(b, slot), t};
    const tl_scope some = tl_begin_if(b, tl_binary(b, TL_LT, ids[1], tl_index(b, slot == 0 ? 32 : 20)));
    tl_copy_async(b, tl_region_of(b, x, 1, &at, one), tl_region_of(b, tile, 2, place, one));
    tl_end(b, some);
    tl_commit_group(b);
  }
  tl_wait_group(b, 1);
  const tl_expr first[] = {tl_index(b, 0), back}, second[] = {tl_index(b, 1), back};
  const tl_expr sum = tl_let(b, "sum", tl_load(b, tile, 2, first));
  tl_wait_group(b, 0);
  tl_store(b, y, 1, &at, tl_binary(b, TL_ADD, sum, tl_load(b, tile, 2, second)));
  tl_end(b, scope);
  tl_end(b, kernel);
  expect_threads(made_by(owner), [](const std::vector<int64_t>& in, int64_t begin, int64_t thread) {
    const int64_t other = kThreads - 1 - thread;
    return in[begin + other] + (other % 32 < 20 ? in[begin + other] : 7);
  });
}

// Warps 0 and 1 fill a ring of two slots, warps 2 and 3 add up what comes; the calls of a block of threads.
TEST(Threads, TransactionBarriers) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kThreads), two = tl_index(b, 2);
  const int64_t shape[] = {2, kThreads / 2}, barriers[] = {2}, one[] = {1}, extents[] = {4, 32};
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kThreads - 1)), size);
  tl_expr block, ids[2], k;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, kThreads, nullptr, &block);
  const tl_buffer ring = tl_alloc(b, "ring", TL_SCOPE_SHARED, TL_I64, 2, shape);
  const tl_buffer full = tl_alloc(b, "full", TL_SCOPE_SHARED, TL_U64, 1, barriers);
  const tl_buffer empty = tl_alloc(b, "empty", TL_SCOPE_SHARED, TL_U64, 1, barriers);
  tl_annotate_tile(b, full, "arrivals = 64");
  tl_annotate_tile(b, empty, "arrivals = 2");
  const tl_scope scope = tl_begin_threads(b, 2, extents, nullptr, ids);
  const tl_expr t = tl_id(b, TL_ID_THREAD);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, size), t);
  const tl_expr sum = tl_var(b, "sum", tl_load(b, x, 1, &at));
  const tl_scope rounds = tl_begin_loop(b, TL_LOOP_SERIAL, tl_index(b, 0), tl_index(b, 5), 0, "round", &k);
  const tl_expr slot = tl_binary(b, TL_FLOORMOD, k, two), use = tl_binary(b, TL_FLOORDIV, k, two);
  const tl_expr parity = tl_binary(b, TL_FLOORMOD, use, two);
  const tl_region of_full = tl_region_of(b, full, 1, &slot, one),
                  of_empty = tl_region_of(b, empty, 1, &slot, one);
  const tl_scope fills = tl_begin_if(b, tl_binary(b, TL_LT, ids[0], two));
  tl_mbarrier_wait(b, of_empty, tl_binary(b, TL_SUB, tl_index(b, 1), parity), 0, 0);
  const tl_expr to[] = {slot, t};
  tl_store(b, ring, 2, to, tl_binary(b, TL_ADD, sum, tl_cast(b, TL_I64, k)));
  tl_mbarrier_arrive(b, of_full, 0, 0, 0);
  tl_begin_else(b, fills);
  tl_mbarrier_wait(b, of_full, parity, 0, 0);
  const tl_expr from[] = {slot, tl_binary(b, TL_SUB, tl_index(b, kThreads - 1), t)};
  tl_assign(b, sum, tl_binary(b, TL_ADD, sum, tl_load(b, ring, 2, from)));
  tl_mbarrier_arrive(b, of_empty, 0, 0, TL_ARRIVE_ELECTED);
  tl_end(b, fills);
  tl_end(b, rounds);
  tl_store(b, y, 1, &at, sum);
  tl_end(b, scope);
  tl_end(b, kernel);
  expect_threads(made_by(owner), [](const std::vector<int64_t>& in, int64_t begin, int64_t thread) {
    return in[begin + thread] + (thread < 64 ? 0 : 5 * in[begin + kThreads - 1 - thread] + 10);
  });
}

// Warps 2 and 3 copy boxes of 64 elements for warps 0 and 1, by the calls.
TEST(Threads, BulkCopies) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kThreads), half = tl_index(b, 2);
  const int64_t shape[] = {2, kThreads}, barriers[] = {2}, one[] = {1}, extents[] = {4, 32};
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kThreads - 1)), size);
  tl_expr block, ids[2], k;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, kThreads, nullptr, &block);
  const tl_buffer ring = tl_alloc(b, "ring", TL_SCOPE_SHARED, TL_I64, 2, shape);
  const tl_buffer full = tl_alloc(b, "full", TL_SCOPE_SHARED, TL_U64, 1, barriers);
  const tl_buffer empty = tl_alloc(b, "empty", TL_SCOPE_SHARED, TL_U64, 1, barriers);
  tl_annotate_tile(b, full, "arrivals = 64");
  tl_annotate_tile(b, empty, "arrivals = 2");
  const tl_scope scope = tl_begin_threads(b, 2, extents, nullptr, ids);
  const tl_expr t = tl_id(b, TL_ID_THREAD), first = tl_binary(b, TL_MUL, block, size);
  const tl_expr sum = tl_var(b, "sum", tl_index(b, 0));
  const tl_scope rounds = tl_begin_loop(b, TL_LOOP_SERIAL, tl_index(b, 0), tl_index(b, 5), 0, "round", &k);
  const tl_expr slot = tl_binary(b, TL_FLOORMOD, k, half);
  const tl_expr parity = tl_binary(b, TL_FLOORMOD, tl_binary(b, TL_FLOORDIV, k, half), half);
  const tl_region of_full = tl_region_of(b, full, 1, &slot, one),
                  of_empty = tl_region_of(b, empty, 1, &slot, one);
  const tl_scope fills = tl_begin_if(b, tl_binary(b, TL_GE, ids[0], half));
  tl_mbarrier_wait(b, of_empty, tl_binary(b, TL_SUB, tl_index(b, 1), parity), 0, 0);
  const int64_t line[] = {kThreads}, row[] = {1, kThreads};
  const tl_expr to[] = {slot, tl_index(b, 0)};
  tl_copy_bulk(b, tl_region_of(b, x, 1, &first, line), tl_region_of(b, ring, 2, to, row));
  tl_mbarrier_arrive(b, of_full, 0, 0, TL_ARRIVE_COPIES);
  tl_begin_else(b, fills);
  tl_mbarrier_wait(b, of_full, parity, 0, 0);
  const tl_expr from[] = {slot, tl_binary(b, TL_SUB, tl_index(b, kThreads - 1), t)};
  tl_assign(b, sum, tl_binary(b, TL_ADD, sum, tl_load(b, ring, 2, from)));
  tl_mbarrier_arrive(b, of_empty, 0, 0, TL_ARRIVE_ELECTED);
  tl_end(b, fills);
  tl_end(b, rounds);
  const tl_expr at = tl_binary(b, TL_ADD, first, t);
  tl_store(b, y, 1, &at, sum);
  tl_end(b, scope);
  tl_end(b, kernel);
  expect_threads(made_by(owner), [](const std::vector<int64_t>& in, int64_t begin, int64_t thread) {
    return thread < 64 ? 5 * in[begin + kThreads - 1 - thread] : int64_t{0};
  });
}

std::string code_of(const Context& context, const Program& program, const char* name) {
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_options* options = nullptr;
  EXPECT_EQ(tl_options_create(&options, nullptr), TL_OK);
  EXPECT_EQ(tl_options_set_bool(options, "keep_assembly", 1, nullptr), TL_OK);
  EXPECT_EQ(tl_target_parse(name, &target, nullptr), TL_OK);
  EXPECT_EQ(tl_compile(context.get(), program.get(), target, options, &artifact, nullptr), TL_OK);
  const char* data = nullptr;
  size_t size = 0;
  EXPECT_EQ(tl_artifact_section(artifact, TL_SECTION_ASSEMBLY, &data, &size, nullptr), TL_OK);
  const std::string text(data, size);
  tl_target_release(target), tl_artifact_release(artifact), tl_options_destroy(options);
  return text;
}
std::string ptx_of(const Context& context, const Program& program) {
  return code_of(context, program, "sm_80");
}
int count_of(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// Two warps of the four wait for each other, and the others for nobody.
TEST(Threads, BarriersOfSomeWarps) {
  const Context context = make_context();
  const Program program = parsed(
      context,
      "tl 1 program p\ntensor X: i32[128] readonly\ntensor Y: i32[128]\nkernel k grid(b: 1) threads 128 {\n"
      "  alloc s: shared i32[64]\n  threads w, l in 4, 32 {\n    var r = X[w * 32 + l]\n    if w < 2 {\n"
      "      s[w * 32 + l] = r\n      barrier\n      r = s[63 - w * 32 - l]\n    }\n"
      "    Y[w * 32 + l] = r\n  }\n}\n");
  const std::string ptx = ptx_of(context, program);
  EXPECT_EQ(ptx.find("bar.sync \t0"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("bar.sync 1, 64"), std::string::npos) << ptx;
}

// Copies of the widest instruction, in the groups that the text has.
TEST(Threads, GroupsAreInstructions) {
  const Context context = make_context();
  const Program program = parsed(
      context,
      "tl 1 program p\ntensor X: f16[2, 1024] readonly\ntensor Y: f16[128]\nkernel k grid(b: 1) threads 128 "
      "{\n"
      "  alloc s: shared f16[2, 1024]\n  threads w, l in 4, 32 {\n    unroll r in 0 .. 2 {\n"
      "      copy_async X[r, w * 256 + l * 8 :+ 8] -> s[r, w * 256 + l * 8 :+ 8]\n      commit_group\n    }\n"
      "    wait_group 1\n    let a = s[0, 127 - w * 32 - l]\n    wait_group 0\n"
      "    Y[w * 32 + l] = a + s[1, w * 32 + l]\n  }\n}\n");
  const std::string all = ptx_of(context, program),
                    ptx = all.substr(0, all.find(".entry", all.find(".entry") + 1));
  EXPECT_EQ(count_of(ptx, "cp.async.cg.shared.global"), 2) << ptx;
  EXPECT_EQ(count_of(ptx, "cp.async.commit_group"), 2) << ptx;
  EXPECT_EQ(count_of(ptx, "cp.async.wait_group"), 2) << ptx;
}

// Each side of a ring waits for its barriers, and nobody for the block.
TEST(Threads, TransactionBarriersAreInstructions) {
  const Context context = make_context();
  const Program program = parsed(
      context,
      "tl 1 program p\ndim n\ntensor X: i32[n] readonly\ntensor Y: i32[64]\nkernel k grid(b: 1) threads 128 "
      "{\n"
      "  alloc ring: shared i32[3, 64]\n  alloc full: shared u64[3] {arrivals = 64}\n"
      "  alloc empty: shared u64[3] {arrivals = 64}\n  threads w, l in 4, 32 {\n    var r = 0i32\n"
      "    serial k in 0 .. n {\n      if w < 2 {\n        mbarrier_wait empty[k % 3], (k // 3 + 1) % 2\n"
      "        ring[k % 3, w * 32 + l] = X[k]\n        mbarrier_arrive full[k % 3]\n      } else {\n"
      "        mbarrier_wait full[k % 3], k // 3 % 2\n        r += ring[k % 3, 127 - w * 32 - l]\n"
      "        mbarrier_arrive empty[k % 3]\n      }\n    }\n"
      "    if w >= 2 { Y[w * 32 + l - 64] = r }\n  }\n}\n");
  for (const auto& [target, wait] : {std::pair("sm_80", "test_wait"), {"sm_90a", "try_wait"}}) {
    const std::string all = code_of(context, program, target),
                      ptx = all.substr(0, all.find(".entry", all.find(".entry") + 1));
    EXPECT_EQ(count_of(ptx, "mbarrier.init"), 6) << ptx;
    EXPECT_EQ(count_of(ptx, std::string("mbarrier.") + wait + ".parity"), 2) << ptx;
    EXPECT_EQ(count_of(ptx, "mbarrier.arrive"), 2) << ptx;
    EXPECT_EQ(count_of(ptx, "bar.sync"), 1) << ptx;  // behind the barriers' first state
  }
}

// One lane of each warp arrives, behind the others.
TEST(Threads, ElectedLanesMeetTheirWarp) {
  const Context context = make_context();
  const Program program = parsed(
      context,
      "tl 1 program p\ndim n\ntensor X: i32[n] readonly\ntensor Y: i32[64]\nkernel k grid(b: 1) threads 128 "
      "{\n  alloc s: shared i32[64]\n  alloc full: shared u64[1] {arrivals = 2}\n"
      "  threads w, l in 4, 32 {\n    var r = 0i32\n    if w < 2 {\n      s[w * 32 + l] = X[w * 32 + l]\n"
      "      if l == 0 { mbarrier_arrive full[0] }\n    } else {\n      mbarrier_wait full[0], 0\n"
      "      r = s[127 - w * 32 - l]\n    }\n    if w >= 2 { Y[w * 32 + l - 64] = r }\n  }\n}\n");
  for (const char* target : {"sm_80", "sm_90a"}) {
    const std::string all = code_of(context, program, target),
                      ptx = all.substr(0, all.find(".entry", all.find(".entry") + 1));
    const size_t meets = ptx.find("bar.warp.sync"), arrives = ptx.find("mbarrier.arrive");
    EXPECT_LT(ptx.find("st.shared"), meets) << ptx;
    EXPECT_LT(meets, arrives) << ptx;
    EXPECT_EQ(count_of(ptx, "mbarrier.arrive"), 1) << ptx;
    EXPECT_EQ(count_of(ptx, "elect.sync"), target[3] == '9' ? 1 : 0) << ptx;  // sm_80 has none
  }
}

// Two elements of two bytes at an odd address are no word: threads move the elements of such launches.
TEST(Threads, CopiesOfElementsAtOddAddresses) {
  const Context context = make_context();
  for (const std::string wait : {"commit_group\n    wait_group 0\n", "mbarrier_arrive full[0] {copies}\n"}) {
    const Program program = parsed(context,
                                   "tl 1 program p\ntensor X: i16[256] readonly\ntensor Y: i16[128]\n"
                                   "kernel k grid(b: 1) threads 128 {\n  alloc s: shared i16[256]\n"
                                   "  alloc full: shared u64[1] {arrivals = 128}\n  threads t in 128 {\n"
                                   "    copy_async X[t * 2 :+ 2] -> s[t * 2 :+ 2]\n    " +
                                       wait + (wait[0] == 'm' ? "    mbarrier_wait full[0], 0\n" : "") +
                                       "    Y[t] = s[255 - t] + s[t]\n  }\n}\n");
    for (const char* executor : kMore)
      for (const size_t first : {0, 1}) {  // elements behind an aligned address
        alignas(16) int16_t in[258], out[130];
        for (int i = 0; i < 256; ++i) in[first + static_cast<size_t>(i)] = static_cast<int16_t>(i * 37 % 101);
        const tl_arg args[] = {{TL_ARG_POINTER, TL_I16, reinterpret_cast<uint64_t>(in + first)},
                               {TL_ARG_POINTER, TL_I16, reinterpret_cast<uint64_t>(out + first)}};
        tl_error* error = nullptr;
        EXPECT_EQ(launch_on(context, program, executor, nullptr, args, 2, &error), TL_OK)
            << executor << ' ' << first << ": " << tl_error_message(error);
        tl_error_release(error);
        for (size_t t = 0; t < 128; ++t)
          ASSERT_EQ(out[first + t], in[first + 255 - t] + in[first + t]) << executor << ' ' << first;
      }
  }
}

// A vote is an instruction for the warp, of groups of any size; what is like one stays as it is.
TEST(Threads, VotesAreInstructions) {
  const Context context = make_context();
  const auto code = [&](int lanes, const std::string& body, const char* target) {
    const std::string groups = std::to_string(128 / lanes), n = std::to_string(lanes);
    return code_of(
        context,
        parsed(context,
               "tl 1 program p\ntensor X: i32[128] readonly\ntensor Y: u32[128]\n"
               "kernel k grid(b: 1) threads 128 {\n  threads w, l in " +
                   groups + ", " + n + " {\n    let x = X[w * " + n + " + l]\n    " + body + "\n  }\n}\n"),
        target);
  };
  for (const int lanes : {2, 8, 32}) {
    const std::string to = "Y[w * " + std::to_string(lanes) + " + l] = ";
    for (const std::string value :
         {"ballot(x > 3)", "select(any(x > 3), 1, 2)", "select(all(x > 3), 1, 2)"}) {
      const std::string ptx = code(lanes, to + value, "sm_80"), gcn = code(lanes, to + value, "gfx942");
      const bool any = value.front() == 's' && lanes == 32;
      EXPECT_EQ(count_of(ptx, any ? "vote.sync.any.pred" : "vote.sync.ballot.b32"), 1) << ptx;
      EXPECT_EQ(count_of(ptx, "vote.sync"), 1) << ptx;
      EXPECT_EQ(count_of(ptx, "shfl.sync"), 0) << ptx;
      EXPECT_EQ(count_of(gcn, "ds_bpermute"), 0) << gcn;
    }
  }
  for (const int lanes : {2, 32}) {
    const std::string of = "Y[w * " + std::to_string(lanes) + " + l] = match_any(x)";
    const std::string ptx = code(lanes, of, "sm_80"), gcn = code(lanes, of, "gfx942");
    EXPECT_EQ(count_of(ptx, "match.any.sync.b32"), 1) << ptx;
    EXPECT_EQ(count_of(ptx, "shfl.sync"), 0) << ptx;
    EXPECT_EQ(count_of(gcn, "ds_bpermute"), 0) << gcn;
  }
  const std::string sum =
      "var s = SEED\n    unroll d in 0 .. 5 { s = s | shuffle_xor(s, 1 << d) }\n"
      "    Y[w * 32 + l] = s";
  const auto halves = [&](const std::string& seed, const char* target) {
    return code(32, std::string(sum).replace(sum.find("SEED"), 4, seed), target);
  };
  for (const std::string seed : {"select(x > 3, 1u32 << cast(u32, l), 0u32)", "select(x > 3, 12u32, 0u32)"}) {
    EXPECT_EQ(count_of(halves(seed, "sm_80"), "shfl.sync"), 0) << seed;
    EXPECT_EQ(count_of(halves(seed, "gfx942"), "ds_bpermute"), 0) << seed;
  }
  for (const std::string seed : {"cast(u32, x)", "select(x > 3, 1u32 << cast(u32, l ^ 1), 0u32)",
                                 "select(x > 3, 1u32 << cast(u32, l), 1u32)"}) {
    EXPECT_EQ(count_of(halves(seed, "sm_80"), "shfl.sync"), 5) << seed;
    EXPECT_EQ(count_of(halves(seed, "gfx942"), "ds_bpermute"), 5) << seed;
  }
}

// Lanes hand values over in registers: no shared memory, no barrier, one instruction a word.
TEST(Threads, ShufflesAreInstructions) {
  const Context context = make_context();
  for (const auto& [type, words] : {std::pair("f32", 1), {"f64", 2}, {"f16", 1}, {"u64", 2}}) {
    const Program program = parsed(
        context,
        std::string("tl 1 program p\ntensor X: ") + type + "[128] readonly\ntensor Y: " + type +
            "[128]\nkernel k grid(b: 1) threads 128 {\n  threads w, l in 4, 32 {\n"
            "    let x = X[w * 32 + l]\n    Y[w * 32 + l] = shuffle_xor(x, 3) + shuffle_up(x, 1)\n  }\n}\n");
    tl_target* target = nullptr;
    tl_artifact* artifact = nullptr;
    tl_error* error = nullptr;
    ASSERT_EQ(tl_target_parse("sm_80", &target, nullptr), TL_OK);
    ASSERT_EQ(tl_compile(context.get(), program.get(), target, nullptr, &artifact, &error), TL_OK)
        << tl_error_message(error);
    const char* data = nullptr;
    size_t size = 0;
    ASSERT_EQ(tl_artifact_section(artifact, TL_SECTION_PTX, &data, &size, nullptr), TL_OK);
    const std::string ptx(data, size);
    int shuffles = 0;
    for (size_t at = ptx.find("shfl.sync"); at != std::string::npos; at = ptx.find("shfl.sync", at + 1))
      ++shuffles;
    EXPECT_EQ(shuffles, 2 * words) << type << "\n" << ptx;
    EXPECT_EQ(ptx.find("bar.sync"), std::string::npos) << type;
    EXPECT_EQ(ptx.find("st.shared"), std::string::npos) << type;
    tl_artifact_release(artifact), tl_target_release(target);
  }
}

TEST(Threads, Mistakes) {
  const auto mistake = [](int64_t lanes, int64_t threads, auto make) {
    std::string text;
    of_threads(lanes, make, &text, threads);
    return text;
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const auto own = [](tl_builder*, tl_expr x, const tl_expr*) { return x; };
  has(mistake(32, 64, own), "the kernel has 64");
  has(mistake(32, 0, own), "does not say how many");
  has(mistake(64, kThreads,
              [](tl_builder* b, tl_expr x, const tl_expr*) {
                return tl_shuffle(b, TL_SHUFFLE_XOR, x, tl_index(b, 1));
              }),
      "groups of 64 lanes");
  has(mistake(32, kThreads,
              [](tl_builder* b, tl_expr x, const tl_expr*) {
                return tl_shuffle(b, TL_SHUFFLE_INDEX, x, tl_index(b, 32));
              }),
      "given the number 32, expected 0 to 31");
  has(mistake(32, kThreads,
              [](tl_builder* b, tl_expr x, const tl_expr*) { return tl_shuffle(b, 9, x, tl_index(b, 1)); }),
      "no shuffle 9");
  has(mistake(32, kThreads,
              [](tl_builder* b, tl_expr x, const tl_expr*) {
                tl_vote(b, TL_VOTE_ANY, x);
                return x;
              }),
      "takes a condition, found i64");
  has(mistake(32, kThreads,
              [](tl_builder* b, tl_expr x, const tl_expr*) {
                tl_vote(b, TL_VOTE_MATCH_ANY, tl_binary(b, TL_LT, x, x));
                return x;
              }),
      "match_any compares integers, found bool");
  has(mistake(32, kThreads,
              [](tl_builder* b, tl_expr x, const tl_expr*) {
                tl_vote(b, 6, x);
                return x;
              }),
      "no vote 6");
  has(mistake(32, kThreads,
              [](tl_builder* b, tl_expr x, const tl_expr* ids) {
                const tl_scope s = tl_begin_if(b, tl_binary(b, TL_LT, ids[1], tl_index(b, 3)));
                tl_barrier(b);
                tl_end(b, s);
                return x;
              }),
      "barrier stands where lanes of a group of its threads may go different ways");
}

TEST(Threads, NumbersThatThereAreNot) {
  const auto mistake = [](auto make) {
    const Context context = make_context();
    const Builder owner = make_builder(context);
    tl_builder* b = owner.get();
    const tl_expr grid[] = {tl_index(b, 4), tl_index(b, 4)};
    tl_expr block[2];
    const tl_scope kernel = tl_begin_kernel(b, "k", 2, grid, kThreads, nullptr, block);
    make(b);
    tl_end(b, kernel);
    std::string text;
    made_by(owner, &text);
    return text;
  };
  const auto has = [](const std::string& all, const char* part) {
    EXPECT_NE(all.find(part), std::string::npos) << all;
  };
  has(mistake([](tl_builder* b) { tl_id(b, TL_ID_WARP); }), "warp_id stands outside of a block of threads");
  has(mistake([](tl_builder* b) {
        tl_annotate_kernel(b, "cluster = 2");
        tl_id(b, TL_ID_CLUSTER_RANK);
      }),
      "the kernel does not say which block index counts it");
  has(mistake([](tl_builder* b) {
        tl_id(b, TL_ID_CLUSTER_BLOCKS);
        tl_annotate_kernel(b, "cluster = 2, cluster_along = bx");
      }),
      "the kernel is given a cluster behind expressions of the block's number in its cluster");
}

}  // namespace
}  // namespace tilegen::test
