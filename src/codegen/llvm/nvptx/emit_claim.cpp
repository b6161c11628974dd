// Claims of points of the grid: the launch's counter, found in a table where the launch was given one (thread/claim_table.h).
//
// A record is taken by the first block of a launch that claims, under the table's lock, and found by the others, which read keys
// without it. The last claim of a launch, the one with which the counter goes back to 0, frees it: no block of the launch looks
// for it any more, as each has claimed since it looked last. A block that finds neither its record nor a free one waits for one; there are
// as many as grids that a device runs at once.
#include "codegen/llvm/nvptx/gpu_emitter.h"
#include "thread/claim_table.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

namespace {

// $0: the number claimed, $1: the address that the launch passed, $2: the last number.
std::string claim_text() {
  const std::string record = std::to_string(kClaimRecordBytes), used = std::to_string(kClaimTableUsed);
  const std::string counter = std::to_string(kClaimRecordCounter);
  return
      "{\n.reg .pred own, is;\n.reg .b32 count, was;\n.reg .b64 table, id, key, at, end, open, other;\n"
      "mov.b64 at, $1;\n"
      "and.b64 other, $1, " + std::to_string(kClaimTableTag) + ";\n"
      "setp.eq.b64 own, other, 0;\n"
      "@own bra CLAIM;\n"
      "sub.s64 table, $1, " + std::to_string(kClaimTableTag) + ";\n"
      "mov.u64 id, %gridid;\n"
      "add.s64 id, id, 1;\n"
      "FIND:\n"
      "ld.acquire.gpu.global.u32 count, [table+" + used + "];\n"
      "mov.b64 at, table;\n"
      "mad.wide.u32 end, count, " + record + ", table;\n"
      "NEXT:\n"
      "setp.eq.b64 is, at, end;\n"
      "@is bra LOCK;\n"
      "add.s64 at, at, " + record + ";\n"
      "ld.acquire.gpu.global.u64 key, [at];\n"
      "setp.ne.b64 is, key, id;\n"
      "@is bra NEXT;\n"
      "bra FOUND;\n"
      "LOCK:\n"
      "atom.acquire.gpu.global.cas.b32 was, [table], 0, 1;\n"
      "setp.eq.b32 is, was, 0;\n"
      "@is bra LOCKED;\n"
      "nanosleep.u32 100;\n"
      "bra FIND;\n"
      "LOCKED:\n"
      "ld.acquire.gpu.global.u32 count, [table+" + used + "];\n"
      "mov.b64 at, table;\n"
      "mad.wide.u32 end, count, " + record + ", table;\n"
      "add.s64 open, end, " + record + ";\n"
      "AGAIN:\n"
      "setp.eq.b64 is, at, end;\n"
      "@is bra ABSENT;\n"
      "add.s64 at, at, " + record + ";\n"
      "ld.acquire.gpu.global.u64 key, [at];\n"
      "setp.eq.b64 is, key, id;\n"
      "@is bra UNLOCK;\n"
      "setp.eq.b64 is, key, 0;\n"
      "min.u64 other, open, at;\n"
      "selp.b64 open, other, open, is;\n"
      "bra AGAIN;\n"
      "ABSENT:\n"
      "setp.le.u64 is, open, end;\n"
      "@is bra TAKE;\n"
      "setp.lt.u32 is, count, " + std::to_string(kClaimRecords) + ";\n"
      "@is bra GROW;\n"
      "st.release.gpu.global.u32 [table], 0;\n"
      "nanosleep.u32 1000;\n"
      "bra FIND;\n"
      "GROW:\n"
      "add.u32 count, count, 1;\n"
      "st.relaxed.gpu.global.u32 [table+" + used + "], count;\n"
      "TAKE:\n"
      "mov.b64 at, open;\n"
      "st.relaxed.gpu.global.u64 [at], id;\n"
      "UNLOCK:\n"
      "st.release.gpu.global.u32 [table], 0;\n"
      "FOUND:\n"
      "add.s64 at, at, " + counter + ";\n"
      "CLAIM:\n"
      "atom.relaxed.gpu.global.inc.u32 $0, [at], $2;\n"
      "@own bra DONE;\n"
      "setp.ne.u32 is, $0, $2;\n"
      "@is bra DONE;\n"
      "st.release.gpu.global.u64 [at+-" + counter + "], 0;\n"
      "DONE:\n}";
}

}  // namespace

// Counts up to the points of the grid and begins again. A block that claims exists, so there is a point.
void GpuEmitter::emit_node(const Claim& claim) {
  const ir::ExprId points = program_.grid[0];
  Value* last = b_.CreateSub(resized(value(points), 32, points), b_.getInt32(1));
  Value* number = effect(b_.getInt32Ty(), claim_text(), "=&r,l,r,~{memory}", {counter_, last});
  Store store;
  store.memory = claim.dst;
  store_element(store, claim.dst_index, number, {});
}

}  // namespace tilegen::codegen
