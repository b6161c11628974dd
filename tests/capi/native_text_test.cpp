// Functions through the builder, with native text and without; what an artifact says of it, and the option
// that refuses it.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

struct Text {
  tl_native_form form;
  const char* text;
};

// Y[i] = the product of a function's two results for X[i] and 77; `texts` are its native text.
Program mixed(const std::vector<Text>& texts, std::string* mistake = nullptr) {
  const Context context = make_context();
  const Builder owner = make_builder(context, "mixed");
  tl_builder* b = owner.get();
  constexpr int64_t kPoints = 32;
  const tl_expr n = tl_dim(b, "n"), size = tl_index(b, kPoints);
  const tl_buffer x = tl_tensor(b, "X", TL_I64, 1, &n, nullptr, TL_TENSOR_READ_ONLY);
  const tl_buffer y = tl_tensor(b, "Y", TL_I64, 1, &n, nullptr, 0);
  const tl_expr operands[] = {tl_operand(b, TL_I64, "a"), tl_operand(b, TL_I64, "by")};
  const tl_expr results[] = {tl_binary(b, TL_BIT_XOR, operands[0], operands[1]),
                             tl_binary(b, TL_ADD, operands[0], operands[1])};
  std::vector<tl_native_form> forms;
  std::vector<const char*> lines;
  for (const Text& t : texts) forms.push_back(t.form), lines.push_back(t.text);
  tl_function(b, "mix", 2, operands, 2, results, static_cast<uint32_t>(texts.size()), forms.data(),
              lines.data());
  const tl_expr grid = tl_binary(b, TL_FLOORDIV, tl_binary(b, TL_ADD, n, tl_index(b, kPoints - 1)), size);
  tl_expr block, point;
  const tl_scope kernel = tl_begin_kernel(b, "k", 1, &grid, 0, nullptr, &block);
  const tl_scope loop = tl_begin_parallel(b, 1, &kPoints, nullptr, &point);
  const tl_expr at = tl_binary(b, TL_ADD, tl_binary(b, TL_MUL, block, size), point);
  const tl_expr args[] = {tl_load(b, x, 1, &at), tl_index(b, 77)};
  tl_store(b, y, 1, &at, tl_binary(b, TL_MUL, tl_call(b, "mix", 2, args, 0), tl_call(b, "mix", 2, args, 1)));
  tl_end(b, loop);
  tl_end(b, kernel);
  return made_by(owner, mistake);
}

int64_t meaning(int64_t v) { return (v ^ 77) * (v + 77); }

constexpr Text kPtx = {TL_NATIVE_PTX, "xor.b64 $0, $2, $3;\nadd.s64 $1, $2, $3;"};
constexpr Text kLlvm = {TL_NATIVE_LLVM,
                        "define {i64, i64} @mix(i64 %a, i64 %b) {\n"
                        "  %x = xor i64 %a, %b\n"
                        "  %s = call i64 @sum(i64 %a, i64 %b)\n"
                        "  %r = insertvalue {i64, i64} undef, i64 %x, 0\n"
                        "  %t = insertvalue {i64, i64} %r, i64 %s, 1\n"
                        "  ret {i64, i64} %t\n"
                        "}\n"
                        "define i64 @sum(i64 %a, i64 %b) {\n"
                        "  %s = add i64 %a, %b\n"
                        "  ret i64 %s\n"
                        "}"};

TEST(NativeText, FunctionsRunEverywhere) {
  expect_everywhere(mixed({}), numbers(61), meaning);
  expect_everywhere(mixed({kPtx}), numbers(61), meaning);
  expect_everywhere(mixed({kLlvm, kPtx}), numbers(61), meaning);
}

tl_status compile(const Program& program, const char* target_name, int32_t native_text, Artifact* artifact,
                  Failure* failure) {
  const Context context = make_context();
  tl_target* target = nullptr;
  tl_options* options = nullptr;
  tl_artifact* made = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_target_parse(target_name, &target, nullptr), TL_OK);
  EXPECT_EQ(tl_options_create(&options, nullptr), TL_OK);
  EXPECT_EQ(tl_options_set_bool(options, "native_text", native_text, nullptr), TL_OK);
  const tl_status status = tl_compile(context.get(), program.get(), target, options, &made, &error);
  tl_options_destroy(options), tl_target_release(target);
  artifact->reset(made);
  failure->reset(error);
  return status;
}

