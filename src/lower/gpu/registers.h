// Elements of fragments: which register of this thread holds one.
#pragma once

#include <set>
#include <span>

#include "analysis/kernel_ops.h"
#include "lower/lowering_parts.h"

namespace tilegen::lower {

MemoryId add_registers(LoweringContext& k, const std::string& name, ir::DType type, int64_t elements);

// What the op being lowered means by the buffer is spread over the threads' registers.
bool in_thread_registers(LoweringContext& k, ir::BufferId buffer);
// The value as the op being lowered has it.
FragmentView fragment_view(LoweringContext& k, analysis::ValueId value);
ExprId load_register(LoweringContext& k, const FragmentView& from, std::span<const ExprId> indices);
// memory[register of the element] = value where `predicate` holds (invalid: always).
void store_register(LoweringContext& k, const FragmentView& to, std::span<const ExprId> indices, ExprId value,
                    ExprId predicate, thread::Block& out, const std::string& origin);
// Index of an element's register, kept in range where the element may be none of the fragment's; `inside`
// (invalid: always) is when it is one.
ExprId register_index(LoweringContext& k, const layout::Fragment& f, std::span<const ExprId> indices,
                      ExprId* inside);
// A constant once loops are unrolled.
bool fixed_index(const LoweringContext& k, ExprId index);
// Where a thread has its element at (row, column) of the first thread's part.
int64_t first_register(const FragmentView& h, int row_dim, int column_dim, int64_t row, int64_t column);
// This thread holds the element.
ExprId holds(LoweringContext& k, const layout::Fragment& f, std::span<const ExprId> indices);

// Registers that hold no element of the fragment get a value; so do all that may be moved before they are
// written.
void clear_unheld(LoweringContext& k, const FragmentView& h, thread::Block& out, const std::string& origin,
                  bool all = false);
// The op writes all of the value and reads nothing of it.
bool overwrites(const LoweringContext& k, const analysis::KernelOp& op, analysis::ValueId value);
// Values that are moved as a whole to another layout, to memory or into parts, with nothing that must have
// written them before.
std::set<analysis::ValueId> moved_unwritten(const LoweringContext& k);
// Of those that the thread has, as the op being lowered sees them.
ExprId some_element_is_not_one(LoweringContext& k, analysis::ValueId value);

}  // namespace tilegen::lower
