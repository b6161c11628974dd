// The 8-bit floats and tf32 through the interface: DLPack's codes, casts, what is refused, the flag of
// tl_gemm.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "../../src/capi/dlpack.h"
#include "scope.h"

namespace tilegen::test {
namespace {

constexpr uint8_t kE4m3fn = 10, kE5m2 = 12;  // DLPack 1.1

Kernel load(const Context& context, const Program& program, const char* name) {
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_target_parse(name, &target, nullptr), TL_OK);
  EXPECT_EQ(tl_compile(context.get(), program.get(), target, nullptr, &artifact, nullptr), TL_OK);
  EXPECT_EQ(tl_kernel_load(context.get(), artifact, TL_DEVICE_ANY, &kernel, nullptr), TL_OK);
  tl_target_release(target);
  tl_artifact_release(artifact);
  return Kernel(kernel);
}

DLTensor tensor(void* data, uint8_t code, uint8_t bits, int64_t* shape) {
  return {data, {1, 0}, 1, {code, bits, 1}, shape, nullptr, 0};
}

TEST(ByteFloats, RowsOfTheTypeTable) {
  EXPECT_EQ(tl_dtype_bits(TL_E4M3), 8u);
  EXPECT_EQ(tl_dtype_bits(TL_E5M2), 8u);
  EXPECT_STREQ(tl_dtype_name(TL_E4M3), "e4m3");
  EXPECT_STREQ(tl_dtype_name(TL_E5M2), "e5m2");
  EXPECT_STREQ(tl_dtype_name(TL_E4M3FNUZ), "e4m3fnuz");
  EXPECT_STREQ(tl_dtype_name(TL_U64), "u64");
  EXPECT_STREQ(tl_dtype_name(TL_E8M0), "e8m0");
  EXPECT_EQ(tl_dtype_bits(TL_E2M1), 4u);
  EXPECT_EQ(tl_dtype_bits(TL_E8M0 + 1), 0u);
}

TEST(ByteFloats, TensorsComeWithDlpacksCodes) {
  const Context context = make_context();
  const Program program =
      parsed(context,
             "tl 1 program p tensor X: f32[6] readonly tensor Y: e4m3[6] tensor Z: e5m2[6] "
             "kernel k grid (b: 1) { parallel i in 6 { Y[i] = cast(e4m3, X[i]) "
             "Z[i] = cast(e5m2, X[i]) } }");
  for (const char* name : {"host", "sim:sm_80", "sim:sm_90"}) {
    SCOPED_TRACE(name);
    const Kernel kernel = load(context, program, name);
    float x[6] = {1.5F, -1000.0F, 1e9F, INFINITY, 0x1p-9F, NAN};
    uint8_t y[6] = {}, z[6] = {};
    int64_t shape[1] = {6};
    const DLTensor tx = tensor(x, 2, 32, shape);
    DLTensor ty = tensor(y, kE4m3fn, 8, shape);
    const DLTensor tz = tensor(z, kE5m2, 8, shape);
    const DLTensor* tensors[] = {&tx, &ty, &tz};
    ASSERT_EQ(tl_kernel_launch_dlpack(kernel.get(), nullptr, tensors, 3, nullptr), TL_OK);
    const uint8_t want_y[] = {0x3c, 0xfe, 0x7e, 0x7e, 0x01}, want_z[] = {0x3e, 0xe4, 0x7b, 0x7b, 0x18};
    EXPECT_EQ(std::memcmp(y, want_y, 5), 0);
    EXPECT_EQ(std::memcmp(z, want_z, 5), 0);
    EXPECT_EQ(y[5] & 0x7f, 0x7f);
    EXPECT_GT(z[5] & 0x7f, 0x7c);
    // Other 8-bit types are none of these: IEEE's e4m3, e4m3fnuz, u8; nor the right code of another size.
    for (const DLDataType wrong :
         {DLDataType{8, 8, 1}, {11, 8, 1}, {1, 8, 1}, {kE5m2, 8, 1}, {kE4m3fn, 16, 1}}) {
      ty.dtype = wrong;
      tl_error* error = nullptr;
      EXPECT_EQ(tl_kernel_launch_dlpack(kernel.get(), nullptr, tensors, 3, &error), TL_LAUNCH_ARGUMENT);
      EXPECT_STREQ(first(Failure(error)).code, "launch_dtype");
    }
  }
}

TEST(ByteFloats, ScalarsSaturateLikeCasts) {
  const Context context = make_context();
  const Program program = parsed(context,
                                 "tl 1 program p scalar s: e4m3 tensor Y: f32[1] kernel k grid (b: 1) { "
                                 "parallel i in 1 { Y[i] = cast(f32, s) } }");
  const Kernel kernel = load(context, program, "host");
  float y = 0;
  const double given = 1000;
  tl_arg args[2] = {{TL_ARG_F64, 0, 0}, {TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(&y)}};
  std::memcpy(&args[0].payload, &given, sizeof given);
  ASSERT_EQ(tl_kernel_launch(kernel.get(), nullptr, args, 2, nullptr), TL_OK);
  EXPECT_EQ(y, 448);
}

TEST(ByteFloats, AreNotComputedIn) {
  const Context context = make_context();
  for (const auto op : {0, 1, 2}) {
    const Builder b = make_builder(context);
    const tl_expr s = tl_scalar(b.get(), "s", op == 2 ? TL_E5M2 : TL_E4M3);
    if (op == 0) tl_unary(b.get(), TL_EXP, s);
    if (op == 1) tl_binary(b.get(), TL_ADD, s, s);
    if (op == 2) tl_binary(b.get(), TL_LT, s, s);
    EXPECT_EQ(tl_builder_status(b.get()), TL_INVALID_PROGRAM);
    Failure failure;
    EXPECT_NE(finish(b, nullptr, &failure), TL_OK);
    EXPECT_STREQ(first(failure).code, "dtype_mismatch");
    EXPECT_NE(std::string(first(failure).hint).find("f32"), std::string::npos);
  }
}

// A 4 x 4 product of one block.
tl_status product(const Builder& b, tl_dtype dtype, uint32_t flags, Program* program, Failure* failure) {
  const int64_t tile[2] = {4, 4};
  tl_buffer parameters[3], tiles[3];
  const tl_expr shape[2] = {tl_index(b.get(), 4), tl_index(b.get(), 4)};
  const tl_dtype types[3] = {dtype, dtype, TL_F32};
  const char* const names[3] = {"A", "B", "C"};
  const char* const parts[3] = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) parameters[i] = tl_tensor(b.get(), names[i], types[i], 2, shape, nullptr, 0);
  const tl_expr grid[1] = {tl_index(b.get(), 1)};
  tl_expr block[1];
  const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, grid, 0, nullptr, block);
  for (int i = 0; i < 3; ++i)
    tiles[i] = tl_alloc(b.get(), parts[i], i == 2 ? TL_SCOPE_FRAGMENT : TL_SCOPE_SHARED, types[i], 2, tile);
  for (int i = 0; i < 2; ++i) tl_copy(b.get(), tl_whole(b.get(), parameters[i]), tl_whole(b.get(), tiles[i]));
  tl_gemm(b.get(), tl_whole(b.get(), tiles[0]), tl_whole(b.get(), tiles[1]), tl_whole(b.get(), tiles[2]),
          flags, TL_POLICY_DEFAULT);
  tl_copy(b.get(), tl_whole(b.get(), tiles[2]), tl_whole(b.get(), parameters[2]));
  tl_end(b.get(), kernel);
  return finish(b, program, failure);
}

