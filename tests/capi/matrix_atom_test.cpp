// Matrix instructions of a program through the builder: what is made of them, what an artifact says of them,
// and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

constexpr const char* kText =
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32\n{$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};";

struct Atom {
  const char* name = "mul";
  int64_t shape[3] = {16, 8, 8};
  tl_dtype types[3] = {TL_F16, TL_F16, TL_F32};
  const char* layouts[3] = {"(i, k) -> (i % 8 * 4 + k // 2) * 4 + i // 8 * 2 + k % 2",
                            "(k, j) -> (j * 4 + k // 2) * 2 + k % 2",
                            "(i, j) -> (i % 8 * 4 + j // 2) * 4 + i // 8 * 2 + j % 2"};
  bool meaning = false;
  const char* text = kText;
};

// Y = S * S for the whole numbers S[i, j] = (i + j) % 4 - 1, by products that name "mul".
Program squares(const Atom& a, std::string* mistake = nullptr) {
  const Context context = make_context();
  const Builder owner = make_builder(context, "squares");
  tl_builder* b = owner.get();
  constexpr int64_t kShape[] = {32, 32};
  const tl_expr extents[] = {tl_index(b, 32), tl_index(b, 32)};
  const tl_buffer y = tl_tensor(b, "Y", TL_F32, 2, extents, nullptr, 0);
  tl_expr operands[3] = {};
  tl_expr result = {};
  if (a.meaning) {
    for (int i = 0; i < 3; ++i) operands[i] = tl_operand(b, a.types[i], nullptr);
    result =
        tl_ternary(b, TL_FMA, tl_cast(b, TL_F32, operands[0]), tl_cast(b, TL_F32, operands[1]), operands[2]);
  }
  tl_matrix_atom(b, a.name, a.shape, a.types, a.layouts, 8, a.meaning ? operands : nullptr, result,
                 TL_NATIVE_PTX, a.text);
  const tl_expr grid = tl_index(b, 1);
  tl_expr block, at[2];
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 64, nullptr, &block);
  const tl_buffer s = tl_alloc(b, "s", TL_SCOPE_SHARED, TL_F16, 2, kShape),
                  c = tl_alloc(b, "c", TL_SCOPE_FRAGMENT, TL_F32, 2, kShape);
  const tl_scope loop = tl_begin_parallel(b, 2, kShape, nullptr, at);
  const tl_expr number = tl_binary(b, TL_FLOORMOD, tl_binary(b, TL_ADD, at[0], at[1]), tl_index(b, 4));
  tl_store(b, s, 2, at, tl_cast(b, TL_F16, tl_binary(b, TL_SUB, number, tl_index(b, 1))));
  tl_end(b, loop);
  tl_fill(b, tl_whole(b, c), tl_const_f64(b, TL_F32, 0));
  tl_annotate(b, "atom = mul");
  tl_gemm(b, tl_whole(b, s), tl_whole(b, s), tl_whole(b, c), 0, TL_POLICY_DEFAULT);
  tl_copy(b, tl_whole(b, c), tl_whole(b, y));
  tl_end(b, kernel);
  return made_by(owner, mistake);
}

std::vector<float> expected() {
  std::vector<float> all;
  const auto s = [](int i, int j) { return (i + j) % 4 - 1; };
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      int sum = 0;
      for (int k = 0; k < 32; ++k) sum += s(i, k) * s(k, j);
      all.push_back(static_cast<float>(sum));
    }
  return all;
}

TEST(MatrixAtoms, RunEverywhere) {
  Atom atoms[2];
  atoms[1].meaning = true;
  for (const Atom& a : atoms) {
    const Program program = squares(a);
    for (const char* executor : kExecutors) {
      const Context context = make_context();
      std::vector<float> y(32 * 32, -1);
      const tl_arg arg = {TL_ARG_POINTER, TL_F32, reinterpret_cast<uint64_t>(y.data())};
      tl_error* error = nullptr;
      EXPECT_EQ(launch_on(context, program, executor, nullptr, &arg, 1, &error), TL_OK)
          << tl_error_message(error);
      tl_error_release(error);
      EXPECT_EQ(y, expected()) << executor;
    }
  }
}

