// Host GEMM: f32 against OpenBLAS, bf16 and i8 against oneDNN where it is there and against our f32, time of
// compiling by stage, memory that compiling adds.
//   gemm_host [results.json]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "element.h"
#include "gemm_program.h"
#include "measure.h"
#include "onednn.h"
#include "openblas.h"
#include "subject.h"

namespace {

using bench::Json;
using bench::Samples;

struct Matrices {
  int64_t m, n, k;
  bench::Array<float> a, b, c, expected;
  bench::Array<uint16_t> a16, b16;
  bench::Array<int8_t> a8, b8;
  bench::Array<int32_t> c32, expected32;

  Matrices(int64_t rows, int64_t cols, int64_t depth) : m(rows), n(cols), k(depth) {
    a.resize(static_cast<size_t>(m * k));
    b.resize(static_cast<size_t>(k * n));
    c.resize(static_cast<size_t>(m * n));
    expected.resize(c.size());
    a16.resize(a.size());
    b16.resize(b.size());
    a8.resize(a.size());
    b8.resize(b.size());
    c32.resize(c.size());
    expected32.resize(c.size());
    element_random(TL_F32, a.data(), a.size(), 1);
    element_random(TL_F32, b.data(), b.size(), 2);
    element_random(TL_I8, a8.data(), a8.size(), 3);
    element_random(TL_I8, b8.data(), b8.size(), 4);
    for (size_t i = 0; i < a.size(); ++i) element_set(TL_BF16, a16.data(), i, a[i]);
    for (size_t i = 0; i < b.size(); ++i) element_set(TL_BF16, b16.data(), i, b[i]);
  }
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  std::string shape() const { return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k); }
  std::vector<tl_arg> arguments(tl_dtype dtype) {
    const auto with = [&](void* left, void* right, tl_arg out) -> std::vector<tl_arg> {
      return {bench::integer(m),
              bench::integer(n),
              bench::integer(k),
              bench::pointer(dtype, left),
              bench::pointer(dtype, right),
              out};
    };
    if (dtype == TL_I8) return with(a8.data(), b8.data(), bench::pointer(TL_I32, c32.data()));
    const tl_arg sums = bench::pointer(TL_F32, c.data());
    return dtype == TL_BF16 ? with(a16.data(), b16.data(), sums) : with(a.data(), b.data(), sums);
  }
};

gemm_spec make_spec(tl_dtype dtype, bool bias) {
  gemm_spec spec{};
  spec.dtype = dtype;
  spec.bias_dtype = bias ? TL_F32 : 0;
  spec.sum_dtype = spec.out_dtype = gemm_sum_dtype(dtype);
  return spec;
}

bench::Subject make_subject(const tool::Context& context, tl_dtype dtype) {
  const gemm_spec spec = make_spec(dtype, false);
  return bench::Subject(context, "gemm", [&](tl_builder* b) { gemm_build(b, &spec); });
}

// Nothing is timed that computes something else: both results must agree within what rounding (of inputs, for
// bf16) explains.
void require_agreement(const Matrices& x, double input_rounding) {
  const double allowed =
      (static_cast<double>(x.k) * element_rounding(TL_F32) + 3 * input_rounding) * static_cast<double>(x.k);
  for (size_t i = 0; i < x.c.size(); ++i)
    if (!(std::fabs(static_cast<double>(x.c[i]) - x.expected[i]) <= allowed))
      tool::fail("results differ at element " + std::to_string(i) + ": " + std::to_string(x.c[i]) + " and " +
                 std::to_string(x.expected[i]));
}

Json record(const Matrices& x, const Samples& samples) {
  Json out = samples.to_json();
  out["gflops"] = x.flops() / samples.median() * 1e-9;
  return out;
}

void print_row(const char* what, const Matrices& x, const char* against, const Samples& ours,
               const Samples& other) {
  const double rate = x.flops() * 1e-9;
  std::printf("%-6s %-16s %9.3f ms %8.1f GFLOP/s   %-9s %9.3f ms %8.1f GFLOP/s   ratio %.2f\n", what,
              x.shape().c_str(), ours.median() * 1e3, rate / ours.median(), against, other.median() * 1e3,
              rate / other.median(), other.median() / ours.median());
  std::fflush(stdout);
}

// Of narrow types beside oneDNN.
void measure_narrow(Matrices& x, const bench::OneDnn& dnn, const bench::Subject& bf16,
                    const bench::Subject& i8, Json& out) {
  const auto dnn_bf16 = [&] { dnn.multiply(x.m, x.n, x.k, x.a16.data(), x.b16.data(), x.expected.data()); };
  const auto dnn_i8 = [&] { dnn.multiply(x.m, x.n, x.k, x.a8.data(), x.b8.data(), x.expected32.data()); };
  bf16.launch();
  dnn_bf16();
  require_agreement(x, element_rounding(TL_BF16));
  i8.launch();
  dnn_i8();
  if (x.c32 != x.expected32) tool::fail("products of i8 differ");
  const auto beside = [&](const char* name, const bench::Subject& ours, const std::function<void()>& theirs) {
    const auto samples = bench::side_by_side({[&] { ours.launch(); }, theirs});
    print_row(name, x, "oneDNN", samples[0], samples[1]);
    const std::string kind = name;
    out[kind + "_beside_onednn"] = record(x, samples[0]);
    out["onednn_" + kind] = record(x, samples[1]);
    out[kind + "_over_onednn"] = samples[1].median() / samples[0].median();
  };
  beside("bf16", bf16, dnn_bf16);
  beside("i8", i8, dnn_i8);
}

