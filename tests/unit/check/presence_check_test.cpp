// Accesses of optional tensors: what guards them, and the words where nothing does.
#include <gtest/gtest.h>

#include "diagnose.h"

namespace tilegen::check {
namespace {

std::string diagnose_with(const std::string& body) {
  return diagnose(parsed(
      "tl 1 program t dim n tensor X: f32[n] readonly optional tensor Z: f32[n] optional tensor Y: f32[n]\n"
      "kernel k grid(b: 4) {\n alloc t: shared f32[8] alloc l: local f32[1]\n fill t, 0.0f32 fill l, "
      "0.0f32\n " +
      body + " }"));
}

TEST(PresenceCheck, WhatGuards) {
  for (const char* body : {
           "if present(X) { copy X[b * 8 :+ 8] -> t }",
           "if not present(X) { fill t, 1.0f32 } else { copy X[b * 8 :+ 8] -> t }",
           "if present(X) and n > 4 { copy X[b * 8 :+ 8] -> t }",
           "if n > 4 { if present(X) { if b == 1 { copy X[b * 8 :+ 8] -> t } } }",
           "if not present(X) or n < 4 { fill t, 1.0f32 } else { copy X[b * 8 :+ 8] -> t }",
           "if (present(X) and n < 4) or (n > 9 and present(X)) { copy X[b * 8 :+ 8] -> t }",
           "parallel i in 8 { t[i] = select(present(X), X[i], 0.0f32) }",
           "parallel i in 8 { t[i] = select(not present(X), 0.0f32, X[i]) }",
           "parallel i in 8 { if present(X) and X[i] > 0.0f32 { t[i] = 1.0f32 } }",
           "parallel i in 8 { if not present(X) or X[i] > 0.0f32 { t[i] = 1.0f32 } }",
           "parallel i in 8 { if present(Z) { Z[i] = t[i] } }",
           "parallel i in 8 { if present(Z) { atomic_add(Z[i], t[i]) } }",
           "if present(X) and present(Z) { copy X[0 :+ 8] -> Z[0 :+ 8] }",
           "serial i in 0 .. 4 while present(X) { copy X[i * 8 :+ 8] -> t }",
           "if present(X) { pipelined i in 0 .. 4 { copy X[i * 8 :+ 8] -> t } }",
           "if not present(X) { return } copy X[b * 8 :+ 8] -> t",
           "l[0] = select(present(X), X[0], 0.0f32)",
           "copy t -> Y[b * 8 :+ 8]",
       })
    EXPECT_EQ(diagnose_with(body), "") << body;
}

TEST(PresenceCheck, WhatDoesNot) {
  for (const char* body : {
           "copy X[b * 8 :+ 8] -> t",
           "if n > 4 { copy X[b * 8 :+ 8] -> t }",
           "if present(Z) { copy X[b * 8 :+ 8] -> t }",
           "if present(X) { fill t, 1.0f32 } else { copy X[b * 8 :+ 8] -> t }",
           "if present(X) or n > 4 { copy X[b * 8 :+ 8] -> t }",
           "if not present(X) and n < 4 { fill t, 1.0f32 } else { copy X[b * 8 :+ 8] -> t }",
           "if present(X) { fill t, 1.0f32 } copy X[b * 8 :+ 8] -> t",
           "parallel i in 8 { t[i] = select(present(X), 0.0f32, X[i]) }",
           "parallel i in 8 { t[i] = select(X[i] > 0.0f32, 1.0f32, 0.0f32) }",
           "parallel i in 8 { if present(X) or X[i] > 0.0f32 { t[i] = 1.0f32 } }",
           "parallel i in 8 { if X[i] > 0.0f32 { t[i] = 1.0f32 } }",
           "parallel i in 8 { Z[i] = t[i] }",
           "parallel i in 8 { atomic_add(Z[i], t[i]) }",
           "if present(X) { copy X[0 :+ 8] -> Z[0 :+ 8] }",
           "l[0] = X[0]",
           "if X[0] > 0.0f32 { fill t, 1.0f32 }",
           "serial i in 0 .. cast(i64, X[0]) { fill t, 1.0f32 }",
           "fill t, X[0]",
       })
    EXPECT_NE(diagnose_with(body).find("[unguarded_access]"), std::string::npos) << body;
}

TEST(PresenceCheck, NamesTheTensorThePlaceAndAWayOut) {
  EXPECT_EQ(
      diagnose_with("copy t -> Z[b * 8 :+ 8]"),
      "t.tl:5:2: error [unguarded_access] k/copy#0: tensor 'Z' is optional and accessed where nothing says "
      "that the launch passes it (put it into 'if present(Z) { ... }', or into that side of a select)");
}

// Bits of 64 tensors are looked at together.
TEST(PresenceCheck, ManyTensors) {
  std::string declared = "tl 1 program t\n", body;
  for (int i = 0; i < 130; ++i) {
    const std::string x = "x" + std::to_string(i);
    declared += "tensor " + x + ": f32[8] readonly optional\n";
    body += i == 100 ? "copy " + x + " -> t\n" : "if present(" + x + ") { copy " + x + " -> t }\n";
  }
  const std::string said =
      diagnose(parsed(declared + "kernel k grid(b: 1) {\nalloc t: shared f32[8]\n" + body + "}"));
  EXPECT_NE(said.find("k/copy#0: tensor 'x100'"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
}

TEST(PresenceCheck, Declarations) {
  const std::string shape =
      diagnose(parsed("tl 1 program t tensor X: f32[8] optional tensor Y: f32[select(present(X), 8, "
                      "4)]\nkernel k grid(b: 1) { "
                      "parallel i in 4 { Y[i] = 0.0f32 } }"));
  EXPECT_NE(shape.find("[out_of_scope] Y: extent 0 of Y uses present(X)"), std::string::npos) << shape;
  EXPECT_EQ(diagnose(parsed(
                "tl 1 program t tensor X: f32[8] optional\nkernel k grid(b: select(present(X), 2, 0)) { "
                "parallel i in 4 { if present(X) { X[b * 4 + i] = 0.0f32 } } }")),
            "");
}

}  // namespace
}  // namespace tilegen::check