std::string section(const Artifact& artifact, tl_section which) {
  const char* data = nullptr;
  size_t size = 0;
  EXPECT_EQ(tl_artifact_section(artifact.get(), which, &data, &size, nullptr), TL_OK);
  return std::string(data, size);
}

TEST(NativeText, ArtifactsSayWhatIsInTheirCode) {
  const struct {
    const char* target;
    const char* list;
  } rows[] = {{"sm_90a", "mix asm ptx\n"},
              {"sm_80", "mix asm ptx\n"},
              {"host", "mix llvm\n"},
              {"gfx942", "mix llvm\n"},
              {"sim:sm_80", ""}};
  const Program program = mixed({kLlvm, kPtx}), plain = mixed({});
  for (const auto& row : rows) {
    Artifact artifact;
    Failure failure;
    ASSERT_EQ(compile(program, row.target, 1, &artifact, &failure), TL_OK)
        << row.target << ": " << tl_error_message(failure.get());
    EXPECT_EQ(section(artifact, TL_SECTION_NATIVE_TEXT), row.list) << row.target;
    const std::string ptx = section(artifact, TL_SECTION_PTX);
    if (!ptx.empty()) {
      EXPECT_NE(ptx.find("// mix\n"), std::string::npos) << ptx;
    }
    ASSERT_EQ(compile(plain, row.target, 0, &artifact, &failure), TL_OK) << row.target;
    EXPECT_EQ(section(artifact, TL_SECTION_NATIVE_TEXT), "") << row.target;
    EXPECT_EQ(compile(program, row.target, 0, &artifact, &failure), TL_UNSUPPORTED) << row.target;
    EXPECT_NE(std::string(tl_error_message(failure.get())).find("'mix' has native text (asm ptx, llvm)"),
              std::string::npos)
        << tl_error_message(failure.get());
  }
}

// A line of C for each line of a text; what the source builds is compared elsewhere.
TEST(NativeText, IsWrittenAsC) {
  const Program program = mixed({kLlvm, kPtx});
  tl_blob* blob = nullptr;
  ASSERT_EQ(tl_program_emit_c(program.get(), &blob, nullptr), TL_OK);
  const Blob owned(blob);
  const std::string source(tl_blob_data(blob), tl_blob_size(blob));
  for (const char* part :
       {"    const char *const asm_ptx =\n        \"xor.b64 $0, $2, $3;\\n\"\n        \"add.s64 $1, $2, "
        "$3;\";\n",
        "    const char *const llvm =\n        \"define {i64, i64} @mix(i64 %a, i64 %b) {\\n\"\n",
        "    const tl_expr by = tl_operand(t, TL_I64, \"by\");\n    tl_function(t, \"mix\", 2, EXPRS(a, by), "
        "2, ",
        "FORMS(TL_NATIVE_PTX, TL_NATIVE_LLVM), NAMES(asm_ptx, llvm));\n", "CALL(\"mix\", 0, 2, ",
        "CALL(\"mix\", 1, 2, "})
    EXPECT_NE(source.find(part), std::string::npos) << part << source;
}