TEST(Gemm, Tf32IsAFlagOfSinglePrecision) {
  const Context context = make_context();
  Program program;
  Failure failure;
  ASSERT_EQ(product(make_builder(context), TL_F32, TL_GEMM_CLEAR | TL_GEMM_TF32, &program, &failure), TL_OK);
  tl_blob* text = nullptr;
  ASSERT_EQ(tl_program_print(program.get(), &text, nullptr), TL_OK);
  EXPECT_NE(std::string(static_cast<const char*>(tl_blob_data(text))).find("{clear, tf32}"),
            std::string::npos);
  tl_blob_release(text);
  float a[16] = {}, b[16] = {}, c[16] = {};
  a[0] = 1 + 0x1p-11F;
  b[0] = 1;
  const tl_arg args[3] = {{TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(a)},
                          {TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(b)},
                          {TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(c)}};
  ASSERT_EQ(tl_interpret(program.get(), args, 3, nullptr), TL_OK);
  EXPECT_EQ(c[0], 1 + 0x1p-10F);
  EXPECT_NE(product(make_builder(context), TL_F16, TL_GEMM_CLEAR | TL_GEMM_TF32, &program, &failure), TL_OK);
  EXPECT_STREQ(first(failure).code, "dtype_mismatch");
  EXPECT_EQ(product(make_builder(context), TL_E4M3, TL_GEMM_CLEAR, &program, &failure), TL_OK);
}

