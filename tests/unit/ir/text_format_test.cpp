// Laid out anew, texts stay the same programs; what is laid out, and what programs are printed as, stays.
#include "ir/text_format.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/text.h"
#include "ir/text_lexer.h"

namespace tilegen::ir {
namespace {

std::string tokens(const std::string& text) {
  text::Lexer lexer(text);
  std::string all;
  for (text::Token t = lexer.next(); t.kind != text::TokenKind::end; t = lexer.next())
    all += std::string(t.text) + "\n";
  return all;
}

int comments(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), ';')); }

void expect_kept(const std::string& text, const std::string& name) {
  const std::string once = format_text(text);
  EXPECT_EQ(tokens(once), tokens(text)) << name;
  EXPECT_EQ(comments(once), comments(text)) << name;
  EXPECT_EQ(format_text(once), once) << name;
  for (std::stringstream rows(once); !rows.eof();) {
    std::string row;
    std::getline(rows, row);
    EXPECT_FALSE(row.ends_with(' ')) << name << ": " << row;
  }
}

TEST(TextFormat, LabelsAndAnnotations) {
  EXPECT_EQ(format_text("tl 1 program p\nkernel k grid(b: 1) threads 32 with{raster = grouped,group=8}{\n"
                        "alloc t : shared f32[8,8]{ layout = (i,j)->i*9+j , slots=2 }\n"
                        "label  go :serial with in 0..4 with { split = 2 } {\n"
                        "label x:fill t,0{ unroll=2 }\nif with>2{ fill t , 1 }\n}\n}\n"),
            "tl 1 program p\nkernel k grid (b: 1) threads 32 with {raster=grouped, group=8} {\n"
            "  alloc t: shared f32[8, 8] {layout=(i, j) -> i * 9 + j, slots=2}\n"
            "  label go: serial with in 0 .. 4 with {split=2} {\n"
            "    label x: fill t, 0 {unroll=2}\n    if with > 2 { fill t, 1 }\n  }\n}\n");
}

TEST(TextFormat, SpacesBlocksAndComments) {
  EXPECT_EQ(format_text(R"(; head
tl 1 program   p
dim n>=1 <=  99
param BM=128 in{64,128}   


tensor X:f32[n,8] strides[8,1] readonly ;  the input
let C = -3
fn f(x: f32)->f32{let u=-x return u*(-1.5)}
kernel gemm grid(b:n,
c:1){ alloc t : shared f32[8]

   ; a comment on its own
 fill t,-inf:f32 ;one
 fill   t , 0x7e01:f16    ; another
   serial i in-3..3 step 2{

 if i<-1 or(i>2)and not(i==1){ continue } else if i - 1 > 0 {
 t [ i ]-=1
 ; end
   }

   }
   gemm a,b->c{ clear,policy = full_row }
   let x = t[0] +
   t[1]
     * 2
 print "a ; b",x
 parallel i in 8{ t[i]=select(i<2,-t[i],
 t[i]) }
})"),
            R"(; head
tl 1 program p
dim n >= 1 <= 99
param BM = 128 in {64, 128}

tensor X: f32[n, 8] strides [8, 1] readonly  ;  the input
let C = -3
fn f(x: f32) -> f32 { let u = -x return u * (-1.5) }
kernel gemm grid (b: n,
    c: 1) { alloc t: shared f32[8]

  ; a comment on its own
  fill t, -inf:f32    ;one
  fill t, 0x7e01:f16  ; another
  serial i in -3 .. 3 step 2 {
    if i < -1 or (i > 2) and not(i == 1) { continue } else if i - 1 > 0 {
      t[i] -= 1
      ; end
    }
  }
  gemm a, b -> c {clear, policy=full_row}
  let x = t[0] +
      t[1]
      * 2
  print "a ; b", x
  parallel i in 8 { t[i] = select(i < 2, -t[i],
        t[i]) }
}
)");
  EXPECT_EQ(format_text(""), "");
  EXPECT_EQ(format_text("\n\n; only\n"), "; only\n");
}

TEST(TextFormat, OfEveryProgramInTheTree) {
  int programs = 0;
  for (const char* folder : {"tests/files", "tests/tool/programs", "tests/fuzz/corpus/program_text", "bench"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(TILEGEN_SOURCE_DIR) + "/" + folder)) {
      if (entry.path().extension() != ".tl") continue;
      std::ifstream in(entry.path());
      std::stringstream text;
      text << in.rdbuf();
      const std::string name = entry.path().filename().string();
      expect_kept(text.str(), name);
      const auto p = parse_program(text.str(), name, Limits());
      if (!p) continue;  // one that tests refuse
      ++programs;
      const std::string printed = print_program(*p);
      EXPECT_EQ(format_text(printed), printed) << name;
      const auto again = parse_program(format_text(text.str()), name, Limits());
      ASSERT_TRUE(again) << name << again.error().to_text();
      EXPECT_EQ(print_program(*again), printed) << name;
    }
  EXPECT_GT(programs, 40);
}

}  // namespace
}  // namespace tilegen::ir
