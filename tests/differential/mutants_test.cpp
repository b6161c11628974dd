// Mechanical defects of lowered programs, under the simulator: each must show, as a finding or in the values.
// What survives is printed; a barrier or wait that can go without being missed is one too many.
#include "../unit/sim/mutants.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "data.h"
#include "driver/compile.h"
#include "ir/text.h"
#include "runtime/sim/sim_executable.h"

namespace tilegen::differential {
namespace {

using sim::test::MutantReport;
using sim::test::Mutation;

// A program's kernel with random tensors of its shapes for the dims given, in parameter order.
class LoweredKernel {
 public:
  LoweredKernel(const std::string& file, std::vector<int64_t> dims, std::vector<int64_t> tensor_elements) {
    std::stringstream text;
    text << std::ifstream(TILEGEN_SOURCE_DIR "/tests/files/" + file).rdbuf();
    auto parsed = ir::parse_program(text.str(), file, Limits{});
    EXPECT_TRUE(parsed) << parsed.error().to_text();
    program_ = std::make_shared<const ir::Program>(std::move(*parsed));
    auto artifact = driver::compile(program_, *target::find_target("sim:sm_80"), {});
    EXPECT_TRUE(artifact) << artifact.error().to_text();
    artifact_ = *artifact;
    size_t dim = 0, tensor = 0;
    for (const ir::Param& p : program_->params) {
      slots_.push_back(p.kind == ir::Param::Kind::tensor ? 0 : static_cast<uint64_t>(dims[dim++]));
      extents_.emplace_back();
      types_.push_back(p.kind == ir::Param::Kind::tensor ? program_->buffer(p.buffer).type : ir::DType::none);
      elements_.push_back(p.kind == ir::Param::Kind::tensor ? tensor_elements[tensor++] : 0);
    }
  }

  const thread::ThreadProgram& kernel() const { return artifact_->kernels[0]; }

  // Memory behind a run, and its findings.
  std::vector<std::vector<uint64_t>> run(const thread::ThreadProgram& p,
                                         std::vector<sim::FindingKind>* findings) {
    std::vector<std::vector<uint64_t>> memory(slots_.size());
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (types_[i] == ir::DType::none) continue;
      const int64_t bytes = elements_[i] * ir::dtype_bytes(types_[i]);
      memory[i].resize(static_cast<size_t>(bytes + 7) / 8);
      Random random(11, "tensor" + std::to_string(i));
      for (int64_t e = 0; e < elements_[i]; ++e) {
        const uint64_t bits = random_element(random, types_[i], Data::integers, 4);
        std::memcpy(reinterpret_cast<std::byte*>(memory[i].data()) + e * ir::dtype_bytes(types_[i]), &bits,
                    static_cast<size_t>(ir::dtype_bytes(types_[i])));
      }
      slots_[i] = std::bit_cast<uint64_t>(memory[i].data());
      extents_[i] = {0, bytes};
    }
    sim::SimOptions options;
    options.count = false;
    auto result = sim::simulate(p, artifact_->target, slots_, extents_, options);
    EXPECT_TRUE(result) << result.error().to_text();
    for (const sim::Finding& f : result->findings) findings->push_back(f.kind);
    return memory;
  }

  MutantReport judge(size_t limit) {
    std::vector<sim::FindingKind> clean;
    const auto expected = run(kernel(), &clean);
    EXPECT_TRUE(clean.empty());
    return judge_mutants(sim::test::mutants_of(kernel(), limit), [&](const thread::ThreadProgram& p) {
      sim::test::MutantOutcome outcome;
      outcome.values_differ = run(p, &outcome.findings) != expected;
      return outcome;
    });
  }

 private:
  std::shared_ptr<const ir::Program> program_;
  std::shared_ptr<const driver::Artifact> artifact_;
  std::vector<uint64_t> slots_;
  std::vector<sim::TensorExtent> extents_;
  std::vector<ir::DType> types_;
  std::vector<int64_t> elements_;
};

void expect_order_is_needed(const MutantReport& report, const std::string& name) {
  std::cout << name << ":\n" << report.to_text();
  for (Mutation m : {Mutation::barrier_removed, Mutation::wait_weakened, Mutation::slots_reduced}) {
    const auto row = report.rows.find(m);
    if (row == report.rows.end()) continue;
    EXPECT_EQ(row->second.survived, 0) << name << ", " << mutation_name(m);
    EXPECT_EQ(row->second.by_values, 0) << name << ", " << mutation_name(m) << ": seen by luck only";
  }
}

TEST(LoweredMutants, OfAMatrixProduct) {
  LoweredKernel k("lower/gpu/gemm_f16_nn.tl", {136, 72, 200}, {136 * 200, 200 * 72, 136 * 72});
  const MutantReport report = k.judge(40);
  expect_order_is_needed(report, "gemm_f16_nn");
  EXPECT_GT(report.rows.at(Mutation::barrier_removed).mutants, 0);
  EXPECT_GT(report.rows.at(Mutation::wait_weakened).mutants, 0);
  EXPECT_EQ(report.rows.at(Mutation::swizzle_dropped).survived, 0);
}

TEST(LoweredMutants, OfTwoChainedProducts) {
  LoweredKernel k("lower/gpu/chained_gemm.tl", {}, {128 * 64, 64 * 64, 128 * 64});
  expect_order_is_needed(k.judge(40), "chained_gemm");
}

}  // namespace
}  // namespace tilegen::differential
