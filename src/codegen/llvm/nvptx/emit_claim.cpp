// Claims of points of the grid: the launch's counter, found in a table where the launch was given one
// (thread/claim_table.h).
//
// A record is taken by the first block of a launch that claims, under the table's lock, and found by the others,
// which read keys without it. The last claim of a launch, with which the counter goes back to 0, frees it: no block
// of the launch looks for it any more, as each has claimed since it looked last. A block that finds neither its
// record nor a free one waits for one; there are as many as grids that a device runs at once.
#include "codegen/llvm/nvptx/gpu_emitter.h"
#include "thread/claim_table.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

namespace {

// $0: the number claimed, $1: the address that the launch passed, $2: the last number.
constexpr char kClaimText[] = R"({
.reg .pred own, is;
.reg .b32 count, was;
.reg .b64 table, id, key, at, end, open, other;
mov.b64 at, $1;
and.b64 other, $1, 1;
setp.eq.b64 own, other, 0;
@own bra CLAIM;
sub.s64 table, $1, 1;
mov.u64 id, %gridid;
add.s64 id, id, 1;
FIND:
ld.acquire.gpu.global.u32 count, [table+4];
mov.b64 at, table;
mad.wide.u32 end, count, 32, table;
NEXT:
setp.eq.b64 is, at, end;
@is bra LOCK;
add.s64 at, at, 32;
ld.acquire.gpu.global.u64 key, [at];
setp.ne.b64 is, key, id;
@is bra NEXT;
bra FOUND;
LOCK:
atom.acquire.gpu.global.cas.b32 was, [table], 0, 1;
setp.eq.b32 is, was, 0;
@is bra LOCKED;
nanosleep.u32 100;
bra FIND;
LOCKED:
ld.acquire.gpu.global.u32 count, [table+4];
mov.b64 at, table;
mad.wide.u32 end, count, 32, table;
add.s64 open, end, 32;
AGAIN:
setp.eq.b64 is, at, end;
@is bra ABSENT;
add.s64 at, at, 32;
ld.acquire.gpu.global.u64 key, [at];
setp.eq.b64 is, key, id;
@is bra UNLOCK;
setp.eq.b64 is, key, 0;
min.u64 other, open, at;
selp.b64 open, other, open, is;
bra AGAIN;
ABSENT:
setp.le.u64 is, open, end;
@is bra TAKE;
setp.lt.u32 is, count, 128;
@is bra GROW;
st.release.gpu.global.u32 [table], 0;
nanosleep.u32 1000;
bra FIND;
GROW:
add.u32 count, count, 1;
st.relaxed.gpu.global.u32 [table+4], count;
TAKE:
mov.b64 at, open;
st.relaxed.gpu.global.u64 [at], id;
UNLOCK:
st.release.gpu.global.u32 [table], 0;
FOUND:
add.s64 at, at, 8;
CLAIM:
atom.relaxed.gpu.global.inc.u32 $0, [at], $2;
@own bra DONE;
setp.ne.u32 is, $0, $2;
@is bra DONE;
st.release.gpu.global.u64 [at+-8], 0;
DONE:
})";
static_assert(kClaimTableTag == 1 && kClaimTableUsed == 4 && kClaimRecordBytes == 32 && kClaimRecordCounter == 8 &&
                  kClaimRecords == 128,
              "the numbers in the text");

}  // namespace

// Counts up to the points of the grid and begins again. A block that claims exists, so there is a point.
void GpuEmitter::emit_node(const Claim& claim) {
  const ir::ExprId points = program_.grid[0];
  Value* last = b_.CreateSub(resized(value(points), 32, points), b_.getInt32(1));
  Value* number = effect(b_.getInt32Ty(), kClaimText, "=&r,l,r,~{memory}", {counter_, last});
  Store store;
  store.memory = claim.dst;
  store_element(store, claim.dst_index, number, {});
}

}  // namespace tilegen::codegen
