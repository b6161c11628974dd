// A machine with the stand-in for the CUDA driver, and artifacts made by hand to launch on it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/compile.h"
#include "fake_control.h"
#include "ir/text.h"
#include "runtime/cuda/driver.h"
#include "runtime/gpu/gpu_executable.h"

namespace tilegen::runtime::cuda {

using namespace gpu;

inline FakeCuda& fake() {
  static FakeCuda controls(TILEGEN_FAKE_CUDA_DRIVER);
  return controls;
}

class FakeMachine : public testing::Test {
 protected:
  void SetUp() override { fake().fake_reset(); }
  void TearDown() override { fake().fake_set_current(nullptr); }

  // The driver of a machine that the controls have set up.
  Driver& driver() {
    if (!driver_) {
      auto loaded = Driver::load(TILEGEN_FAKE_CUDA_DRIVER);
      EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().to_text());
      driver_ = std::move(*loaded);
    }
    return *driver_;
  }
  std::unique_ptr<Executable> executable(std::shared_ptr<const driver::Artifact> artifact, int ordinal = 0) {
    auto loaded = load_on_gpu(driver(), std::move(artifact), ordinal);
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().to_text());
    return std::move(*loaded);
  }

 private:
  std::unique_ptr<Driver> driver_;
};

// Parameters m, X: f32[m, 8], Y: f32[m, 8]; kernels as told by add().
class ArtifactBuilder {
 public:
  explicit ArtifactBuilder(const std::string& kernels = "scale", const std::string& declarations =
                                                                     "dim m\ntensor X: f32[m, 8] readonly\n"
                                                                     "tensor Y: f32[m, 8]\n") {
    std::string text = "tl 1 program p\n" + declarations;
    for (size_t at = 0; at <= kernels.size();) {
      const size_t end = std::min(kernels.find(' ', at), kernels.size());
      text += "kernel " + kernels.substr(at, end - at) + " grid(b: 1) {\n}\n";
      at = end + 1;
    }
    auto parsed = ir::parse_program(text, "p.tl", Limits());
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().to_text());
    artifact_.program = std::make_shared<const ir::Program>(std::move(*parsed));
    artifact_.target = *target::find_target("sm_80");
    artifact_.code = ".version 7.8\n.target sm_80\n";
  }

  // The next kernel begins with this version; ceildiv(m, rows) blocks.
  thread::ThreadProgram& kernel(const std::string& name, int64_t rows = 4) {
    artifact_.versions.push_back({artifact_.kernels.size(), 0});
    return version(name, rows);
  }
  // Another version of the kernel begun last.
  thread::ThreadProgram& version(const std::string& name, int64_t rows = 4) {
    ++artifact_.versions.back().count;
    thread::ThreadProgram p;
    p.name = name;
    p.machine = artifact_.target;
    p.threads = 128;
    for (const ir::Param& from : artifact_.program->params) {
      thread::Param q;
      q.kind = static_cast<thread::Param::Kind>(from.kind);
      if (from.kind == ir::Param::Kind::tensor) {
        const ir::Buffer& buffer = artifact_.program->buffer(from.buffer);
        q.name = buffer.name;
        q.type = buffer.type;
        thread::Memory m;
        m.name = buffer.name, m.type = buffer.type, m.param = static_cast<int>(p.params.size());
        q.memory = p.add_memory(m);
      } else {
        q.name = artifact_.program->var(from.var).name;
        q.var = p.add_var(q.name, artifact_.program->var(from.var).kind);
      }
      p.params.push_back(q);
    }
    p.grid = {p.exprs.ceildiv(p.exprs.var(p.params[0].var), p.exprs.const_int(rows))};
    artifact_.kernels.push_back(std::move(p));
    return artifact_.kernels.back();
  }

  std::shared_ptr<const driver::Artifact> done() {
    for (const thread::ThreadProgram& k : artifact_.kernels) {
      artifact_.code += ".visible .entry " + k.name + "(";
      for (size_t i = 0; i < k.params.size(); ++i)
        artifact_.code += (i ? ", " : "") + std::string(".param .u64 p") + std::to_string(i);
      for (size_t i = 0; i < k.tensor_maps.size(); ++i)
        artifact_.code += ", .param .align 64 .b8 map" + std::to_string(i) + "[128]";
      if (k.dynamic_tiles) artifact_.code += ", .param .u64 counter";
      artifact_.code += std::string(") { ") + (k.dependent ? "griddepcontrol.wait; " : "") + "ret; }\n";
    }
    return std::make_shared<const driver::Artifact>(std::move(artifact_));
  }

  driver::Artifact artifact_;
};

inline std::shared_ptr<const driver::Artifact> one_kernel() {
  ArtifactBuilder b;
  b.kernel("scale");
  return b.done();
}

inline Argument integer(int64_t v) {
  Argument a;
  a.kind = Argument::Kind::integer;
  a.bits = static_cast<uint64_t>(v);
  return a;
}
inline Argument address(uint64_t at) {
  Argument a;
  a.kind = Argument::Kind::pointer;
  a.bits = at;
  return a;
}
inline std::vector<Argument> arguments(int64_t m, uint64_t x = 4096, uint64_t y = 8192) {
  return {integer(m), address(x), address(y)};
}

inline void expect_refusal(const Checked& result, DiagCode code, const std::string& part,
                           const std::string& hint_part = "") {
  ASSERT_FALSE(result) << "accepted; expected: " << part;
  const Diagnostic& d = result.error().diagnostics.at(0);
  EXPECT_EQ(diag_name(d.code), std::string(diag_name(code))) << d.to_text();
  EXPECT_NE(d.message.find(part), std::string::npos) << d.to_text();
  EXPECT_NE(d.hint.find(hint_part), std::string::npos) << d.to_text();
  EXPECT_FALSE(d.hint.empty()) << d.to_text();
}

}  // namespace tilegen::runtime::cuda
