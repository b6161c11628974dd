#include "sim/shared_history.h"

#include <bit>

#include "sim/bytecode.h"

namespace tilegen::sim {

SharedHistory::SharedHistory(int64_t bytes, int granule)
    : granule_(granule),
      granule_bits_(std::countr_zero(static_cast<unsigned>(granule))),
      cells_(static_cast<size_t>((bytes + granule - 1) / granule)) {}

Trouble SharedHistory::check_writer(const Cell& c, const Actor& by) const {
  if (!alive(c.epoch)) return {};
  const int thread = c.thread & ~kWholeWarp, party = by.party_of(thread);
  const bool own = by.is_async() ? c.thread == by.issuer : c.thread == by.thread && !by.whole_warp;
  if (!own && c.epoch > by.seen[party]) return {Conflict::race, c.access, thread};
  if (by.is_async() && party < by.warps && c.epoch > (own ? by.own_fence : by.fenced[party]))
    return {Conflict::unfenced, c.access, thread};
  return {};
}

bool SharedHistory::unordered_reader(const Reader& r, const Actor& by) const {
  if (!alive(r.epoch) || r.epoch <= by.seen[r.party]) return false;
  if (by.is_async()) return r.lane == kSeveral || r.party * by.lanes() + r.lane != by.issuer;
  return r.party != by.party() || by.whole_warp || r.lane != by.lane();
}

bool SharedHistory::unfenced_reader(const Reader& r, const Actor& by) const {
  if (!by.is_async() || !alive(r.epoch) || r.party >= by.warps) return false;
  const bool own = r.lane != kSeveral && r.party * by.lanes() + r.lane == by.issuer;
  return r.epoch > (own ? by.own_fence : by.fenced[r.party]);
}

Trouble SharedHistory::check_readers(const Cell& c, const Actor& by) const {
  const auto trouble = [&](const Reader& r) -> Trouble {
    int lane = r.lane == kSeveral ? 0 : r.lane;
    if (r.lane == kSeveral && r.party == by.party() && by.lane() == 0) lane = 1;
    if (unordered_reader(r, by)) return {Conflict::race, r.access, r.party * by.lanes() + lane};
    if (unfenced_reader(r, by)) return {Conflict::unfenced_read, r.access, r.party * by.lanes() + lane};
    return {};
  };
  for (const Reader& r : c.readers)
    if (const Trouble t = trouble(r); t.conflict != Conflict::none) return t;
  if (c.has_more != 0)
    for (const Reader& r : more_[c.more])
      if (const Trouble t = trouble(r); t.conflict != Conflict::none) return t;
  return {};
}

// False when the slot belongs to a reader that must be kept beside this one.
bool SharedHistory::place_reader(Reader& r, const Actor& by) const {
  const uint8_t lane = by.whole_warp ? kSeveral : static_cast<uint8_t>(by.lane());
  if (alive(r.epoch) && r.epoch > by.seen[r.party]) {
    if (r.party != by.party()) return false;
    r.lane = r.lane == lane ? lane : kSeveral;
    r.epoch = by.epoch;
    r.access = by.access;
    return true;
  }
  r = {by.epoch, by.access, static_cast<uint16_t>(by.party()), lane};
  return true;
}

void SharedHistory::add_reader(Cell& c, const Actor& by) {
  if (unread(c)) {
    place_reader(c.readers[0], by);
    return;
  }
  // The warp's own entry, wherever it is, before an empty one: a warp has one entry.
  const auto mine = [&](const Reader& r) { return r.party == by.party() && alive(r.epoch); };
  for (Reader& r : c.readers)
    if (mine(r)) return void(place_reader(r, by));
  if (c.has_more != 0)
    for (Reader& r : more_[c.more])
      if (mine(r)) return void(place_reader(r, by));
  for (Reader& r : c.readers)
    if (place_reader(r, by)) return;
  if (c.has_more == 0) {
    if (free_more_.empty()) {
      free_more_.push_back(static_cast<uint32_t>(more_.size()));
      more_.emplace_back();
    }
    c.more = free_more_.back();
    free_more_.pop_back();
    more_[c.more].clear();
    c.has_more = 1;
  }
  for (Reader& r : more_[c.more])
    if (place_reader(r, by)) return;
  Reader fresh;
  place_reader(fresh, by);
  more_[c.more].push_back(fresh);
}

void SharedHistory::clear_readers(Cell& c) {
  c.readers[0].epoch = c.readers[1].epoch = 0;
  if (c.has_more != 0) free_more_.push_back(c.more);
  c.has_more = 0;
}

Trouble SharedHistory::read(const Actor& by, int64_t offset, int64_t bytes, int64_t* at) {
  Trouble first;
  for (int64_t o = offset; o < offset + bytes; o += granule_) {
    Cell& c = cells_[this->at(o)];
    Trouble t;
    if (c.copy == 0 && alive(c.epoch) && c.memory == by.memory && after_write(c, by)) {
      add_reader(c, by);
      continue;
    }
    if (c.copy != 0)
      t.conflict = Conflict::in_flight;
    else if (!alive(c.epoch))
      t.conflict = Conflict::unwritten;
    else if (t = check_writer(c, by); t.conflict == Conflict::none && c.memory != by.memory)
      t = {Conflict::foreign, c.access, c.thread & ~kWholeWarp};
    add_reader(c, by);
    if (first.conflict == Conflict::none && t.conflict != Conflict::none) first = t, *at = o;
  }
  return first;
}

Trouble SharedHistory::write(const Actor& by, int64_t offset, int64_t bytes, int64_t* at) {
  Trouble first;
  for (int64_t o = offset; o < offset + bytes; o += granule_) {
    Cell& c = cells_[this->at(o)];
    Trouble t;
    if (c.copy != 0) {
      t.conflict = Conflict::in_flight;
    } else if ((alive(c.epoch) && !after_write(c, by)) || !unread(c)) {
      const bool meet = by.atomic && c.atomic != 0 && by.meets(c.access);
      if (!meet) t = check_writer(c, by);
      if (t.conflict == Conflict::none) t = check_readers(c, by);
    }
    c.atomic = by.atomic ? 1 : 0;
    c.epoch = by.epoch, c.access = by.access, c.memory = by.memory, c.thread = writer(by);
    clear_readers(c);
    if (first.conflict == Conflict::none && t.conflict != Conflict::none) first = t, *at = o;
  }
  return first;
}

Trouble SharedHistory::launch(const Actor& by, int64_t offset, int64_t bytes, uint32_t copy, int64_t* at) {
  const Trouble t = write(by, offset, bytes, at);
  for (int64_t o = offset; o < offset + bytes; o += granule_) cells_[this->at(o)].copy = copy;
  return t;
}

void SharedHistory::land(const Actor& by, int64_t offset, int64_t bytes, uint32_t copy) {
  for (int64_t o = offset; o < offset + bytes; o += granule_) {
    Cell& c = cells_[this->at(o)];
    if (c.copy != copy) continue;  // another copy was started on top, which was reported
    c.copy = 0;
    c.epoch = by.epoch, c.access = by.access, c.memory = by.memory, c.thread = writer(by);
    clear_readers(c);
  }
}

void SharedHistory::forget(int64_t offset, int64_t bytes) {
  for (int64_t o = offset; o < offset + bytes; o += granule_) cells_[this->at(o)].copy = 0;
}

}  // namespace tilegen::sim
