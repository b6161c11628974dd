// A machine with the stand-in for the HIP runtime, and programs compiled to launch on it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/compile.h"
#include "fake_hip.h"
#include "ir/text.h"
#include "runtime/gpu/gpu_executable.h"
#include "runtime/gpu/memory.h"
#include "runtime/hip/driver.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::hip {

using namespace gpu;

inline FakeHip& fake() {
  static FakeHip controls(TILEGEN_FAKE_HIP_RUNTIME);
  return controls;
}

using Code = std::shared_ptr<const driver::Artifact>;

inline Code compile(const std::string& text, const char* target = "gfx942") {
  auto parsed = ir::parse_program(text, "p.tl", Limits());
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().to_text());
  auto artifact = driver::compile(std::make_shared<const ir::Program>(std::move(*parsed)),
                                  *target::find_target(target), {});
  EXPECT_TRUE(artifact) << (artifact ? "" : artifact.error().to_text());
  return *artifact;
}

// Y = X * s, rows in blocks of eight.
constexpr char kScale[] =
    "tl 1 program scaling\n"
    "dim m\n"
    "scalar s: f32\n"
    "tensor X: f32[m, 32] readonly\n"
    "tensor Y: f32[m, 32]\n"
    "kernel scale grid(b: ceildiv(m, 8)) threads 64 {\n"
    "  alloc x: shared f32[8, 32]\n"
    "  copy X[b * 8 :+ 8, 0 :+ 32] -> x\n"
    "  parallel i, j in 8, 32 {\n"
    "    x[i, j] = x[i, j] * s\n"
    "  }\n"
    "  copy x -> Y[b * 8 :+ 8, 0 :+ 32]\n"
    "}\n";
inline Code scale() {
  static const Code code = compile(kScale);
  return code;
}

// C = A * B, halves of k in a workspace that a second kernel sums.
constexpr char kProduct[] =
    "tl 1 program product\n"
    "dim m\n"
    "tensor A: f16[m, 64] readonly\n"
    "tensor B: f16[64, 32] readonly\n"
    "tensor P: f32[2, m, 32] workspace\n"
    "tensor C: f32[m, 32]\n"
    "kernel halves grid(h: 2, b: ceildiv(m, 32)) threads 64 {\n"
    "  alloc a: shared f16[32, 32]\n"
    "  alloc w: shared f16[32, 32]\n"
    "  alloc c: fragment f32[32, 32]\n"
    "  fill c, 0.0f32\n"
    "  copy A[b * 32 :+ 32, h * 32 :+ 32] -> a\n"
    "  copy B[h * 32 :+ 32, 0 :+ 32] -> w\n"
    "  gemm a, w -> c\n"
    "  copy c -> P[h :+ 1, b * 32 :+ 32, 0 :+ 32]\n"
    "}\n"
    "kernel sum grid(b: ceildiv(m, 32)) threads 64 {\n"
    "  alloc x: fragment f32[32, 32]\n"
    "  alloc y: fragment f32[32, 32]\n"
    "  copy P[0 :+ 1, b * 32 :+ 32, 0 :+ 32] -> x\n"
    "  copy P[1 :+ 1, b * 32 :+ 32, 0 :+ 32] -> y\n"
    "  parallel i, j in 32, 32 {\n"
    "    x[i, j] = x[i, j] + y[i, j]\n"
    "  }\n"
    "  copy x -> C[b * 32 :+ 32, 0 :+ 32]\n"
    "}\n";
inline Code product() {
  static const Code code = compile(kProduct);
  return code;
}

inline Argument integer(int64_t v) {
  Argument a;
  a.kind = Argument::Kind::integer;
  a.bits = static_cast<uint64_t>(v);
  return a;
}
inline Argument floating(double v) {
  Argument a;
  a.kind = Argument::Kind::floating;
  a.bits = std::bit_cast<uint64_t>(v);
  return a;
}
inline Argument address(const void* at) {
  Argument a;
  a.kind = Argument::Kind::pointer;
  a.bits = reinterpret_cast<uint64_t>(at);
  return a;
}

class FakeMachine : public testing::Test {
 protected:
  void SetUp() override { fake().fake_reset(); }

  // The runtime of a machine that the controls have set up.
  Driver& driver() {
    if (!driver_) {
      auto loaded = Driver::load(TILEGEN_FAKE_HIP_RUNTIME);
      EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().to_text());
      driver_ = std::move(*loaded);
    }
    return *driver_;
  }
  std::unique_ptr<Executable> executable(Code code, int ordinal = 0) {
    auto loaded = load_on_gpu(driver(), std::move(code), ordinal);
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().to_text());
    return std::move(*loaded);
  }
  template <class T>
  T* send(const std::vector<T>& host, int ordinal = 0) {
    const Device& device = driver().devices()[static_cast<size_t>(ordinal)];
    auto memory = gpu::allocate(driver(), device, host.size() * sizeof(T));
    EXPECT_TRUE(memory &&
                gpu::copy(driver(), device, *memory, host.data(), host.size() * sizeof(T), nullptr));
    return static_cast<T*>(*memory);
  }
  template <class T>
  std::vector<T> fetch(const T* memory, size_t count) {
    std::vector<T> host(count);
    const Checked ok =
        gpu::copy(driver(), driver().devices()[0], host.data(), memory, count * sizeof(T), nullptr);
    EXPECT_TRUE(ok) << (ok ? "" : ok.error().to_text());
    return host;
  }
  static const FakeHipLaunch& last(int back = 0) {
    return *fake().fake_launch(fake().fake_launches() - 1 - back);
  }
  int calls_of(const auto& action) {
    const int before = fake().fake_all_calls();
    action();
    return fake().fake_all_calls() - before;
  }

 private:
  std::unique_ptr<Driver> driver_;
};

inline void expect_refusal(const Checked& result, DiagCode code, const std::string& part,
                           const std::string& hint_part = "") {
  ASSERT_FALSE(result) << "accepted; expected: " << part;
  const Diagnostic& d = result.error().diagnostics.at(0);
  EXPECT_EQ(diag_name(d.code), std::string(diag_name(code))) << d.to_text();
  EXPECT_NE(d.message.find(part), std::string::npos) << d.to_text();
  EXPECT_NE(d.hint.find(hint_part), std::string::npos) << d.to_text();
  EXPECT_FALSE(d.hint.empty()) << d.to_text();
}

}  // namespace tilegen::runtime::hip
