// Tiles of the grid that the block fetches while it runs, handed from one producer to the other roles.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

class TileScheduler {
 public:
  // Adds the registers that all roles know by one name; each role has its own.
  explicit TileScheduler(LoweringContext& k);

  // The point being walked.
  ExprId current_tile();
  // Barriers and memory for the numbers on their way. An error where the schedule has no place for them.
  void declare();
  // The body once for each point, with the way to the next one after it: `fetches` says that the role gets it
  // from the grid's counter, else it has it from the one that does.
  thread::Block walk(thread::Block body, bool fetches);
  // The body for the tile that the block begins with, if it has one.
  thread::Block first_tile(thread::Block body);

 private:
  void fetch_next(thread::Block& out);
  void take_next(thread::Block& out);
  void take_next_alone(thread::Block& out);
  ExprId tile_in_grid();
  ExprId tile_is_empty();
  ExprId handed_slot();
  ExprId handed_parity();
  thread::StmtId set_tile(ExprId to);
  thread::StmtId set_tile_to_number();

  LoweringContext& k_;
  ir::ExprPool& e_;
  int full_ = -1, empty_ = -1;  // index into ThreadProgram::barriers
  MemoryId handed_;             // shared: numbers on their way to the computing threads
  MemoryId number_, tile_;      // registers: claimed, or handed over; the point being walked
};

}  // namespace tilegen::lower
