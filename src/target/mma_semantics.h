// What a matrix atom computes, once: the abstract machine's side of a row of the atom table.
//
// Operands are gathered into plain row-major matrices of doubles, in which every value of an atom's types is
// exact (i32 included). A meaning adds A[m x k] * B[k x n] to C[m x n] and leaves C in the range of its type.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

namespace tilegen::target {

struct MmaExtents {
  int m = 0, n = 0, k = 0;
};

// Has no default, so that a row of the table without a meaning does not compile.
class MmaSemantics {
 public:
  using Function = std::function<void(MmaExtents e, const double* a, const double* b, double* c)>;
  template <class F>
    requires std::is_invocable_v<F, MmaExtents, const double*, const double*, double*>
  MmaSemantics(F f) : function_(std::move(f)) {}
  void operator()(MmaExtents e, const double* a, const double* b, double* c) const { function_(e, a, b, c); }

 private:
  Function function_;
};

namespace meaning {
// Exact products of 8 and 16-bit floats, summed in f32 in ascending k.
void dot_f32(MmaExtents e, const double* a, const double* b, double* c);
// The same, rounded once to f16: the tensor core keeps the sum of one instruction in a wider form.
void dot_f16(MmaExtents e, const double* a, const double* b, double* c);
// dot_f32 of operands rounded to tf32.
void dot_tf32(MmaExtents e, const double* a, const double* b, double* c);
// dot_f32 of operands cut off to tf32.
void dot_tf32_truncated(MmaExtents e, const double* a, const double* b, double* c);
// Exact sum modulo 2^32 (no saturation).
void dot_i32(MmaExtents e, const double* a, const double* b, double* c);
// One fused multiply-add for each k, ascending.
void fma_f32(MmaExtents e, const double* a, const double* b, double* c);
void fma_f64(MmaExtents e, const double* a, const double* b, double* c);
}  // namespace meaning

}  // namespace tilegen::target
