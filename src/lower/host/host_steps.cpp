#include "lower/host/host_steps.h"

#include "lower/host/forward_stores.h"
#include "lower/host/fuse_loops.h"
#include "lower/host/interleave_rows.h"
#include "lower/host/prefetch_blocks.h"
#include "lower/host/prefetch_tiles.h"
#include "lower/host/skip_selects.h"

namespace tilegen::lower {

void host_steps(thread::ThreadProgram& p, const target::Target& target) {
  fuse_loops(p);
  forward_stores(p);
  skip_selects(p);
  prefetch_blocks(p);
  prefetch_tiles(p, target.l2_bytes);
  interleave_rows(p);
}

}  // namespace tilegen::lower
