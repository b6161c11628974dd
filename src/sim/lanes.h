// Evaluates one instruction of the bytecode for all lanes of a warp, by the rules of ir/expr.h.
#pragma once

#include "sim/bytecode.h"

namespace tilegen::sim {

// A value by lane; one that is the same for all lanes has step 0.
struct Operand {
  const Cell* cells = nullptr;
  int step = 0;
  const Cell& operator[](int lane) const { return cells[lane * step]; }
};

// The values of one warp.
struct Values {
  Cell* uniform = nullptr;
  Cell* kept = nullptr;
  Cell* temporary = nullptr;
  int lanes = 1;

  Cell* at(Ref r) const {
    if (r.space == Ref::Space::uniform) return uniform + r.at;
    return (r.space == Ref::Space::kept ? kept : temporary) + size_t{r.at} * static_cast<size_t>(lanes);
  }
  Operand operand(Ref r) const { return {at(r), r.stride()}; }
};

// Any code but load.
void evaluate(const Instr& instr, const Values& values);

// Rounded to a floating type: ir::round_to, but quick for the 16-bit types.
double round_value(ir::DType type, double v);

// One element as it lies in memory.
Cell decode_one(ir::DType type, const std::byte* from);
void encode_one(ir::DType type, Cell value, std::byte* to);

}  // namespace tilegen::sim
