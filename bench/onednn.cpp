#include "onednn.h"

#include <dlfcn.h>

#include "library.h"

namespace bench {

namespace {

// The BLAS-like functions of dnnl.h, which all versions have; that of bf16 is exported and in no header. They
// are as fast as the primitive for products of matrices, or faster.
using Bf16 = int (*)(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                     const uint16_t* a, int64_t lda, const uint16_t* b, int64_t ldb, float beta, float* c,
                     int64_t ldc);
using Bytes = int (*)(char trans_a, char trans_b, char offset_c, int64_t m, int64_t n, int64_t k, float alpha,
                      const int8_t* a, int64_t lda, int8_t ao, const int8_t* b, int64_t ldb, int8_t bo,
                      float beta, int32_t* c, int64_t ldc, const int32_t* co);

struct Version {  // dnnl_version_t's first members
  int major, minor, patch;
};

}  // namespace

OneDnn::OneDnn(int threads) {
  for (const char* name : {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"})
    if (!library_) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library_) return;
  bf16_ = dlsym(library_, "dnnl_gemm_bf16bf16f32");
  bytes_ = dlsym(library_, "dnnl_gemm_s8s8s32");
  if (auto* set_threads = reinterpret_cast<void (*)(int)>(dlsym(library_, "omp_set_num_threads")))
    set_threads(threads);
}

void OneDnn::multiply(int64_t m, int64_t n, int64_t k, const uint16_t* a, const uint16_t* b, float* c) const {
  if (reinterpret_cast<Bf16>(bf16_)('N', 'N', m, n, k, 1.0f, a, k, b, n, 0.0f, c, n) != 0)
    tool::fail("oneDNN refuses a product of bf16");
}

void OneDnn::multiply(int64_t m, int64_t n, int64_t k, const int8_t* a, const int8_t* b, int32_t* c) const {
  const int32_t offset = 0;
  if (reinterpret_cast<Bytes>(bytes_)('N', 'N', 'F', m, n, k, 1.0f, a, k, 0, b, n, 0, 0.0f, c, n, &offset) !=
      0)
    tool::fail("oneDNN refuses a product of i8");
}

std::string OneDnn::description() const {
  if (!found()) return "";
  const auto version = reinterpret_cast<const Version* (*)()>(dlsym(library_, "dnnl_version"));
  if (!version) return "oneDNN";
  const Version& v = *version();
  return "oneDNN " + std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
}

}  // namespace bench
