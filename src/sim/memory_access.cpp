// Loads and stores of a warp, with the checks on each.
#include "sim/memory_access.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "ir/print.h"
#include "sim/access_costs.h"
#include "sim/async_copies.h"
#include "sim/cluster_run.h"
#include "sim/element_check.h"
#include "sim/run_findings.h"

namespace tilegen::sim {

using thread::Space;

namespace {

// A wide access is made in parts of at most 16 bytes: the widest that divide it.
int64_t part_of(int64_t bytes) { return std::min<int64_t>(16, bytes & -bytes); }

template <class F>
void each_lane(LaneMask lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
}

// The registers that a store of what it loads has written.
void keep_load(const ClusterRun& run, Warp& w, const Step& s, int64_t index) {
  if (!s.keeps_load || w.loads.of_register.empty()) return;
  load_goes_to(w, run.memory(run.code.accesses[s.access].memory).first_register + static_cast<size_t>(index));
  w.loads.fresh = false;
}

// Registers that a product has belong to it until it was waited for; others are touched as of the newest
// fence.
void touch_register(ClusterRun& run, Warp& w, uint32_t access, size_t at, LaneMask lanes, int64_t index) {
  w.touched_at[at] = w.fences + 1;
  if (!w.loads.of_register.empty() && w.loads.of_register[at] != 0) use_register(run, w, at);
  if (!w.has_products || w.in_product[at] == 0) return;
  access_finding(run, FindingKind::register_in_flight, access, first_thread(w, lanes), index,
                 "no wait for the product that has this register, with the register named, stands before it");
}

}  // namespace

SharedHistory::Actor actor(const ClusterRun& run, const Warp& w, int lane, uint32_t access) {
  SharedHistory::Actor a;
  a.thread = thread_of(w, lane);
  a.access = access;
  a.memory = run.code.accesses[access].memory.value;
  a.epoch = run.order.epoch(w.index);
  a.seen = run.order.seen(w.index, w.mask);
  a.warp_bits = std::countr_zero(static_cast<unsigned>(w.lanes));
  a.uses = run.code.atomic_uses.data();
  return a;
}

Addresses locate(ClusterRun& run, Warp& w, uint32_t access, LaneMask lanes, Operand index, bool check) {
  const Access& a = run.code.accesses[access];
  const MemoryView& m = run.memory(a.memory);
  const bool global = m.space == Space::global;
  // In elements: [low, high) may be touched.
  const int64_t low = global ? -((-m.begin) / m.element) : 0, high = global ? m.end / m.element : m.elements;
  const int64_t base = global ? static_cast<int64_t>(m.address) : run.arena_begin(w.rank) + m.arena_offset;
  const int64_t width = check ? a.width : 1;
  Addresses out;
  each_lane(lanes, [&](int l) {
    const int64_t i = index[l].i;
    if (i >= low && i <= high - width) {
      out.at[static_cast<size_t>(l)] = base + i * m.element;
      out.lanes |= LaneMask{1} << l;
    } else if (check) {
      access_finding(run, FindingKind::out_of_bounds, access, thread_of(w, l), i,
                     std::to_string(width) + (width == 1 ? " element" : " elements") +
                         " from there, but the memory has " + (low < 0 ? std::to_string(low) + " .. " : "") +
                         std::to_string(high));
    }
  });
  return out;
}

void check_alignment(ClusterRun& run, Warp& w, uint32_t access, const Addresses& a, int64_t bytes) {
  const MemoryView& m = run.memory(run.code.accesses[access].memory);
  if (bytes <= m.element) return;
  const int64_t base =
      m.space == Space::global ? static_cast<int64_t>(m.address) : run.arena_begin(w.rank) + m.arena_offset;
  each_lane(a.lanes, [&](int l) {
    const int64_t at = a.at[static_cast<size_t>(l)];
    if (at % part_of(bytes) != 0)
      access_finding(run, FindingKind::misaligned, access, thread_of(w, l), (at - base) / m.element,
                     "byte address " +
                         std::to_string(m.space == Space::global ? at - base : run.in_arena(at)) +
                         (m.space == Space::global ? " of the tensor" : " of shared memory") +
                         " is no multiple of " + std::to_string(part_of(bytes)));
  });
}

void count_access(ClusterRun& run, uint32_t access, const MemoryView& m, const Addresses& a, int64_t bytes) {
  AccessSum& sum = run.sums[access];
  const int64_t total = bytes * std::popcount(a.lanes);
  sum.bytes += total;
  (m.space == Space::global ? run.counters.global_bytes : run.counters.shared_bytes) += total;
  if (!run.options.count || a.lanes == 0) return;
  const auto part = static_cast<int>(part_of(bytes));
  // Tensors count as if they began at a sector, so that the host's addresses do not show.
  std::array<int64_t, kMaxLanes> shifted = a.at;
  if (m.space == Space::global)
    for (int64_t& s : shifted) s -= static_cast<int64_t>(m.address);
  for (int64_t done = 0; done < bytes; done += part) {
    const AccessCost cost = m.space == Space::global ? global_cost(shifted.data(), a.lanes, part)
                                                     : shared_cost(shifted.data(), a.lanes, part);
    ++sum.requests;
    sum.transactions += cost.taken;
    sum.least += cost.least;
    for (int64_t& s : shifted) s += part;
  }
}

void check_history(ClusterRun& run, Warp& w, uint32_t access, const MemoryView& m, const Addresses& a,
                   int64_t bytes, bool whole_warp) {
  const bool write = run.code.accesses[access].write;
  w.touched |= a.lanes;
  if (m.space == Space::global) {
    if (m.watched)
      each_lane(a.lanes, [&](int l) {
        global_access(run, w, access, l, static_cast<uint64_t>(a.at[static_cast<size_t>(l)]), bytes, write);
      });
    return;
  }
  if (!run.options.check_races) return;
  SharedHistory::Actor by = actor(run, w, 0, access);
  by.whole_warp = whole_warp;
  by.atomic = write && run.code.accesses[access].atomic.has_value();
  each_lane(a.lanes, [&](int l) {
    by.thread = thread_of(w, l);
    int64_t at = 0;
    const int64_t offset = a.at[static_cast<size_t>(l)];
    const Trouble t =
        write ? run.history.write(by, offset, bytes, &at) : run.history.read(by, offset, bytes, &at);
    if (t.conflict != Conflict::none) report_shared(run, t, access, by.thread, at);
  });
}

bool register_range(ClusterRun& run, Warp& w, uint32_t access, const MemoryView& m, int64_t index,
                    int64_t count) {
  if (index >= 0 && index <= m.elements - count) return true;
  access_finding(run, FindingKind::out_of_bounds, access, first_thread(w, w.mask), index,
                 std::to_string(count) + (count == 1 ? " register" : " registers") +
                     " from there, but there are " + std::to_string(m.elements));
  return false;
}

const Cell* read_register(ClusterRun& run, Warp& w, uint32_t access, LaneMask lanes, const MemoryView& m,
                          int64_t index) {
  const size_t at = m.first_register + static_cast<size_t>(index);
  if (const LaneMask unwritten = lanes & ~w.written[at]; unwritten != 0 && w.in_product[at] == 0)
    each_lane(run.guarded ? unwritten : unwritten & -unwritten, [&](int l) {
      access_finding(run, FindingKind::uninitialised_read, access, thread_of(w, l), index,
                     "nothing has written this register of the thread");
    });
  touch_register(run, w, access, at, lanes, index);
  return &w.registers[at * run.width()];
}

Cell* write_register(ClusterRun& run, Warp& w, uint32_t access, LaneMask lanes, const MemoryView& m,
                     int64_t index) {
  const size_t at = m.first_register + static_cast<size_t>(index);
  touch_register(run, w, access, at, lanes, index);
  w.written[at] |= lanes;
  if (!w.origins.empty())
    each_lane(lanes, [&](int l) { w.origins[at * run.width() + static_cast<size_t>(l)] = 0; });
  return &w.registers[at * run.width()];
}

void load(ClusterRun& run, Warp& w, const Instr& n) {
  const Access& access = run.code.accesses[n.access];
  const MemoryView& m = run.memory(access.memory);
  const LaneMask lanes = n.b ? true_lanes(w, n.b, w.mask) : w.mask;
  Cell* to = w.values.at(n.dst);
  std::memset(to, 0, sizeof(Cell) * run.width());
  if (lanes == 0) return;
  if (m.in_registers) {
    const int64_t index = scalar(w, n.a);
    if (!register_range(run, w, n.access, m, index, 1)) return;
    const Cell* from = read_register(run, w, n.access, lanes, m, index);
    each_lane(lanes, [&](int l) { to[l] = from[l]; });
    return;
  }
  // A wide access is judged once, at its first element.
  const bool check = access.width == 1 || run.lane_element == 0;
  const Addresses a = locate(run, w, n.access, lanes, w.values.operand(n.a), check);
  if (check) {
    const int64_t bytes = access.width * m.element;
    check_alignment(run, w, n.access, a, bytes);
    count_access(run, n.access, m, a, bytes);
    check_history(run, w, n.access, m, a, bytes, false);
    // What is the same for all lanes comes by another way.
    const bool by_lane = n.a.space != Ref::Space::uniform;
    if (m.space == Space::global && by_lane && !w.loads.of_register.empty()) issue_load(w, n.access);
  }
  each_lane(a.lanes,
            [&](int l) { to[l] = decode_one(m.type, run.pointer(m, a.at[static_cast<size_t>(l)])); });
}

Cell combine_one(ir::DType type, ir::AtomicKind kind, Cell value, std::byte* at, Cell expected) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const auto scalar = [&](Cell c) {
    return ir::is_float(type) ? ir::ScalarValue{type, 0, c.f} : ir::ScalarValue{type, c.i, 0};
  };
  const Cell old = decode_one(type, at);
  const ir::ScalarValue result = ir::eval_atomic(kind, scalar(old), scalar(value), scalar(expected));
  Cell c;
  ir::is_float(type) ? void(c.f = result.f) : void(c.i = result.i);
  encode_one(type, c, at);
  return old;
}

