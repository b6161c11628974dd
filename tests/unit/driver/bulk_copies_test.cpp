// Which boxes the copy engine brings for warps that copy them, and what is said where it does not.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "ir/text.h"

namespace tilegen::driver {
namespace {

struct Ring {
  std::string columns = "512", place = "g * 128", row = "128", tile = "", tensor = " readonly",
              guard = "m > 0";
};

std::string text_of(const Ring& r) {
  return "tl 1 program p\ndim m\ntensor X: f32[m, " + r.columns + "]" + r.tensor +
         "\ntensor Y: f32[128]\nkernel k grid (g: 1) threads 160 {\n  alloc ring: shared f32[3, 4, " + r.row +
         "]" + r.tile +
         "\n  alloc full: shared u64[3] {arrivals = 32}\n  alloc empty: shared u64[3] {arrivals = 4}\n"
         "  if " +
         r.guard +
         " {\n  threads w, l in 5, 32 {\n    var sum = 0.0f32\n    serial k in 0 .. ceildiv(m, 4) {\n"
         "      if w == 4 {\n        mbarrier_wait empty[k % 3], (k // 3 + 1) % 2\n        copy_bulk X[k * 4 "
         ":+ 4, " +
         r.place + " :+ " + r.row + "] -> ring[k % 3, 0 :+ 4, 0 :+ " + r.row + "]\n        " +
         "mbarrier_arrive full[k % 3] {copies}\n      } else {\n        mbarrier_wait full[k % 3], k // 3 % "
         "2\n        sum += ring[k % 3, 0, w * 32 + l]\n"
         "        if l == 0 { mbarrier_arrive empty[k % 3] }\n      }\n    }\n"
         "    if w < 4 { Y[w * 32 + l] = sum }\n  }\n  }\n}\n";
}

struct Made {
  std::string code, notes;
};
Made make(const Ring& r, const char* target = "sm_90a") {
  auto program = ir::parse_program(text_of(r), "ring.tl", Limits{});
  EXPECT_TRUE(program) << program.error().to_text();
  CompileOptions options;
  options.verify = true;
  const auto made = compile(std::make_shared<const ir::Program>(std::move(*program)),
                            *target::find_target(target), options);
  EXPECT_TRUE(made) << made.error().to_text() << text_of(r);
  if (!made) return {};
  Made m{(*made)->code, ""};
  for (const plan::Note& n : (*made)->schedule.kernels[0].notes) m.notes += n.path + ": " + n.text + "\n";
  return m;
}
int count_of(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(BulkCopies, OneInstructionBringsABox) {
  const Made m = make({});
  EXPECT_EQ(count_of(m.code, "cp.async.bulk.tensor.2d"), 1) << m.notes;
  EXPECT_EQ(count_of(m.code, "mbarrier.expect_tx"), 1);
  EXPECT_EQ(count_of(m.code, "cp.async.ca") + count_of(m.code, "cp.async.cg"), 0);
  EXPECT_EQ(count_of(m.code, "cp.async.mbarrier"), 0);
  EXPECT_EQ(m.notes.find("engine"), m.notes.npos) << m.notes;
}

TEST(BulkCopies, ElsewhereThreadsCopy) {
  const Made m = make({}, "sm_80");
  EXPECT_EQ(count_of(m.code, "cp.async.bulk"), 0);
  EXPECT_GE(count_of(m.code, "cp.async.cg"), 1);
  EXPECT_EQ(count_of(m.code, "cp.async.mbarrier.arrive"), 1);
}

TEST(BulkCopies, WhatTheEngineDoesNotTakeIsSaid) {
  const auto refused = [](const Ring& r, const std::string& why) {
    const Made m = make(r);
    EXPECT_EQ(count_of(m.code, "cp.async.bulk"), 0) << why;
    EXPECT_NE(m.notes.find("threads copy its boxes, and not the copy engine: " + why), m.notes.npos)
        << m.notes;
  };
  Ring r;
  r.place = "g * 126 + 2";
  refused(r, "its place along the dense dimension of tensor 'X' is not known to be a multiple of 16 bytes");
  r = {};
  r.tensor = "";
  refused(r, "tensor 'X' may be written");
  r = {};
  r.tensor = " readonly optional";
  r.guard = "present(X)";
  refused(r, "tensor 'X' is optional, and a null address has no tensor map");
  r = {};
  r.tile = " {padding = 4}";
  refused(r, "the tile's layout is not its elements in row-major order");
}

}  // namespace
}  // namespace tilegen::driver
