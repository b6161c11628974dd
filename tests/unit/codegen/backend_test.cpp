// One interface to all code generators: each target's makes code of the form that its loader takes.
#include "codegen/backend.h"

#include "gpu_kernel_builder.h"

namespace tilegen::codegen::test {
namespace {

template <class Builder>
thread::ThreadProgram store_seven(Builder&& kb) {
  const MemoryId y = kb.tensor("y", DType::i32);
  kb.p.body = {kb.store(y, kb.i(0), kb.p.exprs.const_int(7, DType::i32))};
  return kb.p;
}

Expected<Code> compiled(const thread::ThreadProgram& p, const target::Target& t, bool keep) {
  CodeOptions options;
  options.keep_ir = options.keep_assembly = keep;
  return backend_of(t).compile({&p, 1}, t, options);
}

TEST(Backend, EveryTargetHasOneOfItsForm) {
  for (const std::string& name : target::target_names()) {
    const target::Target t = *target::find_target(name);
    EXPECT_EQ(backend_of(t).format, t.code) << name;
  }
}

TEST(Backend, HostCodeIsAnObjectThatRunsHere) {
  const thread::ThreadProgram p = store_seven(KernelBuilder("seven"));
  for (const target::Target& t : runnable_targets()) {
    const auto code = compiled(p, t, false);
    ASSERT_TRUE(code) << code.error().to_text();
    EXPECT_EQ(code->bytes.substr(0, 4),
              "\x7f"
              "ELF");
    EXPECT_NE(code->bytes.find("seven"), std::string::npos);
    EXPECT_TRUE(code->assembly.empty() && code->llvm_ir.empty());
    ASSERT_TRUE(code->in_process);
    int32_t y = 0;
    const uint64_t params[] = {slot(&y)};
    const int64_t grid[] = {1};
    const int32_t go_on = 0;
    code->in_process->entry(0)(params, grid, 0, 1, nullptr, &go_on);
    EXPECT_EQ(y, 7);
  }
}

TEST(Backend, PtxIsText) {
  const thread::ThreadProgram p = store_seven(GpuBuilder(32, "seven"));
  const auto code = compiled(p, gpu(80), true);
  ASSERT_TRUE(code) << code.error().to_text();
  EXPECT_HAS(code->bytes, ".entry seven(");
  EXPECT_EQ(code->assembly, code->bytes);
  EXPECT_HAS(code->llvm_ir, "@seven");
  EXPECT_HAS(code->llvm_ir_optimised, "@seven");
  EXPECT_FALSE(code->in_process);
  EXPECT_FALSE(backend_of(gpu(80)).compile({&p, 1}, this_machine(), {})) << "PTX of a host";
}

}  // namespace
}  // namespace tilegen::codegen::test