namespace {

// With what its order puts before and behind it.
Cell combine_ordered(ClusterRun& run, const Warp& w, uint32_t access, int lane, const MemoryView& m,
                     int64_t address, Cell value, Cell expected = {}) {
  const Access& a = run.code.accesses[access];
  const bool judged = a.order != ir::AtomicOrder::relaxed && m.watched && run.options.check_races &&
                      run.launch.global != nullptr;
  const auto at = static_cast<uint64_t>(address);
  SharedHistory::Actor by;
  if (judged) by = actor(run, w, lane, access);
  const int64_t block = judged ? run.block + by.thread / run.block_threads() : 0;
  if (judged && ir::releases(a.order)) run.launch.global->order().release(by, block, run.order.parties(), at);
  const Cell old = combine_one(m.type, *a.atomic, value, run.pointer(m, address), expected);
  if (judged && ir::acquires(a.order)) run.launch.global->order().acquire(by, block, at);
  return old;
}

// What the warp does from now on was not released.
void end_order(ClusterRun& run, const Warp& w, uint32_t access) {
  if (ir::releases(run.code.accesses[access].order)) run.order.advance(w.index);
}

}  // namespace

void write_lanes(ClusterRun& run, Warp& w, uint32_t access, LaneMask lanes, Operand index, Operand value,
                 bool check) {
  const MemoryView& m = run.memory(run.code.accesses[access].memory);
  if (lanes == 0) return;
  if (m.in_registers) {
    const int64_t at = index[0].i;
    if (!register_range(run, w, access, m, at, 1)) return;
    Cell* to = write_register(run, w, access, lanes, m, at);
    each_lane(lanes, [&](int l) { to[l] = value[l]; });
    return;
  }
  const auto kind = run.code.accesses[access].atomic;
  if (kind == ir::AtomicKind::append)
    return each_lane(lanes, [&](int l) {
      const uint64_t bits =
          ir::is_float(m.type) ? std::bit_cast<uint64_t>(value[l].f) : static_cast<uint64_t>(value[l].i);
      ir::append_record(std::bit_cast<void*>(m.address), index[l].i, bits);
    });
  const Addresses a = locate(run, w, access, lanes, index, check);
  if (check) {
    const int64_t bytes = run.code.accesses[access].width * m.element;
    check_alignment(run, w, access, a, bytes);
    count_access(run, access, m, a, bytes);
    check_history(run, w, access, m, a, bytes, false);
  }
  if (kind) {
    each_lane(a.lanes,
              [&](int l) { combine_ordered(run, w, access, l, m, a.at[static_cast<size_t>(l)], value[l]); });
    return end_order(run, w, access);
  }
  each_lane(a.lanes,
            [&](int l) { encode_one(m.type, value[l], run.pointer(m, a.at[static_cast<size_t>(l)])); });
}