Json measure_shape(const tool::Context& context, const bench::OpenBlas& blas, const bench::OneDnn& dnn,
                   int64_t m, int64_t n, int64_t k) {
  Matrices x(m, n, k);
  bench::Subject f32 = make_subject(context, TL_F32), bf16 = make_subject(context, TL_BF16),
                 i8 = make_subject(context, TL_I8);
  f32.set_arguments(x.arguments(TL_F32));
  bf16.set_arguments(x.arguments(TL_BF16));
  i8.set_arguments(x.arguments(TL_I8));
  const auto run_blas = [&] { blas.sgemm(m, n, k, x.a.data(), x.b.data(), x.expected.data()); };
  run_blas();
  f32.launch();
  require_agreement(x, 0);
  bf16.launch();
  require_agreement(x, element_rounding(TL_BF16));

  Json out;
  out["shape"] = x.shape();
  const auto with_blas = bench::side_by_side({[&] { f32.launch(); }, run_blas});
  print_row("f32", x, "OpenBLAS", with_blas[0], with_blas[1]);
  out["f32"] = record(x, with_blas[0]);
  out["openblas_f32"] = record(x, with_blas[1]);
  out["f32_over_openblas"] = with_blas[1].median() / with_blas[0].median();
  const auto with_f32 = bench::side_by_side({[&] { bf16.launch(); }, [&] { f32.launch(); }});
  print_row("bf16", x, "our f32", with_f32[0], with_f32[1]);
  out["bf16"] = record(x, with_f32[0]);
  out["bf16_over_f32"] = with_f32[1].median() / with_f32[0].median();
  if (dnn.found()) measure_narrow(x, dnn, bf16, i8, out);
  return out;
}

// Builder to loaded kernel, over and over in this process; stages as the library reports them.
Json measure_compile(const tool::Context& context) {
  constexpr int kCompilations = 21;
  const gemm_spec spec = make_spec(TL_F32, true);
  Samples whole;
  std::vector<std::string> order;
  std::map<std::string, Samples> stages;
  for (int i = 0; i < kCompilations; ++i) {
    const double start = bench::now();
    const bench::Subject subject(context, "gemm_bias_relu", [&](tl_builder* b) { gemm_build(b, &spec); });
    const double elapsed = bench::now() - start;
    if (i == 0) continue;  // LLVM sets itself up once
    whole.seconds.push_back(elapsed);
    for (size_t s = 0; s < tl_artifact_stage_count(subject.artifact().get()); ++s) {
      const char* name = nullptr;
      double ms = 0;
      tool::require(tl_artifact_stage(subject.artifact().get(), s, &name, &ms), nullptr,
                    "reading the stage times");
      if (i == 1) order.push_back(name);
      stages[name].seconds.push_back(ms * 1e-3);
    }
  }
  Json out;
  out["program_to_kernel"] = whole.to_json();
  std::printf("\ncompile gemm_bias_relu f32: %.1f ms from builder to loaded kernel (median of %zu)\n",
              whole.median() * 1e3, whole.seconds.size());
  for (const std::string& name : order) {
    out["stages_ms"][name] = stages[name].median() * 1e3;
    std::printf("  %-24s %8.2f ms\n", name.c_str(), stages[name].median() * 1e3);
  }
  return out;
}

// In a process that has done nothing before: what building and compiling the GEMM adds while the artifact is
// held.
void print_memory() {
  const bench::Resident before = bench::resident();
  const tool::Context context = tool::make_context();
  const gemm_spec spec = make_spec(TL_F32, true);
  const bench::Subject subject(context, "gemm_bias_relu", [&](tl_builder* b) { gemm_build(b, &spec); });
  const bench::Resident after = bench::resident();
  Json out;
  out["added_bytes"] = after.all - before.all;
  out["added_anonymous_bytes"] = after.anonymous - before.anonymous;
  std::printf("%s\n", out.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && !std::strcmp(argv[1], "--probe")) return bench::print_probe(), 0;
  if (argc == 2 && !std::strcmp(argv[1], "--memory")) return print_memory(), 0;

  Json results;
  const std::vector<bench::CoreType> types = bench::probe_core_types();
  setenv("OPENBLAS_CORETYPE", types[0].name.c_str(), 1);
  const bench::OpenBlas blas(bench::cores());
  results["openblas"] = blas.description();
  std::printf("%d threads; %s\n", bench::cores(), blas.description().c_str());
  for (const bench::CoreType& type : types) {
    results["openblas_core_types_gflops"][type.name] = type.gflops;
    std::printf("  OPENBLAS_CORETYPE=%-15s %8.1f GFLOP/s\n", type.name.c_str(), type.gflops);
  }
  const bench::OneDnn dnn(bench::cores());
  results["onednn"] = dnn.description();
  std::printf("%s\n\n", dnn.found() ? dnn.description().c_str() : "oneDNN is not there: libdnnl");
  const tool::Context context = tool::make_context();
  results["gemm"] = Json::array({measure_shape(context, blas, dnn, 1024, 1024, 1024),
                                 measure_shape(context, blas, dnn, 4096, 4096, 1024)});
  results["compile"] = measure_compile(context);
  const Json memory = Json::parse(bench::run_self("--memory", "", ""));
  results["memory"] = memory;
  std::printf("\nmemory: building and compiling the GEMM adds %.1f MB, %.1f MB of it belonging to no file\n",
              memory["added_bytes"].get<double>() * 1e-6,
              memory["added_anonymous_bytes"].get<double>() * 1e-6);
  if (argc > 1) bench::write_results(argv[1], results);
  return 0;
}
