// Shared-memory bank conflicts of one warp-wide access, from addresses alone.
#pragma once

#include <cstdint>
#include <span>

namespace tilegen::layout {

// Of a target's shared memory; 0: it has no banks.
struct BankModel {
  int banks = 0;
  int bank_bytes = 0;
  int64_t row_bytes() const { return int64_t{banks} * bank_bytes; }  // of all banks, side by side
};

// Number of wavefronts a warp access takes: lanes' start byte addresses, each touching `bytes` consecutive
// bytes. Accesses of 8 and 16 bytes are served in halves and quarters of the warp, as NVIDIA's hardware does.
// Lanes that touch the same word share it. The floor is ceil(distinct bytes touched / (banks * bank_bytes))
// per phase.
int64_t wavefronts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model);
// The floor: wavefronts of a conflict-free access of that shape.
int64_t least_wavefronts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model);
// Wavefronts beyond the floor.
int64_t bank_conflicts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model);

}  // namespace tilegen::layout
