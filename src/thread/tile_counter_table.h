// Device memory of a kernel whose blocks claim points of the grid, as launches and emitted code agree on it.
//
// A launch passes one address. Where its low bit is 0 it is a counter that no other launch has while it runs.
// Where it is 1 the rest is the address of a table, from which the launch takes a record for as long as it
// runs: launches that cannot be told apart by their arguments, such as two instances of one captured graph,
// are told apart by %gridid (PTX ISA, Special Registers), which no two grids of a context share while they
// run.
//
//   table                      record
//     0  u32 lock                0  u64 key: %gridid + 1 of the launch that has it, 0 when free
//     4  u32 records in use      8  u32 counter: 0 when free
//    32  records
//
// All of it is 0 before the first launch and whenever no launch runs, but for the number of records in use,
// which only grows.
#pragma once

#include <cstddef>

namespace tilegen::thread {

constexpr size_t kClaimTableTag = 1;      // low bit of an address that is a table's
constexpr size_t kClaimRecordBytes = 32;  // a sector of its own; the table's head is as long
// Resident grids of a device of compute capability 9.0 (CUDA C++ Programming Guide, Technical
// Specifications).
constexpr size_t kClaimRecords = 128;
constexpr size_t kClaimRecordCounter = 8;  // offset of the counter
constexpr size_t kClaimTableUsed = 4;      // offset of the number of records in use
constexpr size_t kClaimTableBytes = kClaimRecordBytes * (kClaimRecords + 1);

}  // namespace tilegen::thread
