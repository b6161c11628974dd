// Values of packed types as codes: an i32 below 2^bits that is computed, kept and taken apart like any other.
//
//   cast(f16, W[j, p])       W: u4 in u8    cast(f16, cast(i32, W[j, p // 2]) >> cast(i32, p % 2 * 4) & 15)
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "ir/packed_index.h"
#include "ir/program.h"

namespace tilegen::ir {

// The type whose values are those of `packed`: i32, f16 or f32.
DType decoded_type(DType packed);
// The value of a code, as a `to`; the code of a value of any type, as a cast has it.
ExprId decoded(ExprPool& e, DType packed, ExprId code, DType to);
ExprId encoded(ExprPool& e, DType packed, ExprId value);

// How a buffer of a packed type keeps its elements, in u8: several in a byte, or a byte each.
struct PackedBuffer {
  DType type = DType::none;
  int in_byte = 1;
};
using PackedBuffers = std::map<BufferId, PackedBuffer>;

// What `root` is made of and `known` does not have yet, operands before users; known from now on.
std::vector<ExprId> parts_of(const ExprPool& e, ExprId root, std::vector<bool>& known);

// Expressions without packed types in the place of those with: of a program whose buffers of packed types
// are u8 by now.
class PackedExprs : private ExprRewriter {
 public:
  PackedExprs(Program& p, const PackedBuffers& buffers)
      : ExprRewriter(p.exprs, p.exprs), p_(p), buffers_(buffers) {}

  // Of no packed type.
  ExprId value(ExprId e) {
    prepare(e);
    return rewrite(e);
  }
  void move(ExprId& e) {
    if (e.valid()) e = value(e);
  }
  // Of a packed type.
  ExprId code(ExprId e) {
    prepare(e);
    return codes_.at(e);
  }

 private:
  void prepare(ExprId root);
  ExprId made_code(ExprId e);
  ExprId loaded(ExprId e);

  Program& p_;
  const PackedBuffers& buffers_;
  std::vector<bool> prepared_;
  std::unordered_map<ExprId, ExprId> codes_;
};

}  // namespace tilegen::ir
