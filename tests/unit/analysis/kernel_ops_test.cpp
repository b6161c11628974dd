// Which value each access of a program means: where a buffer's new value begins, and what must stay one
// value.
#include "analysis/kernel_ops.h"

#include <gtest/gtest.h>

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::analysis {
namespace {

constexpr const char* kHeader = R"(tl 1 program p
dim n <= 100
scalar flag: bool
tensor X: f32[64, 64] readonly
tensor Y: f32[64, 64]

kernel k grid (b: 1) threads 64 {
  alloc x: fragment f32[64, 64]
  alloc y: fragment f32[64, 64]
  alloc r: fragment f32[64]
  alloc s: shared f32[64, 64]
  alloc c: local i64[2]
)";

std::string name_of(const KernelOps& ops, ValueId value) {
  if (!value.valid()) return "-";
  std::string name = ops.values[value].name;
  return name.substr(name.find(':') + 1);
}

// "copy#0: x=  i.j: x y=  ..." where "=" marks a written value; global tensors are left out.
std::string webs(const std::string& body) {
  auto p = ir::parse_program(kHeader + body + "}\n", "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return "";
  KernelOps ops = collect_kernel_ops(*p, 0);
  std::string text;
  for (const KernelOp& op : ops.ops) {
    text += (text.empty() ? "" : "; ") + op.path.substr(2) + ":";
    for (const OpAccess& a : op.accesses)
      if (a.value.valid()) text += " " + name_of(ops, a.value) + (a.write ? "=" : "");
  }
  return text;
}

TEST(KernelOps, AFullOverwriteBeginsANewValue) {
  EXPECT_EQ(webs(R"(
    copy X -> x
    copy x -> Y
    copy X -> x
    copy x -> Y
    fill x, 0.0f32
    copy x -> Y
  )"),
            "copy#0: x=; copy#1: x; copy#2: x@1=; copy#3: x@1; fill#0: x@2=; copy#4: x@2");
  EXPECT_EQ(
      webs("copy X -> x\n copy x -> Y\n parallel i, j in 64, 64 {\n x[i, j] = 1.0f32\n }\n copy x -> Y\n"),
      "copy#0: x=; copy#1: x; i.j: x@1=; copy#2: x@1");
}

TEST(KernelOps, AnUpdateGoesOnWithTheOldOne) {
  EXPECT_EQ(webs("copy X -> x\n parallel i, j in 64, 64 {\n x[i, j] = x[i, j] + 1.0f32\n }\n copy x -> Y\n"),
            "copy#0: x=; i.j: x x=; copy#1: x");
  EXPECT_EQ(
      webs("fill r, 0.0f32\n copy X -> x\n reduce x -> r {axis=1, accumulate}\n reduce x -> r {axis=1}\n"),
      "fill#0: r=; copy#0: x=; reduce#0: x r=; reduce#1: x r@1=");
}

TEST(KernelOps, APartialWriteGoesOnWithTheOldOne) {
  EXPECT_EQ(webs("copy X -> x\n copy X[0 :+ 32, 0 :+ 64] -> x[0 :+ 32, 0 :+ 64]\n copy x -> Y\n"),
            "copy#0: x=; copy#1: x=; copy#2: x");
  EXPECT_EQ(webs("copy X -> x\n copy X[0 :+ 32, 0 :+ 64] -> x[32 :+ 32, 0 :+ 64]\n copy x -> Y\n"),
            "copy#0: x=; copy#1: x=; copy#2: x");
  // Half of the rows, the diagonal, rows of another offset: none of them is everything.
  EXPECT_EQ(webs("copy X -> x\n parallel i, j in 32, 64 {\n x[i, j] = 0.0f32\n }\n copy x -> Y\n"),
            "copy#0: x=; i.j: x=; copy#1: x");
  EXPECT_EQ(webs("copy X -> s\n parallel i in 64 {\n s[i, i] = 0.0f32\n }\n copy s -> Y\n"),
            "copy#0: s=; i: s=; copy#1: s");
  EXPECT_EQ(webs("copy X -> s\n parallel i, j in 64, 64 {\n s[63 - i, j] = 0.0f32\n }\n copy s -> Y\n"),
            "copy#0: s=; i.j: s=; copy#1: s");
}

TEST(KernelOps, ATransposedLoopWritesEverythingToo) {
  EXPECT_EQ(
      webs("copy X -> s\n copy s -> Y\n parallel i, j in 64, 64 {\n s[j, i] = 0.0f32\n }\n copy s -> Y\n"),
      "copy#0: s=; copy#1: s; i.j: s@1=; copy#2: s@1");
}

TEST(KernelOps, AGuardedStoreGoesOnWithTheOldOne) {
  EXPECT_EQ(
      webs("copy X -> x\n parallel i, j in 64, 64 {\n if i < j {\n x[i, j] = 0.0f32\n }\n }\n copy x -> Y\n"),
      "copy#0: x=; i.j: x=; copy#1: x");
  // A store beside the guarded one writes every element.
  EXPECT_EQ(webs("copy X -> x\n copy x -> Y\n parallel i, j in 64, 64 {\n x[i, j] = 1.0f32\n if i < j {\n "
                 "x[i, j] = 0.0f32\n }\n }\n copy x -> Y\n"),
            "copy#0: x=; copy#1: x; i.j: x@1= x@1=; copy#2: x@1");
}

TEST(KernelOps, WhatALoopCarriesIsOneValue) {
  // x of one iteration is read by the next, before its overwriting.
  EXPECT_EQ(webs(R"(
    copy X -> x
    serial t in 0 .. n {
      copy x -> Y
      copy X -> x
    }
  )"),
            "copy#0: x=; t/copy#0: x; t/copy#1: x=");
  // Without the read in front every iteration has one of its own; the loop may not run, so what is read
  // after is either.
  EXPECT_EQ(webs(R"(
    serial t in 0 .. n {
      copy X -> x
      copy x -> Y
    }
    copy X -> x
    copy x -> Y
  )"),
            "t/copy#0: x=; t/copy#1: x; copy#0: x@1=; copy#1: x@1");
  EXPECT_EQ(webs(R"(
    copy X -> x
    serial t in 0 .. n {
      copy X -> x
    }
    copy x -> Y
  )"),
            "copy#0: x=; t/copy#0: x=; copy#1: x");
}

TEST(KernelOps, AReadThatOnlyEarlierIterationsFeed) {
  EXPECT_EQ(webs(R"(
    serial t in 0 .. n {
      if t > 0 {
        copy x -> Y
      }
      copy X -> x
    }
  )"),
            "t/if#0/copy#0: x; t/copy#0: x=");
  // Through two loops.
  EXPECT_EQ(webs(R"(
    serial t in 0 .. n {
      serial u in 0 .. n {
        if t > 0 {
          copy x -> Y
        }
      }
      copy X -> x
    }
  )"),
            "t/u/if#0/copy#0: x; t/copy#0: x=");
  // A part is written over what the iteration before left.
  EXPECT_EQ(webs(R"(
    serial t in 0 .. n {
      if t > 0 {
        copy X[0 :+ 32, 0 :+ 64] -> x[0 :+ 32, 0 :+ 64]
        copy x -> Y
      }
      copy X -> x
    }
  )"),
            "t/if#0/copy#0: x=; t/if#0/copy#1: x; t/copy#0: x=");
}

TEST(KernelOps, BothSidesOfABranchMeetBehindIt) {
  EXPECT_EQ(webs(R"(
    if flag {
      copy X -> x
    } else {
      fill x, 0.0f32
    }
    copy x -> Y
  )"),
            "if#0/copy#0: x=; if#0.else/fill#0: x=; copy#0: x");
  // One side overwrites: after it both are possible. Within it they are two.
  EXPECT_EQ(webs(R"(
    copy X -> x
    if flag {
      fill x, 0.0f32
    }
    copy x -> Y
  )"),
            "copy#0: x=; if#0/fill#0: x=; copy#1: x");
  EXPECT_EQ(webs(R"(
    copy X -> x
    if flag {
      copy x -> Y
      fill x, 0.0f32
      copy x -> Y
      copy X -> x
    }
    fill x, 1.0f32
    copy x -> Y
  )"),
            "copy#0: x=; if#0/copy#0: x; if#0/fill#0: x@1=; if#0/copy#1: x@1; if#0/copy#2: x=; fill#0: x@2=; "
            "copy#1: x@2");
}

TEST(KernelOps, ScalarsOfStatementsNameTheValueTheyRead) {
  auto p = ir::parse_program(std::string(kHeader) + R"(
    fill c, 3i64
    serial t in 0 .. min(c[0], n) {
      copy X -> x
    }
    fill c, 4i64
    if c[1] > 3 {
      copy X -> x
    }
    copy X[c[0] % 2 :+ 32, 0 :+ 64] -> x[0 :+ 32, 0 :+ 64]
  }
  )",
                             "test.tl", Limits{});
  ASSERT_TRUE(p) << p.error().to_text();
  KernelOps ops = collect_kernel_ops(*p, 0);
  std::vector<std::string> paths = ir::statement_paths(*p);
  std::map<std::string, std::string> got;
  for (const auto& [where, value] : ops.scalar_reads) got[paths[where.first.value]] = name_of(ops, value);
  EXPECT_EQ(got, (std::map<std::string, std::string>{{"k/t", "c"}, {"k/if#0", "c@1"}, {"k/copy#0", "c@1"}}));
}

TEST(KernelOps, DepthCountsLoopsOnly) {
  auto p = ir::parse_program(std::string(kHeader) + R"(
    copy X -> x
    serial t in 0 .. n {
      if flag {
        copy X -> y
      }
    }
  }
  )",
                             "test.tl", Limits{});
  ASSERT_TRUE(p) << p.error().to_text();
  KernelOps ops = collect_kernel_ops(*p, 0);
  ASSERT_EQ(ops.ops.size(), 2u);
  EXPECT_EQ(ops.ops.front().depth, 0);
  EXPECT_EQ(ops.ops.back().depth, 1);
}

}  // namespace
}  // namespace tilegen::analysis
