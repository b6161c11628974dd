// Sums of which the blocks of a cluster have a part each. Blocks leave their registers in their own shared
// memory, as they are, thread by thread, where tiles were that no product reads any more.
//   few blocks: the first block's threads add to theirs what the same thread of each of the others has;
//   more: each block sums an equal share of a thread's registers over all blocks and leaves the result; when
//     all have met again, the first block's threads take the shares. What one block reads of the others does
//     not grow with their number then;
//   blocks that share what follows: each sums its share of the tile, which is the same registers of every
//     thread (analysis/sum_shares.h), and keeps it. Of two each leaves what the other takes.
// Either way block by block, so the order of a sum depends on nothing but the number of parts. The blocks
// meet again before they end, so that what is read is there.
#include <algorithm>
#include <numeric>

#include "analysis/split_loop.h"
#include "analysis/sum_shares.h"
#include "lower/gpu/grid.h"
#include "lower/gpu/registers.h"
#include "lower/gpu/warpgroups.h"
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
  int64_t share = 0;  // of them, that a block sums; 0: the first sums all
  int64_t width = 1;  // of an access
  MemoryId own;       // registers of the block's share, where it keeps one
  int64_t run = 0, step = 0;
};

class PartsReduction {
 public:
  PartsReduction(LoweringContext& k, const expand::ReduceParts& s, const plan::MemoryPlan& memory)
      : k_(k),
        e_(k.out.exprs),
        origin_(k.in.paths[s.loop.value]),
        thread_(e_.var(k.out.thread_var)),
        rank_(cluster_rank(k)),
        blocks_(k.cluster_blocks()) {
    int64_t offset = memory.offset;
    for (ValueId v : s.sums) {
      parts_.push_back(part_of(v, offset));
      registers_ += parts_.back().count;
      shared_ = shared_ || parts_.back().share > 0;
    }
    for (const analysis::SumShare& share : s.shares) cut(share, s.sums);
  }

  // What stands before the work on the sums, within the first block and before it.
  void run(thread::Block& out, thread::Block& first) {
    role_barrier(k_, out, origin_);  // products of other warps may read tiles where the sums go
    if (parts_.front().own.valid()) return keep_shares(out);
    thread::Block leave;
    for (const PartOfSum& p : parts_) this->leave(p, p.registers, number(0), p.count, leave);
    if (shared_)
      out.insert(out.end(), leave.begin(), leave.end());
    else
      add(thread::Branch{e_.lt(number(0), rank_), std::move(leave), {}}, out);
    add(thread::ClusterBarrier{}, out);
    if (!shared_) return add_others(first);
    for (const PartOfSum& p : parts_) sum_share(p, out);
    add(thread::ClusterBarrier{}, out);
    for (const PartOfSum& p : parts_)
      for (int64_t b = 0; b < p.count / p.share; ++b)
        load(p, p.registers, number(b * p.share), number(b * p.share), p.share, number(b), first);
  }

 private:
  void cut(const analysis::SumShare& share, const std::vector<ValueId>& sums) {
    const auto at = static_cast<size_t>(std::find(sums.begin(), sums.end(), share.sum) - sums.begin());
    const auto cut =
        analysis::cut_fragment(*k_.in.schedule.values[share.sum.index()].fragment, share.dim, blocks_);
    if (!cut)
      return k_.fail(DiagCode::schedule_illegal, k_.in.ops.ops[share.op].path,
                     "the sums are not held as shares of " + std::to_string(blocks_) + " blocks",
                     "plan the program for this target");
    PartOfSum& p = parts_[at];
    p.own = k_.names.values[share.own];
    p.run = cut->run, p.step = cut->step;
    p.width = std::gcd(p.run, kWidest);
  }

  // Runs of registers of a share: the first of each among those of the share and of share 0.
  template <class Body>
  void for_each_run(const PartOfSum& p, const Body& body) {
    for (int64_t run = 0; run < p.count / p.step; ++run) body(run * p.run, run * p.step);
  }
  ExprId run_of(const PartOfSum& p, int64_t first, ExprId share) {
    return k_.simplified(e_.add(e_.mul(share, number(p.run)), number(first)));
  }

