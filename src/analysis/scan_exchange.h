// How the threads of a block scan an axis of an iteration layout: level by level, one digit of the axis after
// the other, the least weight first. A level joins runs of points that the levels below it have scanned: each
// run gets the totals of those before it.
//
//   f32[4, 256], 128 threads, vectors of 4     registers 4, lanes 32 (5 butterflies), scratch 2
//
// requires: a fragment over the iteration's shape, and its axis. ensures: the product of the levels' extents
// covers the axis, in the order of its points; thread digits whose bits are those of lanes go by butterflies
// where shuffles take the type, all others through scratch. Planning asks for the bytes and the cost,
// lowering for the way; both ask here.
#pragma once

#include <string>
#include <vector>

#include "analysis/exchange.h"

namespace tilegen::analysis {

struct ScanLevel {
  enum class Way : uint8_t {
    registers,  // of one thread
    lanes,      // of a warp, by butterflies
    scratch,    // of the block, through shared memory
  } way = Way::registers;
  // The digit of the axis, and the part of it that this level joins: digit value / `first` % `extent`.
  layout::Digit digit;
  int64_t first = 1, extent = 1;
  int64_t runs = 1;   // that a thread joins with those of others, or had of each before it joined its own
  bool last = false;  // nobody asks for totals any more
};

struct ScanExchange {
  std::vector<ScanLevel> levels;
  int64_t runs_at_once = 0;  // of a thread, in scratch
  int64_t scratch_elements = 0;
};

// `axis` -1: of one point.
ScanExchange scan_exchange(const layout::Fragment& iteration, int axis, ir::DType type,
                           const target::Target& t);

// "4 registers, 32 lanes, 2 parts through scratch"; empty where there is nothing to join.
std::string to_text(const ScanExchange& x);

// What the warps of a block do for it, in instructions.
double scan_cost(const layout::Fragment& iteration, int axis, ir::DType type, const target::Target& t);

}  // namespace tilegen::analysis
