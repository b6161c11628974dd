// Operands of scalar instructions.
#pragma once

#include "vector_operands.h"

namespace tilegen::amdemu {

template <class T>
T scalar_operand(Wave& w, const Instruction& in, int i) {
  const Operand& o = in.operands[i];
  if constexpr (sizeof(T) == 8) {
    if (o.kind == OperandKind::scalar) return static_cast<T>(w.pair(o.first));
    return static_cast<T>(scalar_value<U64>(w, in, o));
  } else {
    return static_cast<T>(scalar_value<U32>(w, in, o));
  }
}

template <class T>
void set_scalar(Wave& w, const Instruction& in, T value) {
  if constexpr (sizeof(T) == 8)
    w.set_pair(in.operands[0].first, static_cast<uint64_t>(value));
  else
    w.scalars[in.operands[0].first] = static_cast<uint32_t>(value);
}

// What an instruction does with SCC.
enum class Scc : uint8_t { kept, not_zero };

// D = f(A), of types D and A; D = f(A, B).
template <class D, class A, Scc S, class F>
void scalar_unary(const char* name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    const D r = static_cast<D>(F{}(scalar_operand<A>(w, in, 1)));
    set_scalar<D>(w, in, r);
    if (S == Scc::not_zero) w.scc = r != 0;
  });
}
template <class D, class A, class B, Scc S, class F>
void scalar_binary(const char* name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    const D r = static_cast<D>(F{}(scalar_operand<A>(w, in, 1), scalar_operand<B>(w, in, 2)));
    set_scalar<D>(w, in, r);
    if (S == Scc::not_zero) w.scc = r != 0;
  });
}
// SCC = f(A, B).
template <class A, class B, class F>
void scalar_compare(const std::string& name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    w.scc = F{}(scalar_operand<A>(w, in, 0), scalar_operand<B>(w, in, 1));
  });
}

}  // namespace tilegen::amdemu