std::string file_bytes(const std::string& name) {
  std::ifstream in(std::string(TILEGEN_SOURCE_DIR) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(NativeText, BitcodeIsText) {
  const std::string bytes = file_bytes("tests/fuzz/corpus/bitcode/mix.bc");
  ASSERT_FALSE(bytes.empty());
  tl_blob* blob = nullptr;
  tl_error* error = nullptr;
  ASSERT_EQ(tl_bitcode_text(bytes.data(), bytes.size(), &blob, &error), TL_OK) << tl_error_message(error);
  const Blob text(blob);
  ASSERT_EQ(std::strlen(tl_blob_data(blob)), tl_blob_size(blob));
  const Program program = mixed({{TL_NATIVE_LLVM, tl_blob_data(blob)}});
  expect_everywhere(program, numbers(61), meaning);
  for (const char* target : {"host", "sm_90a", "gfx942"}) {
    Artifact artifact;
    Failure failure;
    ASSERT_EQ(compile(program, target, 1, &artifact, &failure), TL_OK) << tl_error_message(failure.get());
    EXPECT_EQ(section(artifact, TL_SECTION_NATIVE_TEXT), "mix llvm\n") << target;
  }
  ASSERT_EQ(tl_bitcode_text(bytes.data(), bytes.size() - 4, &blob, &error), TL_INVALID_PROGRAM);
  const Failure failure(error);
  EXPECT_EQ(blob, nullptr);
  EXPECT_NE(std::string(tl_error_message(error)).find("it ends inside of a record"), std::string::npos)
      << tl_error_message(error);
}

TEST(NativeText, Mistakes) {
  std::string mistake;
  mixed({{TL_NATIVE_PTX, "ret;"}}, &mistake);
  EXPECT_NE(mistake.find("asm ptx of 'mix': the instruction 'ret' is not taken"), std::string::npos)
      << mistake;
  mixed({{7, ""}}, &mistake);
  EXPECT_NE(mistake.find("there is no form 7"), std::string::npos) << mistake;
  mixed({{TL_NATIVE_PTX, nullptr}}, &mistake);
  EXPECT_NE(mistake.find("is NULL"), std::string::npos) << mistake;
  mixed({kPtx, kPtx}, &mistake);
  EXPECT_NE(mistake.find("two texts asm ptx"), std::string::npos) << mistake;
}

// LLVM IR that does more than compute of its arguments, or is none; each on a host and for AMD and NVIDIA.
TEST(NativeText, LlvmFunctionsComputeOfTheirArguments) {
  const std::string head = "define {i64, i64} @mix(i64 %a, i64 %b) {\n", tail = "ret {i64, i64} undef\n}\n";
  const struct {
    std::string text, part;
  } rows[] = {
      {head + "ret i64 %a\n}", "line 2, column"},
      {head + "%p = inttoptr i64 %a to ptr\n%v = load i64, ptr %p\n" + tail, "memory: load"},
      {head + "%p = inttoptr i64 %a to ptr\nstore i64 %b, ptr %p\n" + tail, "memory: store"},
      {head + "%p = alloca i64\n" + tail, "memory: alloca"},
      {head + "%p = inttoptr i64 %a to ptr\n%v = call i64 %p()\n" + tail, "what is no function of the text"},
      {head + "%v = call i64 @getpid()\n" + tail + "declare i64 @getpid()", "a call of @getpid"},
      {head + "call void @llvm.trap()\n" + tail + "declare void @llvm.trap()", "a call of @llvm.trap"},
      {head + "%v = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n" + tail +
           "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
       "a call of @llvm.nvvm"},
      {head + "%v = call i32 @llvm.amdgcn.workitem.id.x()\n" + tail +
           "declare i32 @llvm.amdgcn.workitem.id.x()",
       "a call of @llvm.amdgcn"},
      {head + "%v = call {i64, i64} @mix(i64 %a, i64 %b)\n" + tail, "call themselves"},
      {head + tail + "@table = constant i64 5", "the global @table"},
      {"define i64 @mix(i64 %a, i64 %b) {\nret i64 %a\n}", "expected { i64, i64 } (i64, i64)"},
      {"define i64 @other(i64 %a) {\nret i64 %a\n}\n; @mix", "defines no function @mix"},
  };
  for (const auto& row : rows)
    for (const char* target : {"host", "sm_80", "gfx942"}) {
      const Program program = mixed({{TL_NATIVE_LLVM, row.text.c_str()}});
      Artifact artifact;
      Failure failure;
      EXPECT_EQ(compile(program, target, 1, &artifact, &failure), TL_INVALID_PROGRAM) << row.text;
      const std::string message = failure ? tl_error_message(failure.get()) : "";
      EXPECT_NE(message.find("llvm of 'mix' for "), std::string::npos) << row.text << ": " << message;
      EXPECT_NE(message.find(row.part), std::string::npos) << row.text << ": " << message;
    }
}

}  // namespace
}  // namespace tilegen::test