TEST(Gemm, PromoteIsAFlagOf8BitFloats) {
  const Context context = make_context();
  Program program;
  Failure failure;
  ASSERT_EQ(product(make_builder(context), TL_E5M2, TL_GEMM_CLEAR | TL_GEMM_PROMOTE, &program, &failure),
            TL_OK);
  tl_blob* text = nullptr;
  ASSERT_EQ(tl_program_print(program.get(), &text, nullptr), TL_OK);
  EXPECT_NE(std::string(static_cast<const char*>(tl_blob_data(text))).find("{clear, promote}"),
            std::string::npos);
  tl_blob_release(text);
  EXPECT_NE(product(make_builder(context), TL_F32, TL_GEMM_CLEAR | TL_GEMM_PROMOTE, &program, &failure),
            TL_OK);
  EXPECT_STREQ(first(failure).code, "dtype_mismatch");
}

}  // namespace
// The sums of 8 numbers, from the end.
tl_status sums(const Builder& b, uint32_t axis, uint32_t flags, Program* program, Failure* failure) {
  const int64_t extents[1] = {8};
  const tl_expr shape[1] = {tl_index(b.get(), 8)}, grid[1] = {tl_index(b.get(), 1)};
  const tl_buffer x = tl_tensor(b.get(), "X", TL_F32, 1, shape, nullptr, 0),
                  y = tl_tensor(b.get(), "Y", TL_F32, 1, shape, nullptr, 0);
  tl_expr block[1];
  const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, grid, 0, nullptr, block);
  const tl_buffer tile = tl_alloc(b.get(), "t", TL_SCOPE_FRAGMENT, TL_F32, 1, extents);
  tl_copy(b.get(), tl_whole(b.get(), x), tl_whole(b.get(), tile));
  tl_cumsum(b.get(), tl_whole(b.get(), tile), tl_whole(b.get(), tile), axis, flags);
  tl_copy(b.get(), tl_whole(b.get(), tile), tl_whole(b.get(), y));
  tl_end(b.get(), kernel);
  return finish(b, program, failure);
}

TEST(Cumsum, SumsAndRefuses) {
  const Context context = make_context();
  Program program;
  Failure failure;
  ASSERT_EQ(sums(make_builder(context), 0, TL_CUMSUM_REVERSE, &program, &failure), TL_OK);
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
  const tl_arg args[2] = {{TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(x)},
                          {TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(y)}};
  ASSERT_EQ(tl_interpret(program.get(), args, 2, nullptr), TL_OK);
  EXPECT_EQ(y[0], 36);
  EXPECT_EQ(y[7], 8);
  EXPECT_EQ(sums(make_builder(context), 0, 6, nullptr, &failure), TL_INVALID_ARGUMENT);
  EXPECT_STREQ(first(failure).op, "tl_cumsum");
  EXPECT_EQ(sums(make_builder(context), 1, 0, nullptr, &failure), TL_INVALID_PROGRAM);
  EXPECT_STREQ(first(failure).code, "bad_attribute");
}

// Y[0] += each of X * X + 1 by one element, Y += X by a tile.
tl_status added(const Builder& b, tl_atomic_kind kind, tl_dtype dtype, Program* program, Failure* failure) {
  const int64_t extents[1] = {8};
  const tl_expr shape[1] = {tl_index(b.get(), 8)}, grid[1] = {tl_index(b.get(), 2)};
  const tl_buffer x = tl_tensor(b.get(), "X", dtype, 1, shape, nullptr, 0),
                  y = tl_tensor(b.get(), "Y", dtype, 1, shape, nullptr, 0);
  tl_expr block[1], i[1];
  const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, grid, 0, nullptr, block);
  const tl_buffer tile = tl_alloc(b.get(), "t", TL_SCOPE_FRAGMENT, dtype, 1, extents);
  tl_copy(b.get(), tl_whole(b.get(), x), tl_whole(b.get(), tile));
  tl_atomic(b.get(), tl_whole(b.get(), tile), tl_whole(b.get(), y), kind);
  const tl_scope loop = tl_begin_parallel(b.get(), 1, extents, nullptr, i);
  const tl_expr zero[1] = {tl_index(b.get(), 0)}, v = tl_load(b.get(), x, 1, i);
  const tl_expr one = tl_const_f64(b.get(), TL_F32, 1);
  tl_store_atomic(b.get(), y, 1, zero, dtype == TL_F32 ? tl_ternary(b.get(), TL_FMA, v, v, one) : v, kind);
  tl_end(b.get(), loop);
  tl_end(b.get(), kernel);
  return finish(b, program, failure);
}

