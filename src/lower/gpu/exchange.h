// Values handed from one layout over threads and registers to another, and the shared memory that this takes.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// Planned shared memory, seen as elements of `type`. An error where the schedule has none, or too little.
MemoryId planned_memory(LoweringContext& k, plan::Storage storage, const std::string& op, ir::DType type,
                        int64_t elements, const std::string& value = {});
MemoryId scratch_memory(LoweringContext& k, const std::string& path, ir::DType type, int64_t elements);

// Every element of a fragment from its registers to memory, and back to all that hold it.
void put_in_memory(LoweringContext& k, const FragmentView& from, const layout::Layout& place, MemoryId memory,
                   const std::string& path, thread::Block& out);
void fetch_from_memory(LoweringContext& k, const FragmentView& to, const layout::Layout& place,
                       MemoryId memory, const std::string& path, thread::Block& out);
// to = from, element by element; every holder in `to` has it then.
void exchange(LoweringContext& k, layout::ConversionKind planned, const FragmentView& from,
              const FragmentView& to, const std::string& path, thread::Block& out);

// The element of `indices`, which a lane of the warp holds (analysis/lane_reads.h): handed over in statements
// of `out`, which all lanes run.
ExprId load_from_lane(LoweringContext& k, const FragmentView& from, std::span<const ExprId> indices,
                      thread::Block& out);

}  // namespace tilegen::lower
