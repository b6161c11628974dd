// Speed of the matrix atom alone: C[mr x nr] += A[mr x k] * B[k x nr] from packed panels that stay in the
// caches, by tile shape, and where compile time goes. The peak is measured with the same instruction on
// registers alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "codegen/host_code.h"
#include "codegen/host_cpu.h"

namespace {

using namespace tilegen;
using ir::DType;

struct Shape {
  int mr, nr;
  int64_t k;
  DType in, out;
  int pack;
};

thread::ThreadProgram program(const Shape& s) {
  thread::ThreadProgram p;
  p.name = "micro";
  p.grid = {p.exprs.const_int(1)};
  p.block_vars = {p.add_var("b", ir::VarKind::block_index)};
  auto tensor = [&](const char* name, DType t) {
    thread::Memory m;
    m.name = name;
    m.type = t;
    m.alignment = 64;
    m.param = static_cast<int>(p.params.size());
    thread::Param q;
    q.name = name;
    q.type = t;
    q.memory = p.add_memory(m);
    p.params.push_back(q);
    return q.memory;
  };
  thread::HostMma m;
  m.mr = s.mr, m.nr = s.nr, m.k = s.k, m.pack = s.pack;
  m.a = tensor("A", s.in), m.b = tensor("B", s.in), m.c = tensor("C", s.out);
  m.a_index = m.b_index = m.c_index = p.exprs.const_int(0);
  m.a_row = s.pack, m.a_k = static_cast<int64_t>(s.mr) * s.pack;  // A packed as [k / pack][mr][pack]
  m.b_k = static_cast<int64_t>(s.nr) * s.pack, m.c_row = s.nr;
  p.body = {p.add(m, "")};
  return p;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// f32 multiply-adds from registers only, in the widest vectors: what one core can do at the clock it runs at.
double peak_gflops_512() {
  constexpr int kSteps = 1000000;
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    double from = seconds();
    for (int s = 0; s < kSteps; ++s)
      asm volatile(
          ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
          "vfmadd231ps %%zmm30, %%zmm31, %%zmm\\n\n"
          ".endr" ::
              : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    best = std::max(best, 2.0 * 16 * 16 * kSteps / (seconds() - from) * 1e-9);
  }
  return best;
}

void measure(const Shape& s, const target::Target& target, bool show_assembly) {
  auto p = program(s);
  codegen::HostCodegenOptions options;
  options.keep_assembly = show_assembly;
  double t0 = seconds();
  auto r = codegen::compile_host({&p, 1}, target, options);
  double compile_ms = (seconds() - t0) * 1e3;
  if (!r) {
    std::printf("%s\n", r.error().to_text().c_str());
    return;
  }
  if (show_assembly) std::printf("%s\n", r->assembly.c_str());
  auto aligned = [](int64_t bytes) {
    void* m = std::aligned_alloc(64, static_cast<size_t>((bytes + 4096) / 64 * 64));
    std::memset(m, 0, static_cast<size_t>(bytes));
    return m;
  };
  void* a = aligned(s.mr * s.k * ir::dtype_bytes(s.in));
  void* b = aligned(s.nr * s.k * ir::dtype_bytes(s.in));
  void* c = aligned(s.mr * s.nr * ir::dtype_bytes(s.out));
  uint64_t params[] = {reinterpret_cast<uint64_t>(a), reinterpret_cast<uint64_t>(b),
                       reinterpret_cast<uint64_t>(c)};
  int64_t grid[] = {1};
  auto entry = r->code->entry(0);
  const int32_t go_on = 0;
  const double flops = 2.0 * s.mr * s.nr * static_cast<double>(s.k);
  const int64_t runs = static_cast<int64_t>(4e8 / flops) + 1;
  double best = 1e30;
  for (int round = 0; round < 7; ++round) {
    double from = seconds();
    for (int64_t i = 0; i < runs; ++i) entry(params, grid, 0, 1, nullptr, &go_on);
    best = std::min(best, (seconds() - from) / static_cast<double>(runs));
  }
  std::printf(
      "%-4s %2dx%-3d k=%-5ld pack=%d %9.1f GFLOP/s   compile %.1f ms (emit %.2f optimise %.2f generate "
      "%.2f)\n",
      ir::dtype_name(s.in), s.mr, s.nr, static_cast<long>(s.k), s.pack, flops / best * 1e-9, compile_ms,
      r->emit_ms, r->optimise_ms, r->codegen_ms);
  std::free(a), std::free(b), std::free(c);
}

}  // namespace

int main(int argc, char** argv) {
  target::Target target;
  target.cpu = codegen::host_cpu().name;
  target.features = codegen::host_cpu().features;
  if (argc > 1 && std::string(argv[1]) == "v3") target.cpu = "x86-64-v3", target.features.clear();
  std::printf(
      "%s\n%s, %d-bit vectors, L1 %ld L2 %ld L3 %ld\n", codegen::backend_description().c_str(),
      target.cpu.c_str(), codegen::host_cpu().vector_bits(), static_cast<long>(codegen::host_cpu().l1_bytes),
      static_cast<long>(codegen::host_cpu().l2_bytes), static_cast<long>(codegen::host_cpu().l3_bytes));
  if (codegen::host_cpu().avx512f) std::printf("peak from registers, f32: %.1f GFLOP/s\n", peak_gflops_512());
  if (argc > 3) {
    measure({std::atoi(argv[2]), std::atoi(argv[3]), 256, DType::f32, DType::f32, 1}, target, true);
    return 0;
  }
  for (int nr : {16, 32, 48, 64})
    for (int mr : {4, 6, 8, 9, 12, 13, 14, 24, 28})
      if (mr * nr / 16 <= 30 && mr * nr / 16 >= 6)
        measure({mr, nr, 256, DType::f32, DType::f32, 1}, target, false);
  for (int64_t k : {32, 64, 128, 512, 1024}) measure({14, 32, k, DType::f32, DType::f32, 1}, target, false);
  measure({14, 16, 256, DType::f64, DType::f64, 1}, target, false);
  measure({14, 32, 256, DType::f16, DType::f32, 1}, target, false);
  measure({14, 32, 256, DType::bf16, DType::f32, 1}, target, false);
  measure({14, 32, 256, DType::bf16, DType::f32, 2}, target, false);
  for (int mr : {12, 13, 14}) measure({mr, 32, 256, DType::i8, DType::i32, 4}, target, false);
  measure({14, 32, 256, DType::u8, DType::i32, 4}, target, false);
  return 0;
}
