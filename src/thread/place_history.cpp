#include "thread/place_history.h"

#include <algorithm>

namespace tilegen::thread {

void PlaceClock::join(const PlaceClock& from) {
  const auto raise = [](std::vector<uint32_t>& to, const std::vector<uint32_t>& with) {
    if (to.size() < with.size()) to.resize(with.size(), 0);
    for (size_t i = 0; i < with.size(); ++i) to[i] = std::max(to[i], with[i]);
  };
  raise(seen, from.seen);
  raise(fenced, from.fenced);
}

void PlaceHistory::name_reader(int party, std::string name) {
  if (readers_.size() <= static_cast<size_t>(party)) readers_.resize(static_cast<size_t>(party) + 1);
  readers_[static_cast<size_t>(party)] = std::move(name);
}

// Index of the first range that begins at or after `at`, which lies inside none.
size_t PlaceHistory::split(int64_t at) {
  auto r = std::lower_bound(ranges_.begin(), ranges_.end(), at,
                            [](const Range& x, int64_t v) { return x.end <= v; });
  if (r == ranges_.end() || r->begin >= at) return static_cast<size_t>(r - ranges_.begin());
  Range rest = *r;
  r->end = rest.begin = at;
  r = ranges_.insert(r + 1, std::move(rest));
  return static_cast<size_t>(r - ranges_.begin());
}

void PlaceHistory::note(std::vector<PlaceAccess>& list, const PlaceAccess& by) {
  for (PlaceAccess& a : list)
    if (a.party == by.party) return void(a = by);
  list.push_back(by);
}

void PlaceHistory::check_writers(const Range& r, const PlaceAccess& by, int process, const PlaceClock& knows,
                                 Kind kind, bool handed, const Place& place) {
  if (r.filled.epoch > 0 && r.filled.epoch > knows.seen[static_cast<size_t>(r.filled.party)])
    report_(by.stmt, r.filled.stmt,
            kind == Kind::fill ? place.text() + " is filled again with no wait for those who release it"
                               : place.text() + " is used with no wait for the copy that fills it");
  const bool plain = kind == Kind::write || kind == Kind::read;
  if (plain && !handed) return;  // threads among themselves
  for (const PlaceAccess& w : r.writes) {
    if (w.party != process && w.epoch > knows.seen[static_cast<size_t>(w.party)])
      report_(by.stmt, w.stmt,
              place.text() + " is used with no " +
                  (w.party < processes_ ? "barrier after the threads that write it"
                                        : "wait for the asynchronous copies that write it"));
    else if (!plain && w.epoch > knows.fenced[static_cast<size_t>(w.party)])
      report_(by.stmt, w.stmt, place.text() + " is used with no proxy fence of the threads that write it");
  }
}

void PlaceHistory::check_readers(const Range& r, const PlaceAccess& by, int process, const PlaceClock& knows,
                                 const char* verb, bool threads_too, const Place& place) {
  for (const PlaceAccess& x : r.reads) {
    const bool thread = x.party < processes_;
    if ((thread && (!threads_too || x.party == process)) ||
        x.epoch <= knows.seen[static_cast<size_t>(x.party)])
      continue;
    report_(by.stmt, x.stmt,
            place.text() + " is " + verb + " while " +
                (thread ? "threads" : readers_[static_cast<size_t>(x.party)]) + " may still read it");
  }
}

std::string PlaceHistory::Place::text() const {
  const Memory& m = p.memory(memory);
  const int64_t slot = m.elements / std::max<int64_t>(m.slots, 1) * ir::dtype_bytes(m.type);
  return m.name +
         (m.slots > 1 ? " (slot " + std::to_string((begin % p.arena_bytes - m.arena_offset) / slot) + ")"
                      : "") +
         (p.cluster > 1 ? " of block " + std::to_string(begin / p.arena_bytes) : "");
}

void PlaceHistory::touch(Kind kind, const PlaceAccess& by, int process, const PlaceClock& knows,
                         MemoryId memory, int64_t begin, int64_t end) {
  const Place place{p_, memory, begin};
  size_t i = split(begin);
  split(end);
  bool filled = false;
  const bool engine = kind == Kind::fill || kind == Kind::engine_read, handed = handed_.count(memory) > 0;
  for (int64_t at = begin; at < end; ++i) {
    if (i == ranges_.size() || ranges_[i].begin > at) {
      Range fresh;
      fresh.begin = at;
      fresh.end = i == ranges_.size() ? end : std::min(end, ranges_[i].begin);
      ranges_.insert(ranges_.begin() + static_cast<long>(i), fresh);
    }
    Range& r = ranges_[i];
    at = r.end;
    filled |= !r.empty();
    check_writers(r, by, process, knows, kind, handed, place);
    if (kind == Kind::fill || kind == Kind::write)
      check_readers(r, by, process, knows, kind == Kind::fill ? "filled" : "written", engine || handed,
                    place);
    switch (kind) {
      case Kind::fill:
        r.filled = by;
        r.writes.clear(), r.reads.clear();
        break;
      case Kind::write:
        r.filled = {};
        r.reads.clear();
        note(r.writes, by);
        break;
      case Kind::read:
      case Kind::engine_read:
        note(r.reads, by);
    }
  }
  if ((kind == Kind::engine_read || (kind == Kind::read && handed)) && !filled &&
      left_out_.count(memory) == 0)
    report_(by.stmt, by.stmt, place.text() + " is used, but nothing has filled it yet");
}

}  // namespace tilegen::thread