  void keep_shares(thread::Block& out) {
    for (int64_t share = 0; share < blocks_; ++share) {
      thread::Block leave;
      for (const PartOfSum& p : parts_)
        for_each_run(p, [&](int64_t, int64_t first) {
          const int64_t at = first + share * p.run;
          for_each_access(p, number(at), p.run, [&](ExprId reg, ExprId place) {
            leave_at(p, p.registers, e_.add(reg, at), place, leave);
          });
        });
      if (blocks_ == 2)
        add(thread::Branch{e_.binary(ir::ExprOp::ne, rank_, number(share)), std::move(leave), {}}, out);
      else
        out.insert(out.end(), leave.begin(), leave.end());
    }
    add(thread::ClusterBarrier{}, out);
    for (const PartOfSum& p : parts_) blocks_ == 2 ? add_other(p, out) : sum_own(p, out);
  }

  // a + b is b + a in every bit: the order of the two blocks does not show.
  void add_other(const PartOfSum& p, thread::Block& out) {
    const int64_t count = p.count / blocks_;
    const MemoryId theirs = add_registers(k_, "theirs", p.type, count);
    load_share(p, theirs, 0, e_.sub(number(1), rank_), out);
    const ExprId first_block = e_.le(rank_, number(0));
    for_each_run(p, [&](int64_t own, int64_t first) {
      const VarId r = k_.out.add_var("r", ir::VarKind::loop);
      thread::Loop sum{r, number(p.run), thread::LoopForm::unrolled, {}};
      const ExprId mine = e_.select(first_block, element(p.registers, p.type, e_.add(e_.var(r), first)),
                                    element(p.registers, p.type, e_.add(e_.var(r), first + p.run)));
      const ExprId other = element(theirs, p.type, e_.add(e_.var(r), own));
      add(thread::Store{p.own, e_.add(e_.var(r), own), e_.add(mine, other), ExprId(), false, ExprId()},
          sum.body);
      add(std::move(sum), out);
    });
  }

  void sum_own(const PartOfSum& p, thread::Block& out) {
    const int64_t count = p.count / blocks_, at_once = analysis::parts_at_once(count, blocks_);
    const MemoryId theirs = add_registers(k_, "theirs", p.type, at_once * count);
    for (int64_t from = 0; from < blocks_; from += at_once) {
      for (int64_t b = 0; b < at_once; ++b) load_share(p, theirs, b * count, number(from + b), out);
      for (int64_t b = 0; b < at_once; ++b)
        accumulate(p, p.own, theirs, b * count, count, from + b == 0, out);
    }
  }

  // This block's share, of what another one has left.
  void load_share(const PartOfSum& p, MemoryId to, int64_t begin, ExprId block, thread::Block& out) {
    for_each_run(p, [&](int64_t own, int64_t first) {
      load(p, to, number(begin + own), run_of(p, first, rank_), p.run, block, out);
    });
  }

  template <class Node>
  void add(Node node, thread::Block& to) {
    to.push_back(k_.out.add(std::move(node), origin_));
  }
  ExprId number(int64_t n) { return e_.const_int(n); }
  ExprId element(MemoryId m, ir::DType type, ExprId at) { return e_.load(m, type, std::vector<ExprId>{at}); }

  PartOfSum part_of(ValueId v, int64_t& offset) {
    const analysis::Value& value = k_.in.ops.values[v];
    PartOfSum part;
    part.registers = k_.names.values[v];
    part.type = k_.in.program.buffer(value.buffer).type;
    part.count = k_.in.schedule.values[v.index()].fragment->registers();
    part.share = analysis::share_of_sums(part.count, blocks_);
    part.width = std::gcd(part.share > 0 ? part.share : part.count, kWidest);
    thread::Memory place;
    place.name = value.name + ".parts";
    place.space = thread::Space::shared;
    place.type = part.type;
    place.elements = part.count * k_.out.threads;
    place.alignment = k_.in.target.tensor_tile_alignment;
    place.arena_offset = offset;
    offset += place.elements * ir::dtype_bytes(part.type);
    part.place = k_.out.add_memory(std::move(place));
    return part;
  }

  // `body` for each access to a thread's registers from `first` on: the number of its first among them, and
  // where that lies in the block's memory.
  template <class Body>
  void for_each_access(const PartOfSum& p, ExprId first, int64_t count, const Body& body) {
    for (int64_t from = 0; from < count; from += p.width) {
      const ExprId access = e_.floordiv(e_.add(first, number(from)), number(p.width));
      body(number(from),
           k_.simplified(e_.mul(e_.add(e_.mul(access, number(k_.out.threads)), thread_), number(p.width))));
    }
  }