namespace {

// An atomic operation that expects a value, or whose old value is stored.
void fetch(ClusterRun& run, Warp& w, const Step& s, LaneMask lanes) {
  const Access& access = run.code.accesses[s.access];
  const MemoryView& m = run.memory(access.memory);
  if (lanes == 0) return;
  const Addresses a = locate(run, w, s.access, lanes, w.values.operand(s.x), true);
  check_alignment(run, w, s.access, a, m.element);
  count_access(run, s.access, m, a, m.element);
  check_history(run, w, s.access, m, a, m.element, false);
  std::array<Cell, kMaxLanes> old{};
  const Operand value = w.values.operand(s.y);
  each_lane(a.lanes, [&](int l) {
    const Cell expected = s.coordinates[0] ? w.values.operand(s.coordinates[0])[l] : Cell();
    old[static_cast<size_t>(l)] =
        combine_ordered(run, w, s.access, l, m, a.at[static_cast<size_t>(l)], value[l], expected);
  });
  end_order(run, w, s.access);
  if (s.access2 == kNothing) return;
  const MemoryView& to = run.memory(run.code.accesses[s.access2].memory);
  const Addresses b = locate(run, w, s.access2, a.lanes, w.values.operand(s.coordinates[1]), true);
  check_alignment(run, w, s.access2, b, to.element);
  count_access(run, s.access2, to, b, to.element);
  check_history(run, w, s.access2, to, b, to.element, false);
  each_lane(b.lanes, [&](int l) {
    encode_one(to.type, old[static_cast<size_t>(l)], run.pointer(to, b.at[static_cast<size_t>(l)]));
  });
}

}  // namespace