std::string section(const Program& program, const char* target_name, tl_section which,
                    int32_t native_text = 1) {
  const Context context = make_context();
  tl_target* target = nullptr;
  tl_options* options = nullptr;
  tl_artifact* artifact = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_target_parse(target_name, &target, nullptr), TL_OK);
  EXPECT_EQ(tl_options_create(&options, nullptr), TL_OK);
  EXPECT_EQ(tl_options_set_bool(options, "native_text", native_text, nullptr), TL_OK);
  const tl_status status = tl_compile(context.get(), program.get(), target, options, &artifact, &error);
  tl_options_destroy(options), tl_target_release(target);
  const Artifact owned(artifact);
  const Failure failure(error);
  if (status != TL_OK) return tl_error_message(error);
  const char* data = nullptr;
  size_t size = 0;
  EXPECT_EQ(tl_artifact_section(artifact, which, &data, &size, nullptr), TL_OK);
  return std::string(data, size);
}

TEST(MatrixAtoms, ArtifactsSayWhatIsInTheirCode) {
  const Program program = squares({});
  for (const char* target : {"sm_80", "sm_90a"}) {
    const std::string ptx = section(program, target, TL_SECTION_PTX);
    EXPECT_NE(ptx.find("// mul\n"), std::string::npos) << ptx;
    EXPECT_NE(ptx.find("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"), std::string::npos) << ptx;
    EXPECT_EQ(ptx.find("m16n8k16"), std::string::npos) << ptx;
    EXPECT_EQ(section(program, target, TL_SECTION_NATIVE_TEXT), "mul asm ptx\n");
  }
  EXPECT_EQ(section(program, "host", TL_SECTION_NATIVE_TEXT), "");
  EXPECT_EQ(section(program, "gfx942", TL_SECTION_NATIVE_TEXT), "");
  const std::string off = section(program, "sm_80", TL_SECTION_PTX, 0);
  EXPECT_NE(off.find("the atom 'mul' has native text (asm ptx)"), std::string::npos) << off;
}

TEST(MatrixAtoms, IsWrittenAsC) {
  Atom a;
  a.meaning = true;
  const Program program = squares(a);
  tl_blob* blob = nullptr;
  ASSERT_EQ(tl_program_emit_c(program.get(), &blob, nullptr), TL_OK);
  const Blob owned(blob);
  const std::string source(tl_blob_data(blob), tl_blob_size(blob));
  for (const char* part : {"const char *const asm_ptx =\n", "const char *const b_layout =\n",
                           "tl_matrix_atom(t, \"mul\", NUMBERS(16, 8, 8), DTYPES(TL_F16, TL_F16, TL_F32)",
                           "NAMES(a_layout, b_layout, c_layout), 8, EXPRS("})
    EXPECT_NE(source.find(part), std::string::npos) << part << source;
}

TEST(MatrixAtoms, Mistakes) {
  const auto mistake = [](auto change) {
    Atom a;
    change(a);
    std::string text;
    squares(a, &text);
    return text;
  };
  const struct {
    std::string got, words;
  } rows[] = {
      {mistake([](Atom& a) { a.layouts[1] = "(k, j) -> k * 8"; }), "where element [0, 0] is"},
      {mistake([](Atom& a) { a.layouts[1] = "threads 32 : nothing [0: ]"; }), "the layout of B of 'mul'"},
      {mistake([](Atom& a) { a.layouts[1] = "(k, j) -> k * 8 + j, swizzle = 32"; }), "more than a layout"},
      {mistake([](Atom& a) { a.layouts[1] = "(k, j) -> k * 8 +"; }), "the layout of B of 'mul'"},
      {mistake([](Atom& a) { a.layouts[2] = nullptr; }), "is NULL"},
      {mistake([](Atom& a) { a.text = "mma.sync.aligned.m16n8k16.row.col {$0};"; }), "is not of 16x8x8"},
      {mistake([](Atom& a) { a.text = "ret;"; }), "is none of matrices"},
      {mistake([](Atom& a) { a.shape[0] = INT64_MAX; }), "has no 1 to 1024 elements"},
      {mistake([](Atom& a) { a.shape[2] = 0; }), "has no 1 to 1024 elements"},
      {mistake([](Atom& a) { a.name = "kernel"; }), "is a word of the language"},
  };
  for (const auto& row : rows)
    EXPECT_NE(row.got.find(row.words), std::string::npos) << row.words << "\n" << row.got;
}

}  // namespace
}  // namespace tilegen::test
