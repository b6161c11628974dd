// What cannot be compiled is an error value, and the next compile works; compiles may run side by side.
#include <atomic>
#include <thread>

#include "kernel_builder.h"
#include "support/diag_codes.h"

namespace tilegen::codegen::test {
namespace {

thread::ThreadProgram add_one(int64_t amount) {
  KernelBuilder kb("add");
  MemoryId x = kb.tensor("x", DType::f32);
  ir::VarId lane = kb.loop_var("lane");
  ExprId v = kb.p.exprs.add(kb.load(x, kb.var(lane)),
                            kb.p.exprs.const_float(static_cast<double>(amount), DType::f32));
  kb.p.body = {kb.loop(thread::LoopForm::vectorized, lane, kb.i(16), {kb.store(x, kb.var(lane), v)})};
  return kb.p;
}

constexpr int32_t go_on = 0;

bool works(int64_t amount) {
  auto p = add_one(amount);
  auto r = compile_host({&p, 1}, this_machine(), {});
  if (!r) return false;
  float x[16] = {};
  uint64_t params[] = {slot(x)};
  int64_t grid[] = {1};
  r->code->entry(0)(params, grid, 0, 1, nullptr, &go_on);
  for (float v : x)
    if (v != static_cast<float>(amount)) return false;
  return true;
}

void expect_failure(const Expected<HostCodeResult>& r, const char* part) {
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::backend_failure);
  EXPECT_NE(r.error().to_text().find(part), std::string::npos) << r.error().to_text();
  EXPECT_FALSE(r.error().diagnostics[0].hint.empty());
  EXPECT_TRUE(works(3));
}

TEST(Failure, UnknownProcessor) {
  auto p = add_one(1);
  target::Target t = this_machine();
  t.cpu = "abacus";
  expect_failure(compile_host({&p, 1}, t, {}), "abacus");
  t = this_machine();
  t.features = {"+telepathy"};
  expect_failure(compile_host({&p, 1}, t, {}), "telepathy");
}

TEST(Failure, SeveralThreadsPerBlock) {
  auto p = add_one(1);
  p.threads = 32;
  expect_failure(compile_host({&p, 1}, this_machine(), {}), "one thread per block");
}

// A processor without conversions between half and float would call a library function.
TEST(Failure, OutsideFunctions) {
  KernelBuilder kb;
  MemoryId x = kb.tensor("x", DType::f16);
  kb.p.body = {kb.store(x, kb.i(0), kb.p.exprs.add(kb.load(x, kb.i(0)), kb.load(x, kb.i(1))))};
  target::Target t = baseline();
  t.features = {"-f16c", "-avx512fp16"};
  expect_failure(compile_host({&kb.p, 1}, t, {}), "outside functions");
}

// A processor without 64-bit mode makes LLVM give up with a fatal error, which ends a process by default.
TEST(Failure, FatalErrorIsCaught) {
  auto p = add_one(1);
  target::Target t = this_machine();
  t.features = {"-64bit"};
  t.cpu = "i586";
  expect_failure(compile_host({&p, 1}, t, {}), "LLVM");
}

TEST(Compile, FromSeveralThreadsAtOnce) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 6; ++round)
        if (works(t * 10 + round)) good.fetch_add(1);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good.load(), 24);
}

TEST(Compile, SeveralKernelsOfOneName) {
  std::vector<thread::ThreadProgram> kernels{add_one(1), add_one(20)};
  auto r = compile_host(kernels, this_machine(), {});
  ASSERT_TRUE(r);
  float x[16] = {};
  uint64_t params[] = {slot(x)};
  int64_t grid[] = {1};
  r->code->entry(0)(params, grid, 0, 1, nullptr, &go_on);
  r->code->entry(1)(params, grid, 0, 1, nullptr, &go_on);
  EXPECT_EQ(x[15], 21);
}

TEST(Compile, TextsOnRequest) {
  auto p = add_one(1);
  HostCodegenOptions options;
  auto r = compile_host({&p, 1}, this_machine(), options);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->llvm_ir.empty() && r->llvm_ir_optimised.empty() && r->assembly.empty());
  options.keep_ir = options.keep_assembly = true;
  r = compile_host({&p, 1}, this_machine(), options);
  ASSERT_TRUE(r);
  EXPECT_NE(r->llvm_ir.find("define void @add_0"), std::string::npos);
  EXPECT_NE(r->llvm_ir_optimised.find("define void @add_0"), std::string::npos);
  EXPECT_NE(r->assembly.find("add_0:"), std::string::npos);
  EXPECT_GT(r->codegen_ms, 0);
}

TEST(Compile, Description) {
  EXPECT_NE(backend_description().find("LLVM 19"), std::string::npos);
  for (const char* target : {"X86", "NVPTX", "AMDGPU"})
    EXPECT_NE(backend_description().find(target), std::string::npos) << target;
  EXPECT_FALSE(host_cpu().name.empty());
  EXPECT_TRUE(host_cpu().vector_bits() == 128 || host_cpu().vector_bits() == 256 ||
              host_cpu().vector_bits() == 512);
}

}  // namespace
}  // namespace tilegen::codegen::test
