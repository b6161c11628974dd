// Loads and stores of a warp, with the checks on each.
#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/access_costs.h"
#include "sim/block_executor.h"

namespace tilegen::sim {

using thread::Space;

namespace {

// A wide access is made in parts of at most 16 bytes: the widest that divide it.
int64_t part_of(int64_t bytes) { return std::min<int64_t>(16, bytes & -bytes); }

template <class F>
void each_lane(uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
}

}  // namespace

void BlockExecutor::access_finding(FindingKind kind, uint32_t access, int thread, int64_t element,
                                   std::string detail, uint32_t other, int64_t other_thread) {
  Event e;
  e.kind = kind;
  e.access = access;
  e.other_access = other;
  e.block = block_;
  e.thread = thread;
  e.other_thread = other_thread;
  if (other != kNothing) e.other_block = block_;
  e.element = element;
  e.detail = std::move(detail);
  if (guarded_ && (kind == FindingKind::uninitialised_read || kind == FindingKind::foreign_read))
    held_back_.push_back(std::move(e));
  else
    report(std::move(e));
}

void BlockExecutor::settle_reads(uint32_t lanes) {
  guarded_ = false;
  for (Event& e : held_back_)
    if (lanes >> e.thread % kLanes & 1) report(std::move(e));
  held_back_.clear();
}

SharedHistory::Actor BlockExecutor::actor(const Warp& w, int lane, uint32_t access) const {
  SharedHistory::Actor a;
  a.thread = thread_of(w, lane);
  a.access = access;
  a.memory = code_.accesses[access].memory.value;
  a.epoch = order_.epoch(w.index);
  a.seen = order_.seen(w.index, w.mask);
  return a;
}

// What it is called that nothing orders an access with that of another thread, or of an engine.
FindingKind BlockExecutor::race_kind(int64_t other_thread) const {
  switch (engines_.kind(static_cast<int>(other_thread / kLanes))) {
    case Party::product:
      return FindingKind::operand_in_flight;
    case Party::store_read:
      return FindingKind::async_source_changed;
    case Party::store_write:
    case Party::load:
      return FindingKind::async_not_waited;
    case Party::warp:
      break;
  }
  return FindingKind::data_race;
}

// Addresses of the lanes that stay within bounds; the others are reported.
BlockExecutor::Addresses BlockExecutor::locate(Warp& w, uint32_t access, uint32_t lanes, Operand index,
                                               bool check) {
  const Access& a = code_.accesses[access];
  const MemoryView& m = memory(a.memory);
  const bool global = m.space == Space::global;
  // In elements: [low, high) may be touched.
  const int64_t low = global ? -((-m.begin) / m.element) : 0, high = global ? m.end / m.element : m.elements;
  const int64_t base = global ? static_cast<int64_t>(m.address) : arena_begin(w.rank) + m.arena_offset;
  const int64_t width = check ? a.width : 1;
  Addresses out;
  each_lane(lanes, [&](int l) {
    const int64_t i = index[l].i;
    if (i >= low && i <= high - width) {
      out.at[static_cast<size_t>(l)] = base + i * m.element;
      out.lanes |= uint32_t{1} << l;
    } else if (check) {
      access_finding(FindingKind::out_of_bounds, access, thread_of(w, l), i,
                     std::to_string(width) + (width == 1 ? " element" : " elements") +
                         " from there, but the memory has " + (low < 0 ? std::to_string(low) + " .. " : "") +
                         std::to_string(high));
    }
  });
  return out;
}

void BlockExecutor::check_alignment(Warp& w, uint32_t access, const Addresses& a, int64_t bytes) {
  const MemoryView& m = memory(code_.accesses[access].memory);
  if (bytes <= m.element) return;
  const int64_t base =
      m.space == Space::global ? static_cast<int64_t>(m.address) : arena_begin(w.rank) + m.arena_offset;
  each_lane(a.lanes, [&](int l) {
    const int64_t at = a.at[static_cast<size_t>(l)];
    if (at % part_of(bytes) != 0)
      access_finding(FindingKind::misaligned, access, thread_of(w, l), (at - base) / m.element,
                     "byte address " + std::to_string(m.space == Space::global ? at - base : in_arena(at)) +
                         (m.space == Space::global ? " of the tensor" : " of shared memory") +
                         " is no multiple of " + std::to_string(part_of(bytes)));
  });
}

void BlockExecutor::count_access(uint32_t access, const MemoryView& m, const Addresses& a, int64_t bytes) {
  AccessSum& sum = sums_[access];
  const int64_t total = bytes * std::popcount(a.lanes);
  sum.bytes += total;
  (m.space == Space::global ? counters_.global_bytes : counters_.shared_bytes) += total;
  if (!options_.count || a.lanes == 0) return;
  const auto part = static_cast<int>(part_of(bytes));
  // Tensors count as if they began at a sector, so that the host's addresses do not show.
  std::array<int64_t, kLanes> shifted = a.at;
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

void BlockExecutor::report_shared(const Trouble& t, uint32_t access, int thread, int64_t at) {
  const MemoryView& m = memory(code_.accesses[access].memory);
  const int64_t element = (in_arena(at) - m.arena_offset) / m.element;
  switch (t.conflict) {
    case Conflict::race: {
      const FindingKind kind = race_kind(t.other_thread);
      if (kind == FindingKind::data_race)
        return access_finding(kind, access, thread, element, {}, t.other_access, t.other_thread);
      const char* why = kind == FindingKind::operand_in_flight      ? "a product may still read it"
                        : kind == FindingKind::async_source_changed ? "the copy engine may still read it"
                                                                    : "the copy engine may still write it";
      return access_finding(kind, access, thread, element, why, t.other_access,
                            asked_by_[static_cast<size_t>(t.other_thread / kLanes)]);
    }
    case Conflict::unfenced:
      return access_finding(FindingKind::proxy_not_fenced, access, thread, element,
                            "no proxy fence of the thread that wrote it", t.other_access, t.other_thread);
    case Conflict::unfenced_read:
      return access_finding(FindingKind::proxy_not_fenced, access, thread, element,
                            "no proxy fence of the thread that read it", t.other_access, t.other_thread);
    case Conflict::unwritten:
      return access_finding(FindingKind::uninitialised_read, access, thread, element,
                            "nothing has written it in this block");
    case Conflict::foreign:
      return access_finding(FindingKind::foreign_read, access, thread, element,
                            "these bytes were last written as another tile", t.other_access, t.other_thread);
    case Conflict::in_flight: {
      const uint32_t copy = history_.copy_at(at);
      const uint32_t other = copy != 0 ? copies_[(copy - 1) / kLanes].dst_access : kNothing;
      return access_finding(FindingKind::async_not_waited, access, thread, element,
                            "an async copy to it was not waited for", other);
    }
    case Conflict::none:
      return;
  }
}

void BlockExecutor::check_history(Warp& w, uint32_t access, const MemoryView& m, const Addresses& a,
                                  int64_t bytes, bool whole_warp) {
  const bool write = code_.accesses[access].write;
  w.touched |= a.lanes;
  if (m.space == Space::global) {
    if (m.watched)
      each_lane(a.lanes, [&](int l) {
        global_access(w, access, l, static_cast<uint64_t>(a.at[static_cast<size_t>(l)]), bytes, write);
      });
    return;
  }
  if (!options_.check_races) return;
  SharedHistory::Actor by = actor(w, 0, access);
  by.whole_warp = whole_warp;
  each_lane(a.lanes, [&](int l) {
    by.thread = thread_of(w, l);
    int64_t at = 0;
    const int64_t offset = a.at[static_cast<size_t>(l)];
    const Trouble t = write ? history_.write(by, offset, bytes, &at) : history_.read(by, offset, bytes, &at);
    if (t.conflict != Conflict::none) report_shared(t, access, by.thread, at);
  });
}

bool BlockExecutor::register_range(Warp& w, uint32_t access, const MemoryView& m, int64_t index,
                                   int64_t count) {
  if (index >= 0 && index <= m.elements - count) return true;
  access_finding(FindingKind::out_of_bounds, access, first_thread(w, w.mask), index,
                 std::to_string(count) + (count == 1 ? " register" : " registers") +
                     " from there, but there are " + std::to_string(m.elements));
  return false;
}

const Cell* BlockExecutor::read_register(Warp& w, uint32_t access, uint32_t lanes, const MemoryView& m,
                                         int64_t index) {
  const size_t at = m.first_register + static_cast<size_t>(index);
  if (const uint32_t unwritten = lanes & ~w.written[at]; unwritten != 0 && w.in_product[at] == 0)
    each_lane(guarded_ ? unwritten : unwritten & -unwritten, [&](int l) {
      access_finding(FindingKind::uninitialised_read, access, thread_of(w, l), index,
                     "nothing has written this register of the thread");
    });
  touch_register(w, access, at, lanes, index);
  return &w.registers[at * kLanes];
}

// Registers that a product has belong to it until it was waited for; others are touched as of the newest
// fence.
void BlockExecutor::touch_register(Warp& w, uint32_t access, size_t at, uint32_t lanes, int64_t index) {
  w.touched_at[at] = w.fences + 1;
  if (!w.has_products || w.in_product[at] == 0) return;
  access_finding(FindingKind::register_in_flight, access, first_thread(w, lanes), index,
                 "no wait for the product that has this register, with the register named, stands before it");
}

Cell* BlockExecutor::write_register(Warp& w, uint32_t access, uint32_t lanes, const MemoryView& m,
                                    int64_t index) {
  const size_t at = m.first_register + static_cast<size_t>(index);
  touch_register(w, access, at, lanes, index);
  w.written[at] |= lanes;
  if (!w.origins.empty())
    each_lane(lanes, [&](int l) { w.origins[at * kLanes + static_cast<size_t>(l)] = 0; });
  return &w.registers[at * kLanes];
}

void BlockExecutor::load(Warp& w, const Instr& n) {
  const Access& access = code_.accesses[n.access];
  const MemoryView& m = memory(access.memory);
  const uint32_t lanes = n.b ? true_lanes(w, n.b, w.mask) : w.mask;
  Cell* to = w.values.at(n.dst);
  std::memset(to, 0, sizeof(Cell) * kLanes);
  if (lanes == 0) return;
  if (m.in_registers) {
    const int64_t index = scalar(w, n.a);
    if (!register_range(w, n.access, m, index, 1)) return;
    const Cell* from = read_register(w, n.access, lanes, m, index);
    each_lane(lanes, [&](int l) { to[l] = from[l]; });
    return;
  }
  // A wide access is judged once, at its first element.
  const bool check = access.width == 1 || lane_element_ == 0;
  const Addresses a = locate(w, n.access, lanes, w.values.operand(n.a), check);
  if (check) {
    const int64_t bytes = access.width * m.element;
    check_alignment(w, n.access, a, bytes);
    count_access(n.access, m, a, bytes);
    check_history(w, n.access, m, a, bytes, false);
  }
  each_lane(a.lanes, [&](int l) { to[l] = decode_one(m.type, pointer(m, a.at[static_cast<size_t>(l)])); });
}

void BlockExecutor::write_lanes(Warp& w, uint32_t access, uint32_t lanes, Operand index, Operand value,
                                bool check) {
  const MemoryView& m = memory(code_.accesses[access].memory);
  if (lanes == 0) return;
  if (m.in_registers) {
    const int64_t at = index[0].i;
    if (!register_range(w, access, m, at, 1)) return;
    Cell* to = write_register(w, access, lanes, m, at);
    each_lane(lanes, [&](int l) { to[l] = value[l]; });
    return;
  }
  const Addresses a = locate(w, access, lanes, index, check);
  if (check) {
    const int64_t bytes = code_.accesses[access].width * m.element;
    check_alignment(w, access, a, bytes);
    count_access(access, m, a, bytes);
    check_history(w, access, m, a, bytes, false);
  }
  each_lane(a.lanes, [&](int l) { encode_one(m.type, value[l], pointer(m, a.at[static_cast<size_t>(l)])); });
}

void BlockExecutor::store(Warp& w, const Step& s) {
  const uint32_t lanes = s.z ? true_lanes(w, s.z, w.mask) : w.mask;
  if (guarded_) settle_reads(lanes);
  const Operand index = w.values.operand(s.x);
  Origins origins;
  if (options_.places != nullptr && s.times != kNothing) check_multiply_add(w, s, lanes, index);
  if (options_.places != nullptr) note_move(w, s, lanes, index, origins);
  write_lanes(w, s.access, lanes, index, w.values.operand(s.y), true);
  if (options_.places != nullptr)
    set_origins(w, lanes, code_.accesses[s.access].memory, index[0].i, origins);
}

// All elements are computed before the first is written.
void BlockExecutor::wide_store(Warp& w, const Step& s) {
  wide_.resize(static_cast<size_t>(s.extent));
  uint32_t every = w.mask;  // lanes that write all elements
  for (lane_element_ = 0; lane_element_ < s.extent; ++lane_element_) {
    WideElement& e = wide_[static_cast<size_t>(lane_element_)];
    w.values.at(s.variable)->i = lane_element_;
    run_segment(w, s.lane_segment);
    e.lanes = s.z ? true_lanes(w, s.z, w.mask) : w.mask;
    every &= e.lanes;
    const Operand index = w.values.operand(s.x), value = w.values.operand(s.y);
    for (size_t l = 0; l < kLanes; ++l) {
      e.index[l] = index[static_cast<int>(l)];
      e.value[l] = value[static_cast<int>(l)];
    }
    if (options_.places != nullptr) note_move(w, s, e.lanes, index, e.origins);
  }
  lane_element_ = 0;
  if (guarded_) settle_reads(every);
  bool first = true;
  for (WideElement& e : wide_) {
    write_lanes(w, s.access, e.lanes, {e.index.data(), 1}, {e.value.data(), 1}, first || s.width == 1);
    if (options_.places != nullptr)
      set_origins(w, e.lanes, code_.accesses[s.access].memory, e.index[0].i, e.origins);
    first = false;
  }
}

}  // namespace tilegen::sim
