// Calls for what the text writes in a word: counted loops, codes of packed types, old values in a tile, scans
// from a group. Each builds the program of its text; and programs written as C.
#include <gtest/gtest.h>

#include <string>

#include "scope.h"

namespace tilegen::test {
namespace {

std::string text_of(const Program& program) {
  tl_blob* blob = nullptr;
  EXPECT_EQ(tl_program_print(program.get(), &blob, nullptr), TL_OK);
  const Blob owned(blob);
  return {tl_blob_data(blob), tl_blob_size(blob)};
}

// A kernel of one block, whose body `build` makes; the program, or what is wrong with it.
template <class Build>
std::string made(const Context& context, Program* program, const Build& build) {
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n");
  const tl_expr shape[] = {n, tl_index(b, 8)};
  const tl_buffer w = tl_tensor(b, "W", TL_U8, 2, shape, nullptr, 0);
  const tl_buffer y = tl_tensor(b, "Y", TL_I32, 2, shape, nullptr, 0);
  build(b, w, y, n);
  Failure failure;
  finish(owner, program, &failure);
  return failure ? std::string(first(failure).code) + ": " + first(failure).message : std::string();
}
tl_scope kernel_of(tl_builder* b, tl_expr* block) {
  const tl_expr one = tl_index(b, 1);
  const char* const names[] = {"g"};
  return tl_begin_kernel(b, "k", 1, &one, 0, names, block);
}

TEST(WrittenForms, CountedLoops) {
  const Context context = make_context();
  const int64_t one = 1;
  const auto build = [&](tl_loop_kind kind, bool condition, bool in_parallel) {
    return [=, &one](tl_builder* b, tl_buffer, tl_buffer, tl_expr n) {
      tl_expr g, at, k;
      const tl_expr zero = tl_index(b, 0);
      const tl_scope kernel = kernel_of(b, &g);
      const tl_buffer v = tl_alloc(b, "v", TL_SCOPE_LOCAL, TL_I64, 1, &one);
      tl_store(b, v, 1, &zero, zero);
      const tl_scope outer = in_parallel ? tl_begin_parallel(b, 1, &one, nullptr, &at) : tl_scope{0};
      const tl_expr few = tl_binary(b, TL_LT, tl_load(b, v, 1, &zero), tl_index(b, 9));
      const tl_scope loop = tl_begin_counted_loop(b, kind, tl_binary(b, TL_MUL, n, tl_index(b, 3)),
                                                  kind == TL_LOOP_UNROLL ? tl_index(b, 4) : n,
                                                  condition ? few : tl_expr{0}, 0, "j", &k);
      tl_store(b, v, 1, &zero, tl_binary(b, TL_ADD, tl_load(b, v, 1, &zero), k));
      tl_end(b, loop);
      if (in_parallel) tl_end(b, outer);
      tl_end(b, kernel);
    };
  };
  const std::string head =
      "tl 1 program p\ndim n\ntensor W: u8[n, 8]\ntensor Y: i32[n, 8]\nkernel k grid (g: 1) {\n"
      "  alloc v: local i64[1]\n  v[0] = 0\n  ";
  const std::string body = " {\n    v[0] = v[0] + j\n  }\n}\n";
  const struct {
    tl_loop_kind kind;
    bool condition;
    const char* loop;
  } cases[] = {{TL_LOOP_SERIAL, false, "serial j in n * 3 :+ n"},
               {TL_LOOP_SERIAL, true, "serial j in n * 3 :+ n while v[0] < 9"},
               {TL_LOOP_UNROLL, false, "unroll j in n * 3 :+ 4"}};
  for (const auto& c : cases) {
    Program program;
    ASSERT_EQ(made(context, &program, build(c.kind, c.condition, false)), "");
    EXPECT_EQ(text_of(program), text_of(parsed(context, head + c.loop + body)));
  }
  EXPECT_EQ(made(context, nullptr, build(TL_LOOP_UNROLL, true, false)),
            "misplaced_statement: a loop of kind unroll has a condition");
  EXPECT_EQ(made(context, nullptr, build(TL_LOOP_SERIAL, true, true)), "");  // of each point
  EXPECT_EQ(made(context, nullptr, build(9, false, false)), "bad_enum: there is no loop kind 9");
  EXPECT_EQ(made(context, nullptr,
                 [](tl_builder* b, tl_buffer, tl_buffer, tl_expr n) {
                   tl_expr g, k{1};
                   kernel_of(b, &g);
                   tl_begin_counted_loop(b, TL_LOOP_SERIAL, n, n, n, 0, "j", &k);
                   EXPECT_EQ(k.bits, 0u);
                 }),
            "dtype_mismatch: the condition is i64, not bool");
}

TEST(WrittenForms, CodesOfPackedTypes) {
  const Context context = make_context();
  const auto build = [](bool of_bytes, tl_dtype codes) {
    return [=](tl_builder* b, tl_buffer w, tl_buffer y, tl_expr) {
      tl_tensor_codes(b, of_bytes ? w : y, codes);
      tl_expr g;
      tl_end(b, kernel_of(b, &g));
    };
  };
  Program program;
  ASSERT_EQ(made(context, &program, build(true, TL_U4)), "");
  EXPECT_EQ(text_of(program),
            text_of(parsed(context,
                           "tl 1 program p dim n tensor W: u4[n, 16] tensor Y: i32[n, 8] kernel k "
                           "grid (g: 1) { }")));
  EXPECT_EQ(made(context, nullptr, build(false, TL_U4)),
            "dtype_mismatch: elements of tensor 'Y' are i32 and hold no u4");
  EXPECT_EQ(made(context, nullptr, build(true, TL_I8)),
            "dtype_mismatch: elements of tensor 'W' are u8 and hold no i8");
}

TEST(WrittenForms, OldValuesInTiles) {
  const Context context = make_context();
  const int64_t eight = 8;
  const auto build = [&](tl_mem_scope scope, bool in_parallel) {
    return [=, &eight](tl_builder* b, tl_buffer, tl_buffer y, tl_expr) {
      tl_expr g, i;
      const tl_scope kernel = kernel_of(b, &g);
      const tl_buffer s = tl_alloc(b, "s", scope, TL_I32, 1, &eight);
      const char* const names[] = {"i"};
      const tl_scope loop = in_parallel ? tl_begin_parallel(b, 1, &eight, names, &i) : tl_scope{0};
      if (!in_parallel) i = g;
      const tl_expr at[] = {g, i}, three = tl_const_i64(b, TL_I32, 3);
      tl_fetch_atomic_to(b, y, 2, at, three, TL_ATOMIC_XOR, s, 1, &i);
      tl_compare_exchange_to(b, y, 2, at, three, tl_load(b, s, 1, &i), s, 1, &i);
      if (in_parallel) tl_end(b, loop);
      tl_end(b, kernel);
    };
  };
  Program program;
  ASSERT_EQ(made(context, &program, build(TL_SCOPE_SHARED, true)), "");
  EXPECT_EQ(
      text_of(program),
      text_of(parsed(context,
                     "tl 1 program p dim n tensor W: u8[n, 8] tensor Y: i32[n, 8] kernel k grid (g: 1) {\n"
                     "  alloc s: shared i32[8]\n  parallel i in 8 {\n    s[i] = atomic_xor(Y[g, i], 3)\n"
                     "    s[i] = atomic_compare_exchange(Y[g, i], 3, s[i])\n  }\n}\n")));
  EXPECT_EQ(made(context, nullptr, build(TL_SCOPE_FRAGMENT, true)),
            "scope_not_allowed: the old value goes to tile 's', expected a tile of TL_SCOPE_SHARED");
  EXPECT_EQ(made(context, nullptr, build(TL_SCOPE_SHARED, false)),
            "misplaced_statement: it stands outside a parallel loop");
}

TEST(WrittenForms, OldValuesOfTiles) {
  const Context context = make_context();
  const int64_t shape[] = {4, 8};
  const auto build = [&](tl_dtype type, tl_mem_scope scope, bool in_parallel) {
    return [=, &shape](tl_builder* b, tl_buffer, tl_buffer y, tl_expr) {
      tl_expr g, i;
      const int64_t one = 1;
      const tl_scope kernel = kernel_of(b, &g);
      const tl_buffer x = tl_alloc(b, "x", TL_SCOPE_FRAGMENT, TL_I32, 2, shape);
      const tl_buffer before = tl_alloc(b, "o", scope, type, 2, shape);
      tl_fill(b, tl_whole(b, x), tl_const_i64(b, TL_I32, 3));
      const tl_scope loop = in_parallel ? tl_begin_parallel(b, 1, &one, nullptr, &i) : tl_scope{0};
      const tl_expr at[] = {g, tl_index(b, 0)};
      tl_atomic_fetch(b, tl_whole(b, x), tl_region_at(b, y, 2, at), tl_whole(b, before), TL_ATOMIC_EXCHANGE);
      if (in_parallel) tl_end(b, loop);
      tl_end(b, kernel);
    };
  };
  for (const auto& [scope, word] : {std::pair(TL_SCOPE_FRAGMENT, "fragment"), {TL_SCOPE_SHARED, "shared"}}) {
    Program program;
    ASSERT_EQ(made(context, &program, build(TL_I32, static_cast<tl_mem_scope>(scope), false)), "");
    EXPECT_EQ(text_of(program),
              text_of(parsed(
                  context, std::string("tl 1 program p dim n tensor W: u8[n, 8] tensor Y: i32[n, 8]\n"
                                       "kernel k grid (g: 1) {\n  alloc x: fragment i32[4, 8]\n  alloc o: ") +
                               word +
                               " i32[4, 8]\n  fill x, 3\n"
                               "  atomic x -> Y[g, 0], o {kind = exchange}\n}\n")));
  }
  EXPECT_EQ(made(context, nullptr, build(TL_U32, TL_SCOPE_FRAGMENT, false)),
            "dtype_mismatch: atomic_exchange on Y[4, 8], which is i32: o[4, 8] is u32");
  EXPECT_EQ(
      made(context, nullptr, build(TL_I32, TL_SCOPE_FRAGMENT, true)),
      "misplaced_statement: inside a parallel loop only stores, ifs, named values, and serial and unrolled "
      "loops may stand");
}

TEST(WrittenForms, ScansFromAGroup) {
  const Context context = make_context();
  const int64_t shape[] = {4, 8};
  const auto build = [&](uint32_t flags, tl_dtype of_first) {
    return [=, &shape](tl_builder* b, tl_buffer, tl_buffer, tl_expr) {
      tl_expr g;
      const tl_scope kernel = kernel_of(b, &g);
      const tl_buffer x = tl_alloc(b, "x", TL_SCOPE_FRAGMENT, TL_I32, 2, shape);
      tl_fill(b, tl_whole(b, x), tl_const_i64(b, TL_I32, 2));
      const tl_expr left = tl_operand(b, TL_I32, "l"), right = tl_operand(b, TL_I32, "r");
      const tl_expr sum = tl_binary(b, TL_ADD, left, right), first = tl_const_i64(b, of_first, 5);
      const tl_region r = tl_whole(b, x);
      tl_scan_by_from(b, 1, &r, &r, &left, &right, &sum, &first, 1, flags);
      tl_end(b, kernel);
    };
  };
  Program program;
  ASSERT_EQ(made(context, &program, build(TL_SCAN_EXCLUSIVE | TL_SCAN_REVERSE, TL_I32)), "");
  EXPECT_EQ(text_of(program),
            text_of(parsed(
                context,
                "tl 1 program p dim n tensor W: u8[n, 8] tensor Y: i32[n, 8] fn f(l: i32, r: i32) -> i32 "
                "{ return l + r } kernel k grid (g: 1) { alloc x: fragment i32[4, 8] fill x, 2\n"
                "scan x -> x by f from 5 {axis=1, exclusive, reverse} }")));
  EXPECT_EQ(made(context, nullptr, build(4, TL_I32)).substr(0, 8), "bad_enum");
  EXPECT_EQ(made(context, nullptr, build(0, TL_I64)),
            "dtype_mismatch: value 1 of the first group is i64, the source x[4, 8] is i32");
}

TEST(WrittenForms, BoxesTakeExtents) {
  const Context context = make_context();
  const auto build = [](int64_t rank, bool both) {
    return [=](tl_builder* b, tl_buffer w, tl_buffer y, tl_expr) {
      tl_expr g;
      const tl_scope kernel = kernel_of(b, &g);
      const int64_t shape[] = {2, 4, 8};
      const tl_buffer x =
          tl_alloc(b, "x", TL_SCOPE_FRAGMENT, TL_I32, static_cast<uint32_t>(rank), shape + 3 - rank);
      const tl_expr at[] = {g, tl_index(b, 0)}, first[] = {at[1], at[1], at[1]};
      const tl_region box = tl_region_at(b, y, 2, at), tile = tl_whole(b, x);
      tl_fill(b, tile, tl_const_i64(b, TL_I32, 2));
      tl_copy(b, both ? tl_region_at(b, x, static_cast<uint32_t>(rank), first) : tile, box);
      tl_atomic(b, tile, box, TL_ATOMIC_ADD);
      tl_fill(b, tl_region_at(b, w, 2, at), tl_const_i64(b, TL_U8, 1));
      tl_end(b, kernel);
    };
  };
  const auto text = [&](const char* x, const char* copy) {
    return std::string(
               "tl 1 program p dim n tensor W: u8[n, 8] tensor Y: i32[n, 8] kernel k grid (g: 1) { "
               "alloc x: fragment i32[") +
           x + "] fill x, 2\n" + copy + "\natomic x -> Y[g, 0] fill W[g, 0], 1 }";
  };
  Program program;
  for (const auto& [rank, both, written] : {std::tuple{2, false, text("4, 8", "copy x -> Y[g, 0]")},
                                            {1, false, text("8", "copy x -> Y[g, 0]")},
                                            {2, true, text("4, 8", "copy x[0, 0] -> Y[g, 0]")}}) {
    ASSERT_EQ(made(context, &program, build(rank, both)), "");
    EXPECT_EQ(text_of(program), text_of(parsed(context, written.c_str())));
    tl_blob* source = nullptr;
    ASSERT_EQ(tl_program_emit_c(program.get(), &source, nullptr), TL_OK);
    const Blob owned(source);
    EXPECT_NE(std::string(tl_blob_data(source)).find("tl_atomic(t, WHOLE(x), AT(Y, 2, "), std::string::npos)
        << tl_blob_data(source);
  }
  EXPECT_EQ(made(context, nullptr, build(3, false)),
            "shape_mismatch: 'Y' has 2 indices and no extents; those of the other side, 2 x 4 x 8, are 3");
}

TEST(WrittenForms, ScansThatCarry) {
  const Context context = make_context();
  const int64_t shape[] = {4, 8}, rows[] = {4};
  const auto build = [&](tl_dtype of_carried, bool by) {
    return [=, &shape, &rows](tl_builder* b, tl_buffer, tl_buffer, tl_expr) {
      tl_expr g;
      const tl_scope kernel = kernel_of(b, &g);
      const tl_buffer x = tl_alloc(b, "x", TL_SCOPE_FRAGMENT, TL_I32, 2, shape);
      const tl_buffer c = tl_alloc(b, "c", TL_SCOPE_FRAGMENT, of_carried, 1, rows);
      const tl_region r = tl_whole(b, x), kept = tl_whole(b, c);
      tl_fill(b, r, tl_const_i64(b, TL_I32, 2));
      tl_fill(b, kept, tl_const_i64(b, of_carried, 7));
      if (by) {
        const tl_expr left = tl_operand(b, TL_I32, "l"), right = tl_operand(b, TL_I32, "r");
        const tl_expr sum = tl_binary(b, TL_ADD, left, right);
        tl_scan_by_carry(b, 1, &r, &r, &kept, &left, &right, &sum, 1, TL_SCAN_REVERSE);
      } else {
        tl_scan_carry(b, r, r, kept, TL_REDUCE_PRODUCT, 1, TL_SCAN_EXCLUSIVE);
      }
      tl_end(b, kernel);
    };
  };
  const auto text = [&](const char* statement) {
    return "tl 1 program p dim n tensor W: u8[n, 8] tensor Y: i32[n, 8] fn f(l: i32, r: i32) -> i32 { return "
           "l + r } kernel k grid (g: 1) { alloc x: fragment i32[4, 8] alloc c: fragment i32[4] fill x, 2 "
           "fill c, 7\n" +
           std::string(statement) + " }";
  };
  Program program;
  ASSERT_EQ(made(context, &program, build(TL_I32, false)), "");
  EXPECT_EQ(text_of(program),
            text_of(parsed(context, text("scan x -> x carry c {kind=product, axis=1, exclusive}").c_str())));
  ASSERT_EQ(made(context, &program, build(TL_I32, true)), "");
  EXPECT_EQ(text_of(program),
            text_of(parsed(context, text("scan x -> x by f carry c {axis=1, reverse}").c_str())));
  for (const bool by : {false, true})
    EXPECT_EQ(made(context, nullptr, build(TL_I64, by)),
              "dtype_mismatch: what scan carries, c[4], is i64, its result x[4, 8] is i32");
}

TEST(WrittenForms, BoolsAreOrdered) {  // in both forms of a program
  const Context context = make_context();
  Program program;
  ASSERT_EQ(made(context, &program,
                 [](tl_builder* b, tl_buffer, tl_buffer, tl_expr n) {
                   tl_expr g;
                   const tl_scope kernel = kernel_of(b, &g);
                   const tl_expr none = tl_binary(b, TL_EQ, n, g), some = tl_binary(b, TL_NE, n, g);
                   tl_assert(b, tl_binary(b, TL_LT, none, some), "some");
                   tl_end(b, kernel);
                 }),
            "");
  EXPECT_NE(text_of(program).find("(n == g) < (n != g)"), std::string::npos) << text_of(program);
}

TEST(EmitC, HandsOutABlobOrSaysWhy) {
  const Context context = make_context();
  const Program program =
      parsed(context, "tl 1 program copies tensor X: f32[8] kernel k grid (b: 1) { fill X[0 :+ 8], 1 }");
  tl_blob* blob = nullptr;
  tl_error* error = nullptr;
  ASSERT_EQ(tl_program_emit_c(program.get(), &blob, &error), TL_OK);
  const Blob owned(blob);
  EXPECT_EQ(error, nullptr);
  const std::string source(tl_blob_data(blob), tl_blob_size(blob));
  EXPECT_NE(source.find("tl_status build_copies(const tl_context *context, tl_program **out_program, "
                        "tl_error **out_error) {\n"),
            std::string::npos)
      << source;
  EXPECT_NE(source.find("    tl_fill(t, WHOLE(X), REAL(TL_F32, 1.0));\n"), std::string::npos) << source;
  for (size_t begin = 0, end; begin < source.size(); begin = end + 1) {
    end = source.find('\n', begin);
    EXPECT_LE(end - begin, 110u) << source.substr(begin, end - begin);
  }
  blob = owned.get();
  EXPECT_EQ(tl_program_emit_c(nullptr, &blob, &error), TL_INVALID_ARGUMENT);
  EXPECT_EQ(blob, nullptr);
  EXPECT_STREQ(first(Failure(error)).code, "null_argument");
  EXPECT_EQ(tl_program_emit_c(program.get(), nullptr, nullptr), TL_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tilegen::test