  // `count` registers of `from` go to the block's memory, as those of a thread's sums from `first` on.
  void leave(const PartOfSum& p, MemoryId from, ExprId first, int64_t count, thread::Block& to) {
    for_each_access(p, first, count, [&](ExprId reg, ExprId at) { leave_at(p, from, reg, at, to); });
  }
  void leave_at(const PartOfSum& p, MemoryId from, ExprId reg, ExprId at, thread::Block& to) {
    const VarId lane = k_.out.add_var("lane", ir::VarKind::loop);
    const ExprId value = element(from, p.type, e_.add(reg, e_.var(lane)));
    thread::Block store = {k_.out.add(
        thread::Store{p.place, e_.add(at, e_.var(lane)), value, ExprId(), false, ExprId()}, origin_)};
    add(thread::Loop{lane, number(p.width), thread::LoopForm::vectorized, std::move(store)}, to);
  }

  // The other way, from another block's memory to `to` from register `begin` on.
  void load(const PartOfSum& p, MemoryId to, ExprId begin, ExprId first, int64_t count, ExprId block,
            thread::Block& out) {
    for_each_access(p, first, count, [&](ExprId reg, ExprId at) {
      add(thread::ClusterLoad{to, k_.simplified(e_.add(begin, reg)), p.place, at, static_cast<int>(p.width),
                              block},
          out);
    });
  }

  // total[r] = term[from + r], or added to it.
  void accumulate(const PartOfSum& p, MemoryId total, MemoryId term, int64_t from, int64_t count, bool first,
                  thread::Block& out) {
    const VarId r = k_.out.add_var("r", ir::VarKind::loop);
    thread::Loop sum{r, number(count), thread::LoopForm::unrolled, {}};
    ExprId value = element(term, p.type, e_.add(e_.var(r), number(from)));
    if (!first) value = e_.add(element(total, p.type, e_.var(r)), value);
    add(thread::Store{total, e_.var(r), value, ExprId(), false, ExprId()}, sum.body);
    add(std::move(sum), out);
  }

  void add_others(thread::Block& out) {
    const int64_t at_once = analysis::parts_at_once(registers_, blocks_ - 1);
    const VarId group = k_.out.add_var("blocks", ir::VarKind::loop);
    thread::Loop others{group, number((blocks_ - 1) / at_once), thread::LoopForm::serial, {}};
    for (const PartOfSum& p : parts_) {
      const MemoryId theirs = add_registers(k_, "theirs", p.type, at_once * p.count);
      for (int64_t b = 0; b < at_once; ++b)
        load(p, theirs, number(b * p.count), number(0), p.count,
             e_.add(e_.mul(e_.var(group), number(at_once)), number(b + 1)), others.body);
      for (int64_t b = 0; b < at_once; ++b)
        accumulate(p, p.registers, theirs, b * p.count, p.count, false, others.body);
    }
    add(std::move(others), out);
  }

  // The block's share of a sum, of all blocks; those beyond the last share have none.
  void sum_share(const PartOfSum& p, thread::Block& out) {
    const ExprId first = e_.mul(rank_, number(p.share));
    const int64_t at_once = analysis::parts_at_once(p.share, blocks_);
    const MemoryId theirs = add_registers(k_, "theirs", p.type, at_once * p.share);
    const MemoryId total = add_registers(k_, "total", p.type, p.share);
    thread::Block body;
    for (int64_t from = 0; from < blocks_; from += at_once) {
      for (int64_t b = 0; b < at_once; ++b)
        load(p, theirs, number(b * p.share), first, p.share, number(from + b), body);
      for (int64_t b = 0; b < at_once; ++b)
        accumulate(p, total, theirs, b * p.share, p.share, from + b == 0, body);
    }
    leave(p, total, first, p.share, body);
    add(thread::Branch{e_.lt(rank_, number(p.count / p.share)), std::move(body), {}}, out);
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const std::string& origin_;
  const ExprId thread_, rank_;
  const int64_t blocks_;
  std::vector<PartOfSum> parts_;
  int64_t registers_ = 0;
  bool shared_ = false;  // all of `parts_` are: their shares depend on the number of blocks alone
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
  thread::Block first;
  PartsReduction(k_, s, *memory).run(out, first);
  if (!s.shares.empty()) return lower(s.body, out);
  lower(s.body, first);
  out.push_back(
      k_.out.add(thread::Branch{e_.le(cluster_rank(k_), e_.const_int(0)), std::move(first), {}}, origin));
}

}  // namespace tilegen::lower
