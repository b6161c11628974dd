// A consumer's loop whose iterations two warpgroups have by turns (analysis/alternation.h): the list of each.
//
//   warpgroup 0                               warpgroup 1
//   products of i                       ->    products of i + 1
//   head of its work; put rows early    ->    head of its work
//   the rest; put rows                  ->    fetch rows
//   products of both, of i                    products of both, of i
//   fetch rows                          <-    the rest of its work; put rows
//   products of both, of i + 1                products of both, of i + 1
//
// A warpgroup awaits the products of both of the iteration before in front of what it puts: after that the
// other may write the tile which they have read. What is left over is warpgroup 0's.
#pragma once

#include "expand/consumer_units.h"

namespace tilegen::expand {

std::vector<Block> alternating_lists(Expander& x, StmtId loop, const std::vector<ConsumerUnit>& units);

}  // namespace tilegen::expand
