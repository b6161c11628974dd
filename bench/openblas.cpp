#include "openblas.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "element.h"
#include "library.h"
#include "measure.h"

namespace bench {

namespace {

using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);
constexpr int kRowMajor = 101, kNoTrans = 111;  // values of the CBLAS interface

}  // namespace

OpenBlas::OpenBlas(int threads) {
  library_ = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library_) tool::fail("libopenblas.so.0 cannot be loaded; scripts/setup installs it");
  sgemm_ = dlsym(library_, "cblas_sgemm");
  const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(library_, "openblas_set_num_threads"));
  if (!sgemm_ || !set_threads) tool::fail("libopenblas.so.0 lacks cblas_sgemm or openblas_set_num_threads");
  set_threads(threads);
}

void OpenBlas::sgemm(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) const {
  reinterpret_cast<Sgemm>(sgemm_)(kRowMajor, kNoTrans, kNoTrans, static_cast<int>(m), static_cast<int>(n),
                                  static_cast<int>(k), 1.0f, a, static_cast<int>(k), b, static_cast<int>(n),
                                  0.0f, c, static_cast<int>(n));
}

std::string OpenBlas::description() const {
  const auto config = reinterpret_cast<char* (*)()>(dlsym(library_, "openblas_get_config"));
  return config ? config() : "unknown";
}

void print_probe() {
  constexpr int64_t size = 1024;
  const OpenBlas blas(cores());
  Array<float> a(size * size), b(size * size), c(size * size);
  element_random(TL_F32, a.data(), a.size(), 1);
  element_random(TL_F32, b.data(), b.size(), 2);
  const Samples samples =
      side_by_side({[&] { blas.sgemm(size, size, size, a.data(), b.data(), c.data()); }}, 3)[0];
  std::printf("%.3f\n", 2.0 * size * size * size / samples.median() * 1e-9);
}

std::vector<CoreType> probe_core_types() {
  std::vector<CoreType> out;
  for (const char* name : {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"})
    out.push_back({name, std::atof(run_self("--probe", "OPENBLAS_CORETYPE", name).c_str())});
  std::sort(out.begin(), out.end(), [](const CoreType& a, const CoreType& b) { return a.gflops > b.gflops; });
  return out;
}

}  // namespace bench
