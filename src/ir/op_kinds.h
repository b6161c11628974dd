// The kinds of tile operations, the rows of ops.def, and the slots of their attributes.
#pragma once

#include "ir/tile_op.h"

namespace tilegen::ir {

enum class OpKind : uint8_t {
#define TILEGEN_TILE_OP(name, text, operands, attributes, has_value) name,
#include "ir/ops.def"
#undef TILEGEN_TILE_OP
};

// Attribute slots, by op: gemm_attr::transpose_a, ... in ops.def order, and their count.
#define TILEGEN_ATTR_BOOL(name) name,
#define TILEGEN_ATTR_INT(name) name,
#define TILEGEN_ATTR_ENUM(name, values) name,
#define TILEGEN_TILE_OP(op, text, operands, attributes, has_value) \
  namespace op##_attr {                                            \
    enum : int { attributes count };                               \
  }
#include "ir/ops.def"
#undef TILEGEN_TILE_OP
#undef TILEGEN_ATTR_BOOL
#undef TILEGEN_ATTR_INT
#undef TILEGEN_ATTR_ENUM

namespace gemm_attr {
// Products whose sum an instruction may form before it is added to C, where a gemm promotes.
constexpr int64_t kPromoted = 128;
}  // namespace gemm_attr

}  // namespace tilegen::ir
