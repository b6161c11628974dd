// Scans: their operands are held alike, free iterations follow the axis.
#include "inferred.h"

namespace tilegen::infer {
namespace {

std::string scan_text(const std::string& tile, const std::string& attributes) {
  return "tl 1 program p\ntensor X: " + tile + "\nkernel k grid (b: 1) threads 128 {\n alloc s: shared " +
         tile + "\n alloc f: fragment " + tile + "\n copy X -> s\n cumsum s -> s {" + attributes +
         "}\n copy s -> f\n copy f -> X\n}\n";
}

TEST(Scan, ItsValuesAreHeldAlike) {
  Inferred k(R"(tl 1 program p
tensor A: f16[64, 64] readonly
tensor D: f32[64, 64]
kernel k grid (b: 1) threads 128 {
  alloc a: shared f16[64, 64]
  alloc c: fragment f32[64, 64]
  alloc d: fragment f32[64, 64]
  copy A -> a
  gemm a, a -> c {clear}
  cumsum c -> d {axis=1}
  copy d -> D
}
)");
  EXPECT_TRUE(k.fragment("d").equivalent(k.gemm().c));
  EXPECT_TRUE(k.op("cumsum#0").iteration->equivalent(k.gemm().c));
  EXPECT_NE(k.op("cumsum#0").reason.find("lanes"), std::string::npos) << k.op("cumsum#0").reason;
  EXPECT_TRUE(k.result().conversions.empty());
}

// Along rows vectors and lanes; across them threads take columns, and what is left of them blocks of rows.
TEST(Scan, FreeIterationsFollowTheAxis) {
  EXPECT_EQ(Inferred(scan_text("f32[64, 128]", "axis=1")).op("cumsum#0").reason,
            "cheapest accesses and exchange of 6 candidates; the axis goes by 4 registers, 32 lanes");
  EXPECT_EQ(Inferred(scan_text("f32[64, 128]", "axis=0")).op("cumsum#0").reason,
            "cheapest accesses and exchange of 10 candidates; the axis goes by 16 registers, 4 parts through "
            "scratch");
  EXPECT_EQ(Inferred(scan_text("f32[64, 512]", "axis=0")).op("cumsum#0").reason,
            "cheapest accesses and exchange of 10 candidates; the axis goes by 64 registers");
}

TEST(Scan, MoreRegistersThanAThreadHasAreRefused) {
  const Inferred k(scan_text("i8[512, 512]", "axis=1"));
  EXPECT_NE(
      k.error().to_text().find("[limit_memory] k/cumsum#0: each thread would have 2048 registers of it, more"
                               " than 1024 (use a smaller tile or more threads)"),
      std::string::npos)
      << k.error().to_text();
}

}  // namespace
}  // namespace tilegen::infer
