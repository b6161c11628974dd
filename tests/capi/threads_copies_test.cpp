// Blocks of threads whose copies are asynchronous, and warps with tasks of their own.
#include "threads_scene.h"

namespace tilegen::test {
namespace {

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

// Warps 2 and 3 bring what warps 0 and 1 take, round by round, by two barriers that have names; each side has
// a loop of its own.
TEST(Threads, NamedBarriers) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kThreads), two = tl_index(b, 2),
                half = tl_index(b, 64);
  const int64_t shape[] = {64}, barriers[] = {2}, one[] = {1}, extents[] = {4, 32};
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kThreads - 1)), size);
  tl_expr block, ids[2], i, k;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, kThreads, nullptr, &block);
  const tl_buffer row = tl_alloc(b, "row", TL_SCOPE_SHARED, TL_I64, 1, shape);
  const tl_buffer turn = tl_alloc(b, "turn", TL_SCOPE_SHARED, TL_U64, 1, barriers);
  tl_annotate_tile(b, turn, "participants = 128");
  const tl_expr empty = tl_index(b, 0), full = tl_index(b, 1);
  const tl_region of_empty = tl_region_of(b, turn, 1, &empty, one),
                  of_full = tl_region_of(b, turn, 1, &full, one);
  const tl_scope scope = tl_begin_threads(b, 2, extents, nullptr, ids);
  const tl_expr t = tl_id(b, TL_ID_THREAD);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, size), t);
  const tl_scope side = tl_begin_if(b, tl_binary(b, TL_GE, ids[0], two));
  const tl_scope brings = tl_begin_loop(b, TL_LOOP_SERIAL, tl_index(b, 0), tl_index(b, 5), 0, "i", &i);
  tl_barrier_sync(b, of_empty, 0, 0);
  const tl_expr to = tl_binary(b, TL_SUB, t, half);
  tl_store(b, row, 1, &to, tl_binary(b, TL_ADD, tl_load(b, x, 1, &at), tl_cast(b, TL_I64, i)));
  tl_barrier_arrive(b, of_full, 0, 0);
  tl_end(b, brings);
  tl_store(b, y, 1, &at, tl_index(b, 0));
  tl_begin_else(b, side);
  const tl_expr sum = tl_var(b, "sum", tl_load(b, x, 1, &at));
  const tl_scope takes = tl_begin_loop(b, TL_LOOP_SERIAL, tl_index(b, 0), tl_index(b, 5), 0, "k", &k);
  tl_barrier_arrive(b, of_empty, 0, 0);
  tl_barrier_sync(b, of_full, 0, 0);
  const tl_expr from = tl_binary(b, TL_SUB, tl_index(b, 63), t);
  tl_assign(b, sum, tl_binary(b, TL_ADD, sum, tl_load(b, row, 1, &from)));
  tl_end(b, takes);
  tl_store(b, y, 1, &at, sum);
  tl_end(b, side);
  tl_end(b, scope);
  tl_end(b, kernel);
  expect_threads(made_by(owner), [](const std::vector<int64_t>& in, int64_t begin, int64_t thread) {
    return thread < 64 ? in[begin + thread] + 5 * in[begin + kThreads - 1 - thread] + 10 : int64_t{0};
  });
}

}  // namespace
}  // namespace tilegen::test
