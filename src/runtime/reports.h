// What a launch tells of its program beside results: what it prints, and assertions that do not hold.
//
// requires: slots of the launch's parameters, the memory of its reports all 0 before the first kernel.
// ensures: a program without reports has none, and costs nothing; lines come in the order of
// ir/report_place.h. refuses: assertion_failed, a diagnostic for each assertion that fails, with the first
// place where it does.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/program.h"
#include "support/diagnostic.h"

namespace tilegen::runtime {

// Takes lines without their end; by default the standard output does.
struct LineSink {
  void (*take)(const void* to, const char* line) = nullptr;
  const void* to = nullptr;
};

class Reports {
 public:
  struct Piece {
    size_t param = 0;
    size_t bytes = 0;
    ir::Report kind = ir::Report::assertions;
  };

  explicit Reports(const ir::Program& program);

  bool empty() const { return pieces_.empty(); }
  // Workspaces that the launch clears and reads.
  std::span<const Piece> pieces() const { return pieces_; }

  // Where the slots are addresses of host memory.
  void clear(std::span<const uint64_t> slots) const;
  Checked tell_host_memory(std::span<const uint64_t> slots, const LineSink& sink) const;
  // `memory`: what the kernels left of each piece.
  Checked tell(std::span<const uint64_t> slots, std::span<const std::byte* const> memory,
               const LineSink& sink) const;

 private:
  const ir::Program& program_;
  std::vector<Piece> pieces_;
};

}  // namespace tilegen::runtime
