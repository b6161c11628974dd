// Optional tensors through the C interface: declared, asked for, passed and left out, on every executor.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

constexpr int64_t kPoints = 32;

// Y = X + Bias, and Twice = 2 Y, where the launch passes them; `guarded` is false for a program that does not
// ask.
Program made(bool guarded, std::string* mistake = nullptr) {
  const Context context = make_context();
  const Builder owner = make_builder(context);
  tl_builder* b = owner.get();
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kPoints);
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_CONSTANT);
  const tl_buffer bias =
      tl_tensor(b, "Bias", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY | TL_TENSOR_OPTIONAL);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_buffer twice = tl_tensor(b, "Twice", TL_I64, 1, &n, nullptr, TL_TENSOR_OPTIONAL);
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kPoints - 1)), size);
  tl_expr block, point;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 0, nullptr, &block);
  const tl_scope loop = tl_begin_parallel(b, 1, &kPoints, nullptr, &point);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, size), point);
  const tl_expr own = tl_load(b, x, 1, &at), more = tl_load(b, bias, 1, &at);
  const tl_expr zero = tl_index(b, 0);
  const tl_expr sum =
      tl_binary(b, TL_ADD, own, guarded ? tl_select(b, tl_present(b, bias), more, zero) : more);
  tl_store(b, y, 1, &at, sum);
  const tl_scope asked = tl_begin_if(b, tl_present(b, twice));
  tl_store(b, twice, 1, &at, tl_binary(b, TL_MUL, sum, tl_index(b, 2)));
  tl_end(b, asked);
  tl_end(b, loop);
  tl_end(b, kernel);
  return made_by(owner, mistake);
}

tl_arg pointer(std::vector<int64_t>* to) {
  return {TL_ARG_POINTER, TL_I64, to ? reinterpret_cast<uint64_t>(to->data()) : 0};
}

TEST(Optional, LaunchesPassThemOrNull) {
  const Program program = made(true);
  const Context context = make_context();
  constexpr int64_t kElements = 77;
  for (const std::string executor : kExecutors)
    for (const bool with_bias : {false, true})
      for (const bool with_twice : {false, true}) {
        SCOPED_TRACE(executor + (with_bias ? ", bias" : "") + (with_twice ? ", twice" : ""));
        std::vector<int64_t> x(kElements), bias(kElements), y(kElements, -1), twice(kElements, -1);
        for (int64_t i = 0; i < kElements; ++i) x[i] = i * i, bias[i] = 1000 * i;
        const tl_arg args[] = {{TL_ARG_I64, 0, kElements},
                               pointer(&x),
                               pointer(with_bias ? &bias : nullptr),
                               pointer(&y),
                               pointer(with_twice ? &twice : nullptr)};
        tl_error* error = nullptr;
        ASSERT_EQ(launch_on(context, program, executor, nullptr, args, 5, &error), TL_OK)
            << tl_error_message(error);
        for (int64_t i = 0; i < kElements; ++i) {
          const int64_t expected = x[i] + (with_bias ? bias[i] : 0);
          ASSERT_EQ(y[i], expected);
          ASSERT_EQ(twice[i], with_twice ? 2 * expected : -1);
        }
      }
}

TEST(Optional, OthersAreNotNull) {
  const Program program = made(true);
  const Context context = make_context();
  std::vector<int64_t> x(4), y(4);
  const tl_arg args[] = {
      {TL_ARG_I64, 0, 4}, pointer(&x), pointer(nullptr), pointer(nullptr), pointer(nullptr)};
  for (const std::string executor : kExecutors) {
    tl_error* error = nullptr;
    EXPECT_NE(launch_on(context, program, executor, nullptr, args, 5, &error), TL_OK);
    EXPECT_NE(std::string(tl_error_message(error)).find("the address of tensor 'Y' is null"),
              std::string::npos);
    tl_error_release(error);
  }
}

TEST(Optional, ParametersSaySo) {
  const Program program = made(true);
  ASSERT_EQ(tl_program_param_count(program.get()), 5u);
  const char* const names[] = {"n", "X", "Bias", "Y", "Twice"};
  for (size_t i = 0; i < 5; ++i) {
    tl_param_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(tl_program_param(program.get(), i, &info), TL_OK);
    EXPECT_STREQ(info.name, names[i]);
    EXPECT_EQ(info.optional, i == 2 || i == 4) << names[i];
    EXPECT_EQ(info.constant, i == 1) << names[i];
    EXPECT_EQ(info.read_only, i == 1 || i == 2) << names[i];
  }
  // A caller that was compiled before there were any.
  tl_param_info old{};
  old.struct_size = offsetof(tl_param_info, optional);
  old.optional = 7;
  ASSERT_EQ(tl_program_param(program.get(), 2, &old), TL_OK);
  EXPECT_EQ(old.struct_size, offsetof(tl_param_info, optional));
  EXPECT_EQ(old.optional, 7);
}

TEST(Optional, TheTextIsTheSameProgram) {
  const Program program = made(true);
  tl_blob* text = nullptr;
  ASSERT_EQ(tl_program_print(program.get(), &text, nullptr), TL_OK);
  const Blob owned(text);
  const std::string printed = tl_blob_data(text);
  EXPECT_NE(printed.find("tensor Bias: i64[n] readonly optional\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("select(present(Bias), Bias["), std::string::npos) << printed;
  const Context context = make_context();
  EXPECT_STREQ(tl_program_hash(parsed(context, printed).get()), tl_program_hash(program.get()));
  tl_blob* source = nullptr;
  ASSERT_EQ(tl_program_emit_c(program.get(), &source, nullptr), TL_OK);
  const Blob owned_source(source);
  EXPECT_NE(std::string(tl_blob_data(source)).find("PRESENT(Bias)"), std::string::npos)
      << tl_blob_data(source);
}

TEST(Optional, AccessesAreGuarded) {
  std::string mistake;
  made(false, &mistake);
  EXPECT_NE(mistake.find("tensor 'Bias' is optional and accessed where nothing says"), std::string::npos)
      << mistake;
}

TEST(Optional, Misuse) {
  const auto mistake_of = [](auto&& call) {
    const Context context = make_context();
    const Builder owner = make_builder(context);
    const tl_expr n = tl_dim(owner.get(), "n");
    call(owner.get(), n);
    std::string mistake;
    made_by(owner, &mistake);
    return mistake;
  };
  EXPECT_NE(mistake_of([](tl_builder* b, tl_expr n) {
              tl_present(b, tl_tensor(b, "X", TL_F32, 1, &n, nullptr, TL_TENSOR_READ_ONLY));
            }).find("'X' is there in every launch, expected an optional tensor"),
            std::string::npos);
  EXPECT_NE(mistake_of([](tl_builder* b, tl_expr n) {
              tl_tensor(b, "W", TL_F32, 1, &n, nullptr, TL_TENSOR_WORKSPACE | TL_TENSOR_OPTIONAL);
              const tl_scope kernel = tl_begin_kernel(b, "k", 1, &n, 0, nullptr, &n);
              tl_end(b, kernel);
            }).find("workspace W is optional"),
            std::string::npos);
  EXPECT_NE(mistake_of([](tl_builder* b, tl_expr n) { tl_present(b, tl_buffer{n.bits}); }), "");
  EXPECT_NE(mistake_of([](tl_builder* b, tl_expr) { tl_present(b, tl_buffer{0}); }), "");
  EXPECT_EQ(tl_present(nullptr, tl_buffer{1}).bits, 0u);
}

}  // namespace
}  // namespace tilegen::test
