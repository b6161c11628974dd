// Views that an operation takes, and tiles of the view's elements where it cannot take the view's tile.
//
//   view u = reinterpret(t, u32)              alloc u_1: fragment u32[64, 16]
//   reduce u -> s {kind = max, axis = 1}  ->  label u_1: parallel i, j in 64, 16 {
//                                               u_1[i, j] = bitcast(u32, t[i, j])
//                                             }
//                                             reduce u_1 -> s {kind = max, axis = 1}
#pragma once

#include <map>
#include <span>
#include <string>

#include "ir/draft.h"

namespace tilegen::ir {

// `op` may have the tile's box as its operand where `seen` of a view is. `transposed`: times that dimensions
// of several elements change places; a product is then told to transpose.
bool operand_fits(TileOp& op, size_t operand, const Region& seen, const Region& box, int transposed);
// The operation reads what the operand was before.
bool reads_operand(const TileOp& op, size_t operand);

// A fragment of the extents and of the type of `seen`, all of it.
Region add_operand_tile(Program& p, const Draft& draft, const Region& seen, int kernel,
                        SourceLocation location);
// `wanted`, or like it, which no statement of the kernel has as its label.
std::string free_label(const Program& p, const Kernel& kernel, const std::string& wanted);

// Stands in no block yet.
StmtId add_copy(Program& p, const Region& from, const Region& to, SourceLocation location, std::string label);

// Statements in front of a statement and behind it.
struct Around {
  Block before, after;
};
void insert_around(Program& p, const std::map<StmtId, Around>& around);

// "[4, n]", as messages have it.
std::string shape_text(const Program& p, std::span<const ExprId> shape);
std::string shape_text(std::span<const int64_t> shape);

}  // namespace tilegen::ir
