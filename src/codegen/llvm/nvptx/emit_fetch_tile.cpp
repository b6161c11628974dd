// Claims of points of the grid: the launch's counter, found in a table where the launch was given one
// (thread/tile_counter_table.h).
//
// A record is taken by the first block of a launch that claims, under the table's lock, and found by the
// others, which read keys without it. The last claim of a launch, with which the counter goes back to 0,
// frees it: no block of the launch looks for it any more, as each has claimed since it looked last. A block
// that finds neither its record nor a free one waits for one; there are as many as grids that a device runs
// at once.
#include "codegen/llvm/nvptx/ptx_emitter.h"
#include "thread/tile_counter_table.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

namespace {

// $0: the number claimed, $1: the address that the launch passed, $2: the last number. As few registers as
// there may be: the threads that claim have few. `at` is a record's address and the tag; $0 counts the
// records left to look at.
constexpr char kClaimText[] = R"({
.reg .pred own, is;
.reg .b64 id, key, at;
mov.b64 at, $1;
and.b64 id, $1, 1;
setp.eq.b64 own, id, 0;
@own bra CLAIM;
mov.u64 id, %gridid;
add.s64 id, id, 1;
FIND:
ld.acquire.gpu.global.u32 $0, [$1+3];
mov.b64 at, $1;
NEXT:
setp.eq.b32 is, $0, 0;
@is bra LOCK;
add.s64 at, at, 32;
sub.u32 $0, $0, 1;
ld.acquire.gpu.global.u64 key, [at+-1];
setp.ne.b64 is, key, id;
@is bra NEXT;
bra FOUND;
LOCK:
atom.acquire.gpu.global.cas.b32 $0, [$1+-1], 0, 1;
setp.eq.b32 is, $0, 0;
@is bra LOCKED;
nanosleep.u32 100;
bra FIND;
LOCKED:
ld.acquire.gpu.global.u32 $0, [$1+3];
mov.b64 at, $1;
AGAIN:
setp.eq.b32 is, $0, 0;
@is bra ABSENT;
add.s64 at, at, 32;
sub.u32 $0, $0, 1;
ld.acquire.gpu.global.u64 key, [at+-1];
setp.eq.b64 is, key, id;
@is bra UNLOCK;
bra AGAIN;
ABSENT:
ld.relaxed.gpu.global.u32 $0, [$1+3];
mov.b64 at, $1;
FREE:
setp.eq.b32 is, $0, 0;
@is bra GROW;
add.s64 at, at, 32;
sub.u32 $0, $0, 1;
ld.acquire.gpu.global.u64 key, [at+-1];
setp.eq.b64 is, key, 0;
@is bra TAKE;
bra FREE;
GROW:
ld.relaxed.gpu.global.u32 $0, [$1+3];
setp.lt.u32 is, $0, 128;
@is bra FRESH;
st.release.gpu.global.u32 [$1+-1], 0;
nanosleep.u32 1000;
bra FIND;
FRESH:
add.u32 $0, $0, 1;
st.relaxed.gpu.global.u32 [$1+3], $0;
add.s64 at, at, 32;
TAKE:
st.relaxed.gpu.global.u64 [at+-1], id;
UNLOCK:
st.release.gpu.global.u32 [$1+-1], 0;
FOUND:
add.s64 at, at, 7;
CLAIM:
atom.relaxed.gpu.global.inc.u32 $0, [at], $2;
@own bra DONE;
setp.ne.u32 is, $0, $2;
@is bra DONE;
st.release.gpu.global.u64 [at+-8], 0;
DONE:
})";
static_assert(kClaimTableTag == 1 && kClaimTableUsed == 4 && kClaimRecordBytes == 32 &&
                  kClaimRecordCounter == 8 && kClaimRecords == 128,
              "the numbers in the text, less the tag");

}  // namespace

// Counts up to the points of the grid and begins again. A block that claims exists, so there is a point.
void PtxEmitter::emit_node(const FetchTile& fetch) {
  const ir::ExprId points = program_.grid[0];
  Value* last = b_.CreateSub(resized(value(points), 32, points), b_.getInt32(1));
  Value* number = ptx_.effect(b_.getInt32Ty(), kClaimText, "=&r,l,r,~{memory}", {counter_, last});
  Store store;
  store.memory = fetch.dst;
  store_element(store, fetch.dst_index, number, {});
}

}  // namespace tilegen::codegen
