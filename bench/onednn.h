// oneDNN's products of narrow types, loaded at run time where the machine has the library.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

class OneDnn {
 public:
  // Looks for libdnnl; products run on `threads` threads of its OpenMP.
  explicit OneDnn(int threads);
  bool found() const { return bf16_ && bytes_; }
  // C = A * B, row-major; bf16 with sums in f32, i8 with sums in i32.
  void multiply(int64_t m, int64_t n, int64_t k, const uint16_t* a, const uint16_t* b, float* c) const;
  void multiply(int64_t m, int64_t n, int64_t k, const int8_t* a, const int8_t* b, int32_t* c) const;
  std::string description() const;  // "" where it is not found

 private:
  void* library_ = nullptr;
  void *bf16_ = nullptr, *bytes_ = nullptr;
};

}  // namespace bench
