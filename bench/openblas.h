// OpenBLAS at its fastest on this machine, loaded at run time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

class OpenBlas {
 public:
  // Loads libopenblas.so.0 with OPENBLAS_CORETYPE as it stands in the environment; ends the program when it
  // is missing.
  explicit OpenBlas(int threads);
  // C = A * B, row-major.
  void sgemm(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c) const;
  std::string description() const;

 private:
  void* library_ = nullptr;
  void* sgemm_ = nullptr;
};

struct CoreType {
  std::string name;
  double gflops = 0;
};

// The rate of sgemm 1024^3 at each core type, fastest first, each measured by this program in a process of
// its own
// (`run_self("--probe", ...)` must end in `print_probe`). An unknown type is replaced by OpenBLAS's own
// choice.
std::vector<CoreType> probe_core_types();
void print_probe();

}  // namespace bench