TEST(Atomic, AddsAndRefuses) {
  const Context context = make_context();
  Program program;
  Failure failure;
  ASSERT_EQ(added(make_builder(context), TL_ATOMIC_ADD, TL_F32, &program, &failure), TL_OK);
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
  const tl_arg args[2] = {{TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(x)},
                          {TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(y)}};
  ASSERT_EQ(tl_interpret(program.get(), args, 2, nullptr), TL_OK);
  EXPECT_EQ(y[0], 2 * (1 + 204 + 8));
  EXPECT_EQ(y[7], 16);
  ASSERT_EQ(added(make_builder(context), TL_ATOMIC_EXCHANGE, TL_F32, &program, &failure), TL_OK);
  ASSERT_EQ(tl_interpret(program.get(), args, 2, nullptr), TL_OK);
  EXPECT_EQ(y[7], 8);
  EXPECT_EQ(added(make_builder(context), 8, TL_F32, nullptr, &failure), TL_INVALID_ARGUMENT);
  EXPECT_STREQ(first(failure).op, "tl_atomic");
  ASSERT_EQ(added(make_builder(context), TL_ATOMIC_ADD, TL_I8, &program, &failure), TL_OK);
  int8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 100}, sums[8] = {};
  const tl_arg of_bytes[2] = {{TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(bytes)},
                              {TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(sums)}};
  ASSERT_EQ(tl_interpret(program.get(), of_bytes, 2, nullptr), TL_OK);
  EXPECT_EQ(sums[0], static_cast<int8_t>(2 * (1 + 128)));
  EXPECT_EQ(sums[7], static_cast<int8_t>(200));
  EXPECT_EQ(added(make_builder(context), TL_ATOMIC_ADD, TL_E4M3, nullptr, &failure), TL_INVALID_PROGRAM);
  EXPECT_STREQ(first(failure).code, "dtype_mismatch");
}

// In C a name is an expression: it keeps its value when what it reads is written.
TEST(Names, ValuesAtTheirPlace) {
  const Context context = make_context();
  const Builder builder = make_builder(context);
  tl_builder* b = builder.get();
  const int64_t extents[1] = {4};
  const tl_expr shape[1] = {tl_index(b, 4)}, grid[1] = {tl_index(b, 1)};
  const tl_buffer y = tl_tensor(b, "Y", TL_F32, 1, shape, nullptr, 0);
  tl_expr block[1], i[1], k;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, grid, 0, nullptr, block);
  const tl_scope loop = tl_begin_parallel(b, 1, extents, nullptr, i);
  const tl_expr old = tl_let(b, "old", tl_load(b, y, 1, i)), s = tl_var(b, NULL, old);
  const tl_scope twice = tl_begin_loop(b, TL_LOOP_SERIAL, tl_index(b, 0), tl_index(b, 2), 0, "r", &k);
  tl_store(b, y, 1, i, tl_binary(b, TL_MUL, s, tl_const_f64(b, TL_F32, 10)));
  tl_assign(b, s, tl_binary(b, TL_ADD, tl_load(b, y, 1, i), tl_cast(b, TL_F32, k)));
  tl_end(b, twice);
  tl_store(b, y, 1, i, tl_binary(b, TL_SUB, s, old));
  tl_end(b, loop);
  tl_end(b, kernel);
  Program program;
  Failure failure;
  ASSERT_EQ(finish(builder, &program, &failure), TL_OK) << first(failure).message;
  float values[4] = {1, 2, 3, 4};
  const tl_arg args[1] = {{TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(values)}};
  ASSERT_EQ(tl_interpret(program.get(), args, 1, nullptr), TL_OK);
  for (int n = 0; n < 4; ++n) EXPECT_EQ(values[n], 100 * (n + 1) + 1 - (n + 1));
}

}  // namespace tilegen::test
