// Sums of which the blocks of a cluster have a part each: every block but the first leaves its registers in
// its own shared memory, as they are, thread by thread; when all have met, the first block's threads add to
// theirs what the same thread of each of the others has, block by block. So the order of a sum depends on
// nothing but the number of parts. The blocks meet again before they end, so that what is read is there.
#include <numeric>

#include "analysis/split_loop.h"
#include "lower/gpu/grid.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/scheduled_lowering.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kWidest = 4;  // elements of an access of 16 bytes

struct PartOfSum {
  MemoryId registers, place;
  ir::DType type;
  int64_t count = 0;  // registers of a thread
  int64_t width = 1;  // of an access
};

}  // namespace

void ScheduledLowering::lower(const expand::ReduceParts& s, thread::Block& out) {
  const std::string& origin = k_.in.paths[s.loop.value];
  const plan::MemoryPlan* memory = plan::find_memory(k_.in.schedule, plan::Storage::parts, origin);
  if (!memory)
    return k_.fail(DiagCode::schedule_illegal, k_.in.kernel.name,
                   "the parts of the sums of '" + origin + "' have no place in shared memory",
                   "plan the program for this target");
  k_.out.arena_bytes = std::max(k_.out.arena_bytes, memory->offset + memory->bytes);
  const auto add = [&](auto node, thread::Block& to) { to.push_back(k_.out.add(std::move(node), origin)); };
  const auto number = [&](int64_t n) { return e_.const_int(n); };
  const auto load = [&](MemoryId m, ir::DType type, ExprId at) {
    return e_.load(m, type, std::vector<ExprId>{at});
  };
  const int64_t threads = k_.out.threads;
  std::vector<PartOfSum> parts;
  int64_t offset = memory->offset;
  for (ValueId v : s.sums) {
    const analysis::Value& value = k_.in.ops.values[v];
    PartOfSum part;
    part.registers = k_.names.values[v];
    part.type = k_.in.program.buffer(value.buffer).type;
    part.count = k_.in.schedule.values[v.index()].fragment->registers();
    part.width = std::gcd(part.count, kWidest);
    thread::Memory place;
    place.name = value.name + ".parts";
    place.space = thread::Space::shared;
    place.type = part.type;
    place.elements = part.count * threads;
    place.alignment = k_.in.target.tensor_tile_alignment;
    place.arena_offset = offset;
    offset += place.elements * ir::dtype_bytes(part.type);
    part.place = k_.out.add_memory(std::move(place));
    parts.push_back(part);
  }
  const ExprId thread = e_.var(k_.out.thread_var), rank = cluster_rank(k_);
  // `body` for each access of a thread: its first register, and where that lies in the block's memory.
  const auto for_each_access = [&](const PartOfSum& p, thread::Block& to, const auto& body) {
    const VarId group = k_.out.add_var("group", ir::VarKind::loop);
    thread::Loop walk{group, number(p.count / p.width), thread::LoopForm::unrolled, {}};
    const ExprId first = e_.mul(e_.var(group), number(p.width));
    body(first, e_.mul(e_.add(e_.mul(e_.var(group), number(threads)), thread), number(p.width)), walk.body);
    add(std::move(walk), to);
  };

  thread::Block leave;
  for (const PartOfSum& p : parts)
    for_each_access(p, leave, [&](ExprId first, ExprId at, thread::Block& to) {
      const VarId lane = k_.out.add_var("lane", ir::VarKind::loop);
      const ExprId value = load(p.registers, p.type, e_.add(first, e_.var(lane)));
      thread::Block store = {k_.out.add(
          thread::Store{p.place, e_.add(at, e_.var(lane)), value, ExprId(), false, ExprId()}, origin)};
      add(thread::Loop{lane, number(p.width), thread::LoopForm::vectorized, std::move(store)}, to);
    });
  add(thread::Branch{e_.lt(number(0), rank), std::move(leave), {}}, out);
  emit(thread::ClusterBarrier{}, out);

  int64_t registers = 0;
  for (const PartOfSum& p : parts) registers += p.count;
  const int64_t at_once = analysis::parts_at_once(registers, k_.cluster_blocks() - 1);
  const VarId group = k_.out.add_var("blocks", ir::VarKind::loop);
  thread::Loop others{group, number((k_.cluster_blocks() - 1) / at_once), thread::LoopForm::serial, {}};
  for (const PartOfSum& p : parts) {
    const MemoryId theirs = add_registers(k_, "theirs", p.type, at_once * p.count);
    for (int64_t b = 0; b < at_once; ++b)
      for_each_access(p, others.body, [&](ExprId first, ExprId at, thread::Block& to) {
        const ExprId block = e_.add(e_.mul(e_.var(group), number(at_once)), number(b + 1));
        add(thread::ClusterLoad{theirs, e_.add(first, number(b * p.count)), p.place, at,
                                static_cast<int>(p.width), block},
            to);
      });
    for (int64_t b = 0; b < at_once; ++b) {
      const VarId r = k_.out.add_var("r", ir::VarKind::loop);
      thread::Loop sum{r, number(p.count), thread::LoopForm::unrolled, {}};
      const ExprId its = load(theirs, p.type, e_.add(e_.var(r), number(b * p.count)));
      const ExprId both = e_.add(load(p.registers, p.type, e_.var(r)), its);
      add(thread::Store{p.registers, e_.var(r), both, ExprId(), false, ExprId()}, sum.body);
      add(std::move(sum), others.body);
    }
  }
  thread::Block first = {k_.out.add(std::move(others), origin)};
  lower(s.body, first);
  add(thread::Branch{e_.le(rank, number(0)), std::move(first), {}}, out);
}

}  // namespace tilegen::lower
