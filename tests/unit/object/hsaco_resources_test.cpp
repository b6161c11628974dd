// What code says that its kernels need, against the listing of the same code; bytes that are cut or spoilt.
#include "object/hsaco_resources.h"

#include <gtest/gtest.h>

#include "driver/compile.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::object {
namespace {

// Sums of products of matrix instructions, and a kernel without.
constexpr const char* kText = R"(tl 1 program two
tensor A: f16[256, 128] readonly
tensor B: f16[256, 128] readonly
tensor C: f32[256, 256]
tensor X: f32[4096]
kernel product grid (b: 1) threads 256 {
  alloc As: shared f16[256, 32]
  alloc Bs: shared f16[256, 32]
  alloc acc: fragment f32[256, 256]
  fill acc, 0.0f32
  pipelined ko in 0 .. 4 {
    copy A[0 :+ 256, ko * 32 :+ 32] -> As
    copy B[0 :+ 256, ko * 32 :+ 32] -> Bs
    gemm As, Bs -> acc {transpose_b}
  }
  copy acc -> C[0 :+ 256, 0 :+ 256]
}
kernel scale grid (b: 16) threads 64 {
  parallel i in 256 { X[b * 256 + i] = X[b * 256 + i] * 2.0f32 }
}
)";

std::shared_ptr<const driver::Artifact> compiled(const char* target) {
  auto parsed = ir::parse_program(kText, "two.tl", Limits());
  EXPECT_TRUE(parsed) << parsed.error().to_text();
  driver::CompileOptions options;
  options.keep_assembly = true;
  auto artifact = driver::compile(std::make_shared<const ir::Program>(std::move(*parsed)),
                                  *target::find_target(target), options);
  EXPECT_TRUE(artifact) << artifact.error().to_text();
  return *artifact;
}

// The number behind `name: ` of a kernel's metadata in the listing.
int64_t listed(const std::string& listing, const std::string& kernel, const std::string& name) {
  const size_t all = listing.find("amdhsa.kernels:");
  const size_t symbol = listing.find(".name:           " + kernel + "\n", all);
  EXPECT_NE(symbol, std::string::npos) << listing.substr(std::min(all, listing.size()));
  size_t begin = listing.rfind("  - ", symbol), next;
  while (listing.compare(listing.rfind('\n', begin) + 1, 4, "  - ") != 0)
    begin = listing.rfind("  - ", begin - 1);
  next = listing.find("\n  - ", symbol);
  const size_t at = listing.find(name + ":", begin);
  EXPECT_LT(at, next) << name;
  return std::atoll(listing.c_str() + at + name.size() + 1);
}

TEST(HsacoResources, AreThoseOfTheListing) {
  for (const char* target : {"gfx942", "gfx90a"}) {
    const auto artifact = compiled(target);
    auto kernels = hsaco_resources(artifact->code);
    ASSERT_TRUE(kernels) << kernels.error().to_text();
    ASSERT_EQ(kernels->size(), 2u);
    for (const KernelResources& k : *kernels) {
      const auto number = [&](const char* name) { return listed(artifact->assembly, k.name, name); };
      EXPECT_EQ(k.vector_registers, number(".vgpr_count")) << k.name;
      EXPECT_EQ(k.accumulation_registers, number(".agpr_count")) << k.name;
      EXPECT_EQ(k.scalar_registers, number(".sgpr_count")) << k.name;
      EXPECT_EQ(k.scratch_bytes, number(".private_segment_fixed_size")) << k.name;
      EXPECT_EQ(k.shared_bytes, number(".group_segment_fixed_size")) << k.name;
      EXPECT_GT(k.scalar_registers, 0) << k.name;
    }
    EXPECT_EQ((*kernels)[0].name, "product");
    EXPECT_GE((*kernels)[0].vector_registers, 256);  // sums of 256 elements each
    EXPECT_GT((*kernels)[0].accumulation_registers, 0);
    EXPECT_GT((*kernels)[0].shared_bytes, 0);
    EXPECT_EQ((*kernels)[1].accumulation_registers, 0);
  }
}

TEST(HsacoResources, OfSpoiltBytesAreRefusedOrRead) {
  const std::string code = compiled("gfx942")->code;
  for (size_t size = 0; size < 4096 && size < code.size(); size += 7) {
    auto cut = hsaco_resources(std::string_view(code).substr(0, size));
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().diagnostics.at(0).code, DiagCode::backend_failure);
  }
  const size_t note = code.find("amdhsa.kernels");
  ASSERT_NE(note, std::string::npos);
  int refused = 0;
  for (size_t at = note > 64 ? note - 64 : 0; at < note + 256; ++at)
    for (const char byte : {'\x00', '\xc1', '\xdd', '\xdf', '\xdb', '\xff'}) {
      std::string spoilt = code;
      spoilt[at] = byte;
      refused += !hsaco_resources(spoilt);
    }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tilegen::object
