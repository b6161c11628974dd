// Accesses under predicates whose offsets have 31 bits are buffer accesses: what is beyond the tile's edge
// the hardware's bounds leave out. By machine code in the strict interpreter of its instructions, against the
// interpreter of programs.
#include <gtest/gtest.h>

#include <sstream>

#include "driver/compile.h"
#include "files.h"
#include "ir/text.h"

namespace tilegen::differential {
namespace {

struct Case {
  const char* name;
  std::string text;
  bool bounded = true;  // every access under a predicate
};
void PrintTo(const Case& c, std::ostream* o) { *o << c.name; }

// Tiles of 32 x 64 that hang over both edges of 45 rows of 70.
std::string copies(const std::string& type, const std::string& strides = "", int columns = 70) {
  const std::string shape = type + "[45, " + std::to_string(columns) + "]" + strides;
  return "tl 1 program edges\ntensor A: " + shape + " readonly\ntensor B: " + shape +
         "\nkernel edges grid (by: 2, bx: 2) threads 128 {\n  alloc t: fragment " + type + "[32, 64]\n" +
         "  copy A[by * 32 :+ 32, bx * 64 :+ 64] -> t\n  copy t -> B[by * 32 :+ 32, bx * 64 :+ 64]\n}\n";
}

// Neighbours of an element, in front of the tensor for the first.
std::string neighbours(const std::string& n, const std::string& dims) {
  return "tl 1 program shifted\n" + dims + "tensor A: f32[" + n + "] readonly\ntensor B: f32[" + n +
         "]\nkernel shifted grid (b: ceildiv(" + n + ", 64)) threads 64 {\n" +
         "  alloc t: fragment f32[64]\n  copy A[b * 64 - 3 :+ 64] -> t\n  copy t -> B[b * 64 :+ 64]\n}\n";
}

const Case kCases[] = {
    {"Bytes", copies("i8")},
    {"WideBytes", copies("i8", "", 80)},
    {"Halves", copies("f16")},
    {"WideHalves", copies("bf16", "", 72)},
    {"Words", copies("f32")},
    {"WideWords", copies("f32", "", 72)},
    {"Doubles", copies("f64")},
    {"WideDoubles", copies("i64", "", 72)},
    {"RowsApart", copies("f32", " strides [96, 1]")},
    {"ColumnsApart", copies("f16", " strides [1, 48]")},
    {"InFrontOfTheTensor", neighbours("150", "")},
    // A dim may be 2^48: no proof.
    {"OfAnySize", neighbours("n", "dim n\n"), false},
};

class BufferAccesses : public testing::TestWithParam<Case> {};

TEST_P(BufferAccesses, LeaveOutWhatThePredicateDoes) {
  const Case& c = GetParam();
  for (const char* target : {"gfx942", "gfx90a"}) {
    auto program = ir::parse_program(c.text, "case.tl", Limits());
    ASSERT_TRUE(program) << program.error().to_text() << c.text;
    driver::CompileOptions options;
    options.keep_assembly = true;
    const auto artifact = driver::compile(std::make_shared<const ir::Program>(std::move(*program)),
                                          *target::find_target(target), options);
    ASSERT_TRUE(artifact) << artifact.error().to_text() << c.text;
    const std::string& code = (*artifact)->assembly;
    const auto has = [&](const char* word) { return code.find(word) != std::string::npos; };
    EXPECT_EQ(has("\tbuffer_load_"), c.bounded) << code;
    EXPECT_EQ(has("\tbuffer_store_"), c.bounded) << code;
    EXPECT_EQ(has("tilegen.zeros"), !c.bounded) << code;
    EXPECT_EQ(has("s_cbranch_execz"), !c.bounded) << code;
    Subject subject(c.text, {target});
    ASSERT_EQ(subject.invalid(), "");
    Launch launch;
    if (!c.bounded) launch.dims = {{"n", 150}};
    for (launch.seed = 1; launch.seed <= 3; ++launch.seed) {
      const Outcome o = subject.compare(launch);
      EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text << c.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BufferAccesses, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tilegen::differential
