// What a caller can get wrong is answered by a status and a diagnostic, never by a crash.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "programs.h"
#include "scope.h"

namespace tilegen::test {
namespace {

std::string code_of(const Builder& b) {
  Failure failure;
  EXPECT_NE(finish(b, nullptr, &failure), TL_OK);
  return failure ? first(failure).code : "";
}

TEST(Misuse, NullIsAcceptedByEveryReleaseAndAccessor) {
  tl_context_retain(nullptr), tl_context_release(nullptr);
  tl_error_retain(nullptr), tl_error_release(nullptr);
  tl_blob_retain(nullptr), tl_blob_release(nullptr);
  tl_target_retain(nullptr), tl_target_release(nullptr);
  tl_program_retain(nullptr), tl_program_release(nullptr);
  tl_artifact_retain(nullptr), tl_artifact_release(nullptr);
  tl_kernel_retain(nullptr), tl_kernel_release(nullptr);
  tl_options_destroy(nullptr), tl_builder_destroy(nullptr);
  EXPECT_EQ(tl_error_status(nullptr), TL_OK);
  EXPECT_STREQ(tl_error_message(nullptr), "");
  EXPECT_EQ(tl_error_count(nullptr), 0u);
  EXPECT_STREQ(tl_blob_data(nullptr), "");
  EXPECT_EQ(tl_blob_size(nullptr), 0u);
  EXPECT_STREQ(tl_target_name(nullptr), "");
  EXPECT_STREQ(tl_program_name(nullptr), "");
  EXPECT_STREQ(tl_program_hash(nullptr), "");
  EXPECT_EQ(tl_program_param_count(nullptr), 0u);
  EXPECT_EQ(tl_artifact_stage_count(nullptr), 0u);
  EXPECT_EQ(tl_artifact_warning_count(nullptr), 0u);
  EXPECT_EQ(tl_artifact_specialisation_count(nullptr), 0u);
}

TEST(Misuse, NullArgumentsAreReported) {
  const Context context = make_context();
  const auto expect_null = [](tl_status status) { EXPECT_EQ(status, TL_INVALID_ARGUMENT); };
  tl_builder* builder = nullptr;
  tl_program* program = nullptr;
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_kernel* kernel = nullptr;
  tl_blob* blob = nullptr;
  int64_t number = 0;
  const char* text = nullptr;
  size_t size = 0;
  double ms = 0;
  expect_null(tl_context_create(nullptr, nullptr));
  expect_null(tl_context_set_log(nullptr, TL_LOG_INFO, nullptr, nullptr, nullptr, nullptr));
  expect_null(tl_context_set_dump(nullptr, nullptr, nullptr, nullptr, nullptr));
  expect_null(tl_context_set_cancel(nullptr, nullptr, nullptr, nullptr, nullptr));
  expect_null(tl_context_set_timeout(nullptr, 0, nullptr));
  expect_null(tl_context_set_limit(context.get(), nullptr, 1, nullptr));
  expect_null(tl_context_get_limit(context.get(), "rank", nullptr, nullptr));
  expect_null(tl_options_create(nullptr, nullptr));
  expect_null(tl_options_set_bool(nullptr, "verify", 1, nullptr));
  expect_null(tl_target_parse(nullptr, &target, nullptr));
  expect_null(tl_target_parse("host", nullptr, nullptr));
  expect_null(tl_target_best(nullptr, &target, nullptr));
  expect_null(tl_target_to_json(nullptr, &blob, nullptr));
  expect_null(tl_target_get_i64(nullptr, "warp", &number, nullptr));
  expect_null(tl_builder_create(nullptr, "p", &builder, nullptr));
  expect_null(tl_builder_create(context.get(), nullptr, &builder, nullptr));
  expect_null(tl_builder_finish(nullptr, &program, nullptr));
  expect_null(tl_program_parse(context.get(), nullptr, 0, nullptr, &program, nullptr));
  expect_null(tl_program_print(nullptr, &blob, nullptr));
  expect_null(tl_program_emit_c(nullptr, &blob, nullptr));
  expect_null(tl_text_format(nullptr, "tl", 2, nullptr, &blob, nullptr));
  expect_null(tl_bitcode_text(nullptr, 0, &blob, nullptr));
  expect_null(tl_bitcode_text("BC", 2, nullptr, nullptr));
  expect_null(tl_interpret(nullptr, nullptr, 0, nullptr));
  expect_null(tl_interpret_launch(nullptr, nullptr, nullptr, 0, nullptr));
  expect_null(tl_compile(context.get(), nullptr, nullptr, nullptr, &artifact, nullptr));
  expect_null(tl_artifact_section(nullptr, TL_SECTION_TILE_IR, &text, &size, nullptr));
  expect_null(tl_artifact_stage(nullptr, 0, &text, &ms));
  expect_null(tl_artifact_warning(nullptr, 0, nullptr, nullptr));
  expect_null(tl_artifact_specialisation(nullptr, 0, &blob, &artifact, nullptr));
  expect_null(tl_kernel_load(context.get(), nullptr, 0, &kernel, nullptr));
  expect_null(tl_kernel_launch(nullptr, nullptr, nullptr, 0, nullptr));
  expect_null(tl_kernel_launch_dlpack(nullptr, nullptr, nullptr, 0, nullptr));
  expect_null(tl_error_diagnostic(nullptr, 0, nullptr));
  expect_null(tl_option_describe(0, nullptr));
  expect_null(tl_program_param(nullptr, 0, nullptr));
  EXPECT_EQ(tl_builder_status(nullptr), TL_INVALID_HANDLE);
}

TEST(Misuse, NullBuilderMakesNothing) {
  tl_expr e{7};
  EXPECT_EQ(tl_dim(nullptr, "n").bits, 0u);
  EXPECT_EQ(tl_index(nullptr, 1).bits, 0u);
  EXPECT_EQ(tl_begin_loop(nullptr, TL_LOOP_SERIAL, e, e, 0, "i", &e).bits, 0u);
  EXPECT_EQ(e.bits, 0u);  // outputs are defined all the same
  tl_end(nullptr, tl_scope{1});
  tl_copy(nullptr, tl_region{1}, tl_region{1});
}

TEST(Misuse, ValueOfAnotherBuilderIsRefused) {
  const Context context = make_context();
  const Builder one = make_builder(context), other = make_builder(context);
  const tl_expr foreign = tl_dim(one.get(), "n");
  tl_unary(other.get(), TL_NEG, foreign);
  EXPECT_EQ(tl_builder_status(other.get()), TL_INVALID_HANDLE);
  EXPECT_EQ(code_of(other), "stale_handle");
  EXPECT_EQ(tl_builder_status(one.get()), TL_OK);
}

TEST(Misuse, ValueOfAnotherKindIsRefused) {
  const Context context = make_context();
  const Builder b = make_builder(context);
  const tl_expr n = tl_dim(b.get(), "n");
  tl_copy(b.get(), tl_region{n.bits}, tl_region{n.bits});
  EXPECT_EQ(code_of(b), "stale_handle");
}

TEST(Misuse, InventedValuesAreRefused) {
  const Context context = make_context();
  const uint64_t inventions[] = {0, 1, 0xffffffffu, uint64_t{1} << 32, ~uint64_t{0}, 0x0123456789abcdefu};
  for (uint64_t bits : inventions) {
    const Builder b = make_builder(context);
    const uint64_t serial = tl_index(b.get(), 1).bits >> 40 << 40;
    for (uint64_t kind = 0; kind < 8; ++kind) {
      for (uint64_t value : {bits, serial | kind << 32 | 0xffffffu, serial | uint64_t{0xff} << 32}) {
        const Builder fresh = make_builder(context);
        tl_unary(fresh.get(), TL_NEG, tl_expr{value});
        EXPECT_EQ(tl_builder_status(fresh.get()), TL_INVALID_HANDLE);
      }
    }
    tl_end(b.get(), tl_scope{bits});
    EXPECT_EQ(tl_builder_status(b.get()), TL_INVALID_HANDLE) << bits;
  }
}

TEST(Misuse, UnmatchedScopesAreReported) {
  const Context context = make_context();
  tl_expr block, i, j;
  {
    const Builder b = make_builder(context);
    const tl_expr one = tl_index(b.get(), 1);
    const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
    tl_begin_loop(b.get(), TL_LOOP_SERIAL, tl_index(b.get(), 0), one, 0, "i", &i);
    tl_end(b.get(), kernel);  // the loop is still open
    EXPECT_EQ(code_of(b), "scope_mismatch");
  }
  {
    const Builder b = make_builder(context);
    const tl_expr one = tl_index(b.get(), 1);
    const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
    tl_begin_else(b.get(), kernel);
    EXPECT_EQ(code_of(b), "scope_mismatch");
  }
  {
    const Builder b = make_builder(context);
    const tl_expr one = tl_index(b.get(), 1);
    const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
    const tl_scope loop = tl_begin_loop(b.get(), TL_LOOP_SERIAL, tl_index(b.get(), 0), one, 0, "j", &j);
    tl_end(b.get(), loop);
    tl_end(b.get(), loop);
    EXPECT_EQ(code_of(b), "scope_mismatch");
    (void)kernel;
  }
  {
    const Builder b = make_builder(context);
    const tl_expr one = tl_index(b.get(), 1);
    tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
    EXPECT_EQ(code_of(b), "scope_mismatch");  // never ended
  }
}

// Every call after a mistake is harmless and makes nothing.
TEST(Misuse, CallsAfterAnErrorDoNothing) {
  const Context context = make_context();
  const Builder b = make_builder(context);
  tl_dim(b.get(), "not a name");
  EXPECT_EQ(tl_builder_status(b.get()), TL_INVALID_ARGUMENT);
  build_gemm(b.get());
  tl_expr e{0};
  tl_expr out[3] = {{1}, {1}, {1}};
  EXPECT_EQ(tl_scalar(b.get(), "s", TL_F32).bits, 0u);
  EXPECT_EQ(tl_cast(b.get(), 77, e).bits, 0u);
  EXPECT_EQ(tl_select(b.get(), e, e, e).bits, 0u);
  EXPECT_EQ(tl_load(b.get(), tl_buffer{3}, 2, nullptr).bits, 0u);
  EXPECT_EQ(tl_expr_dtype(b.get(), e), 0u);
  EXPECT_EQ(tl_begin_kernel(b.get(), nullptr, 3, nullptr, -1, nullptr, out).bits, 0u);
  EXPECT_EQ(out[0].bits + out[1].bits + out[2].bits, 0u);
  EXPECT_EQ(tl_begin_parallel(b.get(), 2, nullptr, nullptr, nullptr).bits, 0u);
  EXPECT_EQ(tl_begin_if(b.get(), e).bits, 0u);
  tl_begin_else(b.get(), tl_scope{0});
  EXPECT_EQ(tl_alloc(b.get(), nullptr, 99, 99, 99, nullptr).bits, 0u);
  tl_reduce(b.get(), tl_region{0}, tl_region{0}, 0, 9, 0xff);
  tl_cumsum(b.get(), tl_region{0}, tl_region{0}, 9, 0xff);
  tl_scan(b.get(), tl_region{0}, tl_region{0}, 77, 9, 0xff);
  tl_arg_reduce(b.get(), tl_region{0}, tl_region{0}, tl_region{0}, 77, 9);
  tl_sort(b.get(), tl_region{0}, tl_region{0}, tl_region{0}, 9, 0xff);
  tl_top_k(b.get(), tl_region{0}, tl_region{0}, tl_region{0}, 9, 0xff);
  tl_gemm_sparse(b.get(), tl_region{0}, tl_region{0}, tl_region{0}, tl_region{0}, 0xff, 9);
  tl_compress(b.get(), tl_region{0}, tl_region{0}, tl_region{0});
  EXPECT_EQ(tl_operand(b.get(), 77, "no name").bits, 0u);
  tl_function(b.get(), nullptr, 9, nullptr, 9, nullptr, 9, nullptr, nullptr);
  tl_matrix_atom(b.get(), nullptr, nullptr, nullptr, nullptr, 9, nullptr, e, 99, nullptr);
  EXPECT_EQ(tl_call(b.get(), nullptr, 9, nullptr, 9).bits, 0u);
  tl_reduce_by(b.get(), 9, nullptr, nullptr, nullptr, nullptr, nullptr, 9, 0xff);
  tl_scan_by(b.get(), 1, nullptr, nullptr, nullptr, nullptr, nullptr, 9, 0xff);
  tl_scan_by_from(b.get(), 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 9, 0xff);
  EXPECT_EQ(tl_region_at(b.get(), tl_buffer{0}, 99, nullptr).bits, 0u);
  tl_scan_carry(b.get(), tl_region{0}, tl_region{0}, tl_region{0}, 77, 9, 0xff);
  tl_scan_by_carry(b.get(), 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 9, 0xff);
  tl_tensor_codes(b.get(), tl_buffer{0}, 77);
  EXPECT_EQ(tl_begin_counted_loop(b.get(), 77, e, e, e, -1, "no name", nullptr).bits, 0u);
  tl_fetch_atomic_to(b.get(), tl_buffer{0}, 1, nullptr, e, 9, tl_buffer{0}, 9, nullptr);
  tl_compare_exchange_to(b.get(), tl_buffer{0}, 1, nullptr, e, e, tl_buffer{0}, 9, nullptr);
  tl_store(b.get(), tl_buffer{0}, 1, nullptr, e);
  EXPECT_EQ(tl_view_reshape(b.get(), tl_buffer{0}, 9, nullptr).bits, 0u);
  EXPECT_EQ(tl_view_transpose(b.get(), tl_buffer{0}, 9, nullptr).bits, 0u);
  EXPECT_EQ(tl_view_slice(b.get(), tl_region{0}).bits, 0u);
  EXPECT_EQ(tl_view_reinterpret(b.get(), tl_buffer{0}, 99).bits, 0u);
  EXPECT_EQ(tl_view_reshape_to(b.get(), tl_buffer{0}, 9, nullptr).bits, 0u);
  EXPECT_EQ(tl_view_box(b.get(), tl_buffer{0}, 1, nullptr, nullptr).bits, 0u);
  tl_atomic_order(b.get(), 9);
  EXPECT_EQ(tl_bitcast(b.get(), 99, e).bits, 0u);
  EXPECT_EQ(tl_fetch_atomic(b.get(), tl_buffer{0}, 1, nullptr, e, 9, "no name").bits, 0u);
  EXPECT_EQ(tl_compare_exchange(b.get(), tl_buffer{0}, 1, nullptr, e, e, nullptr).bits, 0u);
  EXPECT_EQ(tl_uniform(b.get(), e).bits, 0u);
  tl_dim_fact(b.get(), e, -1, -2, -3);
  Failure failure;
  EXPECT_EQ(finish(b, nullptr, &failure), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_error_count(failure.get()), 1u);
  EXPECT_STREQ(first(failure).code, "bad_name");
  EXPECT_STREQ(first(failure).op, "tl_dim");
}

TEST(Misuse, FinishedBuilderIsSpent) {
  const Context context = make_context();
  const Builder b = make_builder(context);
  build_gemm(b.get());
  Program program;
  ASSERT_EQ(finish(b, &program), TL_OK);
  EXPECT_EQ(tl_index(b.get(), 3).bits, 0u);
  EXPECT_EQ(finish(b), TL_INVALID_PROGRAM);
  EXPECT_STREQ(tl_program_name(program.get()), "p");
}

TEST(Misuse, ViewsOfWhatHasNoneAreReported) {
  const Context context = make_context();
  const auto expect_code = [&](const char* code, auto&& call) {
    const Builder b = make_builder(context);
    const tl_expr n = tl_dim(b.get(), "n");
    const tl_buffer tensor = tl_tensor(b.get(), "X", TL_F32, 1, &n, nullptr, 0);
    const tl_expr one = tl_index(b.get(), 1);
    tl_expr block;
    tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
    const int64_t shape[] = {8, 4};
    const tl_buffer tile = tl_alloc(b.get(), "t", TL_SCOPE_SHARED, TL_F32, 2, shape);
    ASSERT_EQ(tl_builder_status(b.get()), TL_OK);
    call(b.get(), tensor, tile);
    EXPECT_EQ(code_of(b), code);
  };
  const int64_t twice[] = {0, 0}, less[] = {8, 3}, none[] = {0, 4}, negative[] = {-8, -4}, fits[] = {4, 8};
  using B = tl_builder*;
  using T = tl_buffer;
  expect_code("shape_mismatch", [&](B b, T x, T) { tl_view_reshape(b, x, 2, fits); });
  expect_code("shape_mismatch", [&](B b, T x, T) {
    const tl_expr extents[] = {tl_index(b, 2), tl_index(b, 4)};
    tl_view_reshape_to(b, x, 2, extents);
  });
  expect_code("scope_not_allowed", [&](B b, T x, T t) {
    const tl_expr at[] = {tl_index(b, 0), tl_index(b, 0)};
    const tl_expr read = tl_cast(b, TL_I64, tl_load(b, t, 2, at));
    tl_view_box(b, x, 1, at, &read);
  });
  expect_code("dtype_mismatch", [&](B b, T x, T) {
    const tl_expr at = tl_index(b, 0), half = tl_const_f64(b, TL_F32, 0.5);
    tl_view_box(b, x, 1, &at, &half);
  });
  expect_code("rank_mismatch", [&](B b, T x, T) {
    const tl_expr at[] = {tl_index(b, 0), tl_index(b, 0)};
    tl_view_box(b, x, 2, at, at);
  });
  expect_code("misplaced_statement", [&](B b, T, T t) {
    tl_atomic_order(b, TL_ORDER_RELEASE);
    tl_fill(b, tl_whole(b, t), tl_const_f64(b, TL_F32, 0));
  });
  expect_code("shape_mismatch", [&](B b, T, T t) { tl_view_reshape(b, t, 2, less); });
  expect_code("bad_shape", [&](B b, T, T t) { tl_view_reshape(b, t, 2, none); });
  expect_code("bad_shape", [&](B b, T, T t) { tl_view_reshape(b, t, 2, negative); });
  expect_code("rank_mismatch", [&](B b, T, T t) { tl_view_reshape(b, t, 0, fits); });
  expect_code("null_argument", [&](B b, T, T t) { tl_view_reshape(b, t, 2, nullptr); });
  expect_code("bad_attribute", [&](B b, T, T t) { tl_view_transpose(b, t, 2, twice); });
  expect_code("bad_attribute", [&](B b, T, T t) { tl_view_transpose(b, t, 1, twice); });
  expect_code("dtype_mismatch", [&](B b, T, T t) { tl_view_reinterpret(b, t, TL_BOOL); });
  expect_code("bad_enum", [&](B b, T, T t) { tl_view_reinterpret(b, t, 99); });
  expect_code("shape_mismatch", [&](B b, T x, T) { tl_view_reinterpret(b, x, TL_I64); });
  expect_code("bad_enum", [&](B b, T, T) { tl_cast_by(b, TL_I32, tl_index(b, 1), 0); });
  expect_code("bad_enum", [&](B b, T, T) { tl_cast_by(b, TL_I32, tl_index(b, 1), 5); });
  expect_code("bad_enum", [&](B b, T, T) { tl_cast_by(b, TL_I32, tl_index(b, 1), 32); });
  expect_code("dtype_mismatch", [&](B b, T, T) { tl_cast_by(b, TL_BOOL, tl_index(b, 1), TL_CAST_UP); });
  expect_code("dtype_mismatch", [&](B b, T, T) { tl_cast_by(b, TL_F32, tl_index(b, 1), TL_CAST_DOWN); });
  expect_code("unknown_name", [&](B b, T, T) {
    const tl_expr x = tl_const_f64(b, TL_F32, 1);
    tl_call(b, "fast_none", 1, &x, 0);
  });
  expect_code("dtype_mismatch", [&](B b, T, T) {
    const tl_expr x = tl_index(b, 1);
    tl_call(b, "fast_exp", 1, &x, 0);
  });
  expect_code("rank_mismatch", [&](B b, T, T) {
    const tl_expr x = tl_const_f64(b, TL_F32, 1);
    tl_call(b, "fast_div", 1, &x, 0);
  });
  expect_code("dtype_mismatch", [&](B b, T, T) { tl_bitcast(b, TL_F32, tl_index(b, 1)); });
  expect_code("dtype_mismatch", [&](B b, T, T) { tl_bitcast(b, TL_U8, tl_const_i64(b, TL_BOOL, 1)); });
  expect_code("bad_enum", [&](B b, T, T) { tl_bitcast(b, 0, tl_index(b, 1)); });
  expect_code("index_out_of_bounds", [&](B b, T, T t) {
    const tl_expr at[] = {tl_index(b, 5), tl_index(b, 0)};
    tl_view_slice(b, tl_region_of(b, t, 2, at, std::array<int64_t, 2>{4, 4}.data()));
  });
  expect_code("misplaced_statement", [&](B b, T, T t) {
    tl_expr i;
    const int64_t extent = 4;
    tl_begin_parallel(b, 1, &extent, nullptr, &i);
    tl_view_reshape(b, t, 2, fits);
  });
}

TEST(Misuse, UnknownEnumsAreReported) {
  const Context context = make_context();
  const auto expect_bad_enum = [&](auto&& call) {
    const Builder b = make_builder(context);
    const tl_expr one = tl_index(b.get(), 1);
    tl_expr block;
    tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
    const int64_t shape[] = {8, 8};
    const tl_region whole = tl_whole(b.get(), tl_alloc(b.get(), "t", TL_SCOPE_SHARED, TL_F32, 2, shape));
    ASSERT_EQ(tl_builder_status(b.get()), TL_OK);
    call(b.get(), one, whole);
    EXPECT_EQ(code_of(b), "bad_enum");
  };
  for (uint32_t bad : {0u, 24u, 256u + TL_F32, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr e, tl_region) { tl_cast(b, bad, e); });
  for (uint32_t bad : {0u, 35u, 100u + TL_ADD, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr e, tl_region) { tl_unary(b, bad, e); });
  for (uint32_t bad : {0u, 1u, 100u, 127u, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr e, tl_region) { tl_binary(b, bad, e, e); });
  for (uint32_t bad : {0u, 200u, 203u, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr e, tl_region) { tl_ternary(b, bad, e, e, e); });
  for (uint32_t bad : {0u, 5u, 0xffffffffu})
    expect_bad_enum(
        [&](tl_builder* b, tl_expr e, tl_region) { tl_begin_loop(b, bad, e, e, 0, nullptr, &e); });
  for (uint32_t bad : {0u, 5u, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region) {
      const int64_t shape[] = {8};
      tl_alloc(b, "u", bad, TL_F32, 1, shape);
    });
  for (uint32_t bad : {4u, 0xffffffffu}) {
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_gemm(b, r, r, r, 0, bad); });
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_gemm_sparse(b, r, r, r, r, 0, bad); });
  }
  expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_gemm_sparse(b, r, r, r, r, 8, 0); });
  expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_gemm(b, r, r, r, 32, 0); });
  for (uint32_t bad : {0u, 5u, 77u})
    expect_bad_enum([&](tl_builder* b, tl_expr e, tl_region) { tl_shuffle(b, bad, e, e); });
  for (uint32_t bad : {0u, 6u, 77u})
    expect_bad_enum([&](tl_builder* b, tl_expr e, tl_region) { tl_vote(b, bad, e); });
  for (uint32_t bad : {0u, 8u, 77u})
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region) { tl_id(b, bad); });
  for (uint32_t bad : {0u, 10u, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_reduce(b, r, r, bad, 0, 0); });
  for (uint32_t bad : {0u, 4u, 6u, 0xffffffffu}) {
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_scan(b, r, r, bad, 0, 0); });
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_scan_carry(b, r, r, r, bad, 0, 0); });
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_arg_reduce(b, r, r, r, bad, 0); });
  }
  expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_sort(b, r, r, tl_region{0}, 0, 2); });
  expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_top_k(b, r, r, tl_region{0}, 0, 2); });
  expect_bad_enum([&](tl_builder* b, tl_expr, tl_region) { tl_operand(b, 77, "x"); });
  for (uint32_t bad : {0u, 7u, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region) {
      const tl_expr x = tl_operand(b, TL_F32, "x");
      const char* text = "abs.f32 $0, $1;";
      tl_function(b, "f", 1, &x, 1, &x, 1, &bad, &text);
    });
  for (uint32_t bad : {0u, 7u, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region) {
      const int64_t shape[] = {8, 8, 4};
      const tl_dtype types[] = {TL_F64, TL_F64, TL_F64};
      const char* const layouts[] = {"(i, k) -> i * 4 + k", "(k, j) -> j * 4 + k", "(i, j) -> i * 8 + j"};
      tl_matrix_atom(b, "f", shape, types, layouts, 0, nullptr, tl_expr{0}, bad, "mma.sync");
    });
  expect_bad_enum(
      [&](tl_builder* b, tl_expr e, tl_region r) { tl_reduce_by(b, 1, &r, &r, &e, &e, &e, 0, 2); });
  expect_bad_enum([&](tl_builder* b, tl_expr e, tl_region r) { tl_scan_by(b, 1, &r, &r, &e, &e, &e, 0, 2); });
  expect_bad_enum(
      [&](tl_builder* b, tl_expr e, tl_region r) { tl_scan_by_from(b, 1, &r, &r, &e, &e, &e, &e, 0, 4); });
  expect_bad_enum(
      [&](tl_builder* b, tl_expr e, tl_region r) { tl_scan_by_carry(b, 1, &r, &r, &r, &e, &e, &e, 0, 4); });
  for (uint32_t bad : {0u, 5u, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr e, tl_region) {
      tl_begin_counted_loop(b, bad, e, e, tl_expr{0}, 0, nullptr, &e);
    });
  for (uint32_t bad : {0u, 8u, 0xffffffffu}) {
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_atomic(b, r, r, bad); });
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region r) { tl_atomic_fetch(b, r, r, r, bad); });
  }
  for (uint32_t bad : {0u, 5u, 0xffffffffu})
    expect_bad_enum([&](tl_builder* b, tl_expr, tl_region) { tl_atomic_order(b, bad); });
  EXPECT_EQ(tl_context_set_log(context.get(), 6, nullptr, nullptr, nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_STREQ(tl_dtype_name(0), "");
  EXPECT_EQ(tl_dtype_bits(256 + TL_F32), 0u);
  EXPECT_STREQ(tl_status_name(12345), "unknown");
}

TEST(Misuse, StructSizes) {
  tl_option_info info{};
  EXPECT_EQ(tl_option_describe(0, &info), TL_INVALID_ARGUMENT);  // struct_size not set
  info.struct_size = sizeof info - 1;
  EXPECT_EQ(tl_option_describe(0, &info), TL_INVALID_ARGUMENT);
  EXPECT_EQ(info.name, nullptr);
  info.struct_size = 0xffffffffu;
  EXPECT_EQ(tl_option_describe(0, &info), TL_INVALID_ARGUMENT);

  // A caller from the future: what we do not know is zeroed, nothing after its struct is touched.
  struct Grown {
    tl_option_info known;
    uint64_t future;
  };
  Grown grown[2];
  std::memset(grown, 0xee, sizeof grown);
  grown[0].known.struct_size = sizeof(Grown);
  EXPECT_EQ(tl_option_describe(0, &grown[0].known), TL_OK);
  EXPECT_EQ(grown[0].known.struct_size, sizeof(Grown));
  EXPECT_EQ(grown[0].future, 0u);
  EXPECT_EQ(grown[1].future, 0xeeeeeeeeeeeeeeeeu);
}

TEST(Misuse, HugeRanksAreRefusedBeforeTheyAreRead) {
  const Context context = make_context();
  const Builder b = make_builder(context);
  const tl_expr one = tl_index(b.get(), 1);
  EXPECT_EQ(tl_tensor(b.get(), "A", TL_F32, 0x80000000u, &one, nullptr, 0).bits, 0u);
  EXPECT_EQ(code_of(b), "limit_nesting");
}

TEST(Misuse, IndicesBehindTheEnd) {
  tl_option_info info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(tl_option_describe(tl_option_count(), &info), TL_INVALID_ARGUMENT);
  EXPECT_STREQ(tl_target_name_at(tl_target_count()), "");
  tl_device_info device{};
  device.struct_size = sizeof device;
  EXPECT_EQ(tl_device_describe(tl_device_count(), &device), TL_DRIVER);
}

}  // namespace
}  // namespace tilegen::test
