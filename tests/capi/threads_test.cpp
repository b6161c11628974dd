// Blocks of threads: what lanes give each other, and where threads meet.
#include "threads_scene.h"

namespace tilegen::test {
namespace {

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
