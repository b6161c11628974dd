// The copy engine: boxes of tensors to shared memory and back, and the groups of stores.
#include "sim/tensor_engine.h"

#include <algorithm>
#include <cstring>

#include "layout/tensor_tile.h"
#include "sim/access_costs.h"
#include "sim/async_copies.h"
#include "sim/cluster_run.h"
#include "sim/memory_access.h"
#include "sim/run_findings.h"
#include "sim/transaction_barriers.h"
#include "support/checked.h"

namespace tilegen::sim {

using thread::Space;

namespace {

LaneMask bit(int lane) { return LaneMask{1} << lane; }

constexpr int64_t kUnit = layout::kSwizzleUnit;

// Bytes [at, at + bytes) of a box that begins at `place`, in the parts that lie together: f(byte of the
// arena, byte of the run, how many).
template <class F>
void for_each_part(int64_t place, int64_t at, int64_t bytes, int swizzle, F f) {
  for (int64_t done = 0; done < bytes;) {
    const int64_t address = place + at + done;
    const int64_t part = swizzle == 0 ? bytes : std::min(bytes - done, kUnit - address % kUnit);
    f(swizzled(address, swizzle), done, part);
    done += part;
  }
}

}  // namespace

void TensorMapView::for_each_row(const std::array<int64_t, kMaxDims>& at,
                                 const std::function<void(const Row&)>& f) const {
  Row row;
  for (int64_t rows = box_elements / box[0]; row.number < rows; ++row.number) {
    int64_t rest = row.number;
    bool inside = true;
    row.offset = 0;
    for (size_t d = 1; d < static_cast<size_t>(rank); ++d) {
      const int64_t x = at[d] + rest % box[d];
      rest /= box[d];
      inside &= x >= 0 && x < extents[d];
      row.offset += x * strides[d];
    }
    row.first = std::max<int64_t>(0, -at[0]);
    row.end = inside ? std::min(box[0], extents[0] - at[0]) : 0;
    row.offset += (at[0] + row.first) * element;
    f(row);
  }
}

namespace {

// Elements of a row that are the tensor's as launched.
bool row_exists(const MemoryView& m, const TensorMapView::Row& row, int element) {
  return row.offset >= m.begin && row.offset + (row.end - row.first) * element <= m.end;
}

SharedHistory::Actor engine_actor(ClusterRun& run, const Warp& w, int lane, int party, uint32_t epoch,
                                  uint32_t access) {
  SharedHistory::Actor a = actor(run, w, lane, access);
  a.issuer = a.thread;
  a.own_fence = run.order.own_fence(w.index);
  a.fenced = run.order.fenced(w.index, w.mask);
  a.warps = run.engines.warps();
  a.thread = party * run.lanes;
  a.epoch = epoch;
  run.asked_by[static_cast<size_t>(party)] = a.issuer;
  return a;
}

// Evaluates and checks the operands. False when there is nothing to move.
bool begin_copy(ClusterRun& run, Warp& w, const Step& s, int map, TensorCopy& c, bool load) {
  const int lane = std::countr_zero(w.mask), thread = thread_of(w, lane);
  if (std::popcount(w.mask) > 1)
    step_finding(run, FindingKind::divergent_copy, s.stmt, thread,
                 std::to_string(std::popcount(w.mask)) + " threads of the warp issue it");
  const TensorMapView& view = run.launch.tensor_maps[static_cast<size_t>(map)];
  const MemoryView &shared = run.memory(run.code.accesses[s.access].memory),
                   &global = run.memory(run.code.accesses[s.access2].memory);
  c.step = &s;
  c.map = map;
  c.lane = lane;
  for (size_t d = 0; d < static_cast<size_t>(view.rank); ++d)
    c.at[d] = w.values.operand(s.coordinates[d])[lane].i;
  if (!view.problem.empty()) {
    step_finding(run, FindingKind::tensor_map, s.stmt, thread, view.problem);
    return false;
  }
  if (c.at[0] * view.element % kUnit != 0)
    access_finding(run, FindingKind::misaligned, s.access2, thread, c.at[0],
                   "the box begins at byte " + std::to_string(c.at[0] * view.element) +
                       " of a row, no multiple of " + std::to_string(kUnit));
  if (!load && std::any_of(c.at.begin(), c.at.begin() + view.rank, [](int64_t x) { return x < 0; }))
    access_finding(run, FindingKind::out_of_bounds, s.access2, thread, c.at[0],
                   "the box begins before the tensor, for a store");
  if (!load && view.extents[0] * view.element % kUnit != 0)
    step_finding(run, FindingKind::tensor_map, s.stmt, thread,
                 "rows of " + std::to_string(view.extents[0] * view.element) +
                     " bytes are stored to, the engine stores whole " + std::to_string(kUnit) + " bytes");
  const int64_t index = w.values.operand(s.x)[lane].i;
  if (index < 0 || index > shared.elements - view.box_elements) {
    access_finding(run, FindingKind::out_of_bounds, s.access, thread, index,
                   std::to_string(view.box_elements) + " elements from there, but the memory has " +
                       std::to_string(shared.elements));
    return false;
  }
  c.place = run.arena_begin(w.rank) + shared.arena_offset + index * shared.element;
  if (c.place % view.alignment() != 0)
    access_finding(run, FindingKind::misaligned, s.access, thread, index,
                   "byte address " + std::to_string(run.in_arena(c.place)) +
                       " of shared memory is no multiple of " + std::to_string(view.alignment()));
  bool outside = false;
  int64_t moved = 0;
  view.for_each_row(c.at, [&](const TensorMapView::Row& row) {
    if (row.empty()) return;
    if (!row_exists(global, row, view.element)) {
      if (!outside)
        access_finding(run, FindingKind::out_of_bounds, s.access2, thread, row.offset / view.element,
                       "within the extents of the tensor map, but the tensor has " +
                           std::to_string(global.end / view.element) + " elements");
      outside = true;
      return;
    }
    moved += (row.end - row.first) * view.element;
    if (!run.options.count) return;
    AccessSum& sum = run.sums[s.access2];
    const int64_t bytes = (row.end - row.first) * view.element;
    sum.transactions += ceil_div(row.offset + bytes, kSectorBytes) - row.offset / kSectorBytes;
    sum.least += ceil_div(bytes, kSectorBytes);
  });
  AccessSum &in_shared = run.sums[s.access], &in_global = run.sums[s.access2];
  ++in_shared.requests, ++in_global.requests;
  in_shared.bytes += view.box_bytes(), in_global.bytes += moved;
  const int64_t rows_of_banks = ceil_div(view.box_bytes(), kBankRowBytes);
  in_shared.transactions += rows_of_banks, in_shared.least += rows_of_banks;
  run.counters.global_bytes += moved, run.counters.shared_bytes += view.box_bytes();
  run.counters.tensor_bytes += load ? view.box_bytes() : moved;
  return true;
}

// Who else touches these bytes.
void judge_copy(ClusterRun& run, Warp& w, const TensorCopy& c, bool load) {
  if (!run.options.check_races) return;
  const Step& s = *c.step;
  const TensorMapView& view = run.launch.tensor_maps[static_cast<size_t>(c.map)];
  const MemoryView& global = run.memory(run.code.accesses[s.access2].memory);
  const int shared_party = load ? run.engines.load(c.barriers, c.barrier) : run.engines.store_read(w.index);
  const int global_party = load ? shared_party : run.engines.store_write(w.index);
  const SharedHistory::Actor here =
      engine_actor(run, w, c.lane, shared_party, run.order.epoch(shared_party), s.access);
  SharedHistory::Actor there =
      engine_actor(run, w, c.lane, global_party, run.order.epoch(global_party), s.access2);
  const auto judge = [&](int64_t offset, int64_t bytes) {
    int64_t at = 0;
    const Trouble t =
        load ? run.history.write(here, offset, bytes, &at) : run.history.read(here, offset, bytes, &at);
    if (t.conflict != Conflict::none) report_shared(run, t, s.access, here.issuer, at);
  };
  if (load) judge(c.place, view.box_bytes());
  view.for_each_row(c.at, [&](const TensorMapView::Row& row) {
    if (row.empty() || !row_exists(global, row, view.element)) return;
    const int64_t bytes = (row.end - row.first) * view.element;
    if (!load)
      for_each_part(c.place, row.number * view.row_bytes() + row.first * view.element, bytes, view.swizzle,
                    [&](int64_t address, int64_t, int64_t part) { judge(address, part); });
    if (global.watched)
      global_access(run, there, global.address + static_cast<uint64_t>(row.offset), bytes, !load);
  });
}

// The copy as one block of the cluster gets it.
void deliver(ClusterRun& run, Warp& w, const Step& s, TensorCopy c, bool moves, int64_t block) {
  const auto& n = run.node<thread::TensorLoad>(s);
  c.barrier = *transaction(run, w, s, n.barriers, block, c.barrier);
  if (c.place >= 0) c.place += run.arena_begin(block - w.rank);
  TransactionState& t = run.transaction_at(n.barriers, c.barrier);
  const int64_t bytes = run.launch.tensor_maps[static_cast<size_t>(n.map)].box_bytes();
  if (n.announces) {
    t.to_land += bytes;
    t.unclaimed += bytes;
  }
  // Another block announces them when it gets there.
  if (t.unclaimed < bytes && block == w.rank)
    step_finding(run, FindingKind::transaction_bytes, s.stmt, first_thread(w, w.mask),
                 "it brings " + std::to_string(bytes) + " bytes, and of those announced to " +
                     transaction_text(run, n.barriers, c.barrier) + " " +
                     std::to_string(std::max<int64_t>(0, t.unclaimed)) + " are left");
  t.unclaimed -= bytes;
  t.loaded = run.order.epoch(run.engines.load(n.barriers, c.barrier));
  t.load_access = s.access;
  if (moves) judge_copy(run, w, c, true);
  if (run.options.async_latest)
    run.loads.push_back(c);
  else
    land(run, c);
}

}  // namespace

void tensor_load(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::TensorLoad>(s);
  if (w.mask == 0) return;
  TensorCopy c;
  const int lane = std::countr_zero(w.mask);
  c.barriers = n.barriers;
  c.barrier = w.values.operand(s.y)[lane].i;
  if (!transaction(run, w, s, n.barriers, w.rank, c.barrier)) return;
  const bool moves = begin_copy(run, w, s, n.map, c, true);
  const int64_t blocks = n.multicast != 0 ? n.multicast : int64_t{1} << w.rank;
  for (int64_t block = 0; block < run.program.cluster; ++block)
    if ((blocks >> block & 1) != 0) deliver(run, w, s, c, moves, block);
}

void land(ClusterRun& run, const TensorCopy& c) {
  const TensorMapView& view = run.launch.tensor_maps[static_cast<size_t>(c.map)];
  if (c.place >= 0) {
    const MemoryView& global = run.memory(run.code.accesses[c.step->access2].memory);
    std::vector<std::byte> bytes(static_cast<size_t>(view.row_bytes()));
    view.for_each_row(c.at, [&](const TensorMapView::Row& row) {
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      if (!row.empty() && row_exists(global, row, view.element))
        std::memcpy(bytes.data() + row.first * view.element,
                    std::bit_cast<const std::byte*>(global.address + static_cast<uint64_t>(row.offset)),
                    static_cast<size_t>((row.end - row.first) * view.element));
      for_each_part(c.place, row.number * view.row_bytes(), view.row_bytes(), view.swizzle,
                    [&](int64_t address, int64_t from, int64_t part) {
                      std::memcpy(run.arena.data() + address, bytes.data() + from, static_cast<size_t>(part));
                    });
    });
  }
  TransactionState& t = run.transaction_at(c.barriers, c.barrier);
  t.to_land -= view.box_bytes();
  advance(run, c.barriers, c.barrier);
}

void tensor_store(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::TensorStore>(s);
  TensorCopy c;
  if (w.mask == 0 || !begin_copy(run, w, s, n.map, c, false)) return;
  c.group = w.bulk_commits[static_cast<size_t>(c.lane)];
  c.work = run.order.epoch(run.engines.store_read(w.index));
  judge_copy(run, w, c, false);
  // Reads and writes of one store have one number.
  run.order.advance(run.engines.store_read(w.index));
  run.order.advance(run.engines.store_write(w.index));
  if (!run.options.async_latest) move_out(run, c);
  w.stores.push_back(c);
}

void move_out(ClusterRun& run, TensorCopy& c) {
  const TensorMapView& view = run.launch.tensor_maps[static_cast<size_t>(c.map)];
  const sim::Access& access = run.code.accesses[c.step->access2];
  const MemoryView& global = run.memory(access.memory);
  view.for_each_row(c.at, [&](const TensorMapView::Row& row) {
    if (row.empty() || !row_exists(global, row, view.element)) return;
    std::byte* to = std::bit_cast<std::byte*>(global.address + static_cast<uint64_t>(row.offset));
    for_each_part(
        c.place, row.number * view.row_bytes() + row.first * view.element,
        (row.end - row.first) * view.element, view.swizzle, [&](int64_t address, int64_t at, int64_t part) {
          const std::byte* from = run.arena.data() + address;
          if (!access.atomic) return void(std::memcpy(to + at, from, static_cast<size_t>(part)));
          for (int64_t i = 0; i < part; i += view.element)
            combine_one(global.type, *access.atomic, decode_one(global.type, from + i), to + at + i);
        });
  });
  c.moved = true;
}

void bulk_commit(Warp& w) {
  for (int l = 0; l < w.lanes; ++l)
    if (w.mask & bit(l)) ++w.bulk_commits[static_cast<size_t>(l)];
}

void bulk_wait(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::BulkWait>(s);
  const auto covered = [&](const TensorCopy& c) {
    return (w.mask & bit(c.lane)) != 0 && c.group + n.pending < w.bulk_commits[static_cast<size_t>(c.lane)];
  };
  for (TensorCopy& c : w.stores) {
    if (!covered(c)) continue;
    if (!c.moved) move_out(run, c);
    c.read = true;
  }
  const int reads = run.engines.store_read(w.index), writes = run.engines.store_write(w.index);
  uint32_t first_read = run.order.epoch(reads), first_write = run.order.epoch(writes);
  for (size_t i = w.stores.size(); i-- > 0;) {
    if (!w.stores[i].read) first_read = w.stores[i].work;
    if (!covered(w.stores[i]) || n.read) first_write = w.stores[i].work;
  }
  const bool whole = w.mask == w.all;
  run.order.see(w.index, w.mask, whole, reads, first_read - 1);
  run.order.see(w.index, w.mask, whole, writes, first_write - 1);
  if (!n.read) std::erase_if(w.stores, covered);
}

}  // namespace tilegen::sim