void store(ClusterRun& run, Warp& w, const Step& s) {
  const LaneMask lanes = s.z ? true_lanes(w, s.z, w.mask) : w.mask;
  if (run.guarded) settle_reads(run, lanes);
  if (s.coordinates[0] || s.coordinates[1]) return fetch(run, w, s, lanes);
  const Operand index = w.values.operand(s.x);
  Origins origins;
  if (run.options.places != nullptr && s.times != kNothing) check_multiply_add(run, w, s, lanes, index);
  if (run.options.places != nullptr) note_move(run, w, s, lanes, index, origins);
  write_lanes(run, w, s.access, lanes, index, w.values.operand(s.y), true);
  if (lanes != 0) keep_load(run, w, s, index[0].i);
  if (run.options.places != nullptr)
    set_origins(run, w, lanes, run.code.accesses[s.access].memory, index[0].i, origins);
}

// All elements are computed before the first is written.
void wide_store(ClusterRun& run, Warp& w, const Step& s) {
  run.wide.resize(static_cast<size_t>(s.extent));
  LaneMask every = w.mask;  // lanes that write all elements
  for (run.lane_element = 0; run.lane_element < s.extent; ++run.lane_element) {
    WideElement& e = run.wide[static_cast<size_t>(run.lane_element)];
    w.values.at(s.variable)->i = run.lane_element;
    run_segment(run, w, s.lane_segment);
    e.lanes = s.z ? true_lanes(w, s.z, w.mask) : w.mask;
    every &= e.lanes;
    const Operand index = w.values.operand(s.x), value = w.values.operand(s.y);
    for (size_t l = 0; l < run.width(); ++l) {
      e.index[l] = index[static_cast<int>(l)];
      e.value[l] = value[static_cast<int>(l)];
    }
    if (run.options.places != nullptr) note_move(run, w, s, e.lanes, index, e.origins);
  }
  run.lane_element = 0;
  if (run.guarded) settle_reads(run, every);
  bool first = true;
  for (WideElement& e : run.wide) {
    write_lanes(run, w, s.access, e.lanes, {e.index.data(), 1}, {e.value.data(), 1}, first || s.width == 1);
    if (e.lanes != 0) keep_load(run, w, s, e.index[0].i);
    if (run.options.places != nullptr)
      set_origins(run, w, e.lanes, run.code.accesses[s.access].memory, e.index[0].i, e.origins);
    first = false;
  }
}

void run_segment(ClusterRun& run, Warp& w, uint32_t segment) {
  for (const Instr& n : run.code.segments[segment]) {
    if (n.code == Code::load)
      load(run, w, n);
    else
      evaluate(n, w.values);
  }
}

}  // namespace tilegen::sim
