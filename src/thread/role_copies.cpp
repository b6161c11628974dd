// What the engines and the threads of a role do to memory.
#include <algorithm>

#include "thread/cooperation_verify.h"
#include "thread/role_walk.h"
#include "thread/sync_accesses.h"

namespace tilegen::thread {

int64_t RoleWalk::box_bytes(int map) const {
  const TensorMap& m = p_.tensor_maps[static_cast<size_t>(map)];
  int64_t bytes = ir::dtype_bytes(p_.memory(m.tensor).type);
  for (int64_t b : m.box) bytes *= b;
  return bytes;
}

int64_t RoleWalk::byte_of(const Running& x, MemoryId memory, int64_t index) const {
  const Memory& m = p_.memory(memory);
  return x.block * p_.arena_bytes + m.arena_offset + index * ir::dtype_bytes(m.type);
}

// Where a box begins, in any slot.
void RoleWalk::check_place(const RoleStep& s, int map, MemoryId memory, int64_t index) {
  const Memory& m = p_.memory(memory);
  const int64_t place = m.arena_offset + index * ir::dtype_bytes(m.type);
  const int64_t aligned = box_alignment(p_.tensor_maps[static_cast<size_t>(map)]);
  if (place % aligned != 0)
    hazard(s.stmt, s.stmt,
           "a box begins at byte " + std::to_string(place) + " of shared memory in " + m.name +
               ", expected a multiple of " + std::to_string(aligned));
}

void RoleWalk::cluster_load(Running& x, int i, const RoleStep& s) {
  const auto& n = node<ClusterLoad>(s);
  for (int64_t thread : x.process.samples) {
    if (p_.thread_var.valid()) x.values.set(p_.thread_var, thread);
    const auto at = r_.values[static_cast<size_t>(s.value)].eval(x.values),
               block = r_.values[static_cast<size_t>(s.second)].eval(x.values);
    if (!at || !block) continue;
    if (*block < 0 || *block >= p_.cluster)
      return hazard(s.stmt, s.stmt, "there is no block " + std::to_string(*block) + " of the cluster");
    const int64_t begin = byte_of(x, n.src, *at) + (*block - x.block) * p_.arena_bytes;
    places_.touch(PlaceHistory::Kind::read, {i, x.epoch, s.stmt}, i, x.knows, n.src, begin,
                  begin + n.elements * ir::dtype_bytes(p_.memory(n.src).type));
    if (*block != x.block) x.reached[static_cast<size_t>(*block)] = {x.epoch, 0, s.stmt};
  }
}

void RoleWalk::load(Running& x, int i, const RoleStep& s) {
  const auto& n = node<TensorLoad>(s);
  const int64_t index = eval(x, s.second, 0), bytes = box_bytes(n.map),
                own = byte_of(x, n.dst, eval(x, s.value, 0));
  check_place(s, n.map, n.dst, eval(x, s.value, 0));
  const int64_t blocks = n.multicast != 0 ? n.multicast : int64_t{1} << x.block;
  for (int64_t block = 0; block < p_.cluster; ++block) {
    if ((blocks >> block & 1) == 0) continue;
    Phase* f = phase(s, n.barriers, block, index);
    if (f == nullptr) return;
    const int64_t at = of_block(n.barriers, block, index);
    if (n.announces) {
      f->to_land += bytes;
      f->unclaimed += bytes;
    }
    // Another block may announce them later.
    if (f->unclaimed < bytes && block == x.block)
      hazard(s.stmt, s.stmt,
             "brings " + std::to_string(bytes) + " bytes, and " +
                 std::to_string(std::max<int64_t>(0, f->unclaimed)) + " of those announced are left at " +
                 phase_text(n.barriers, at));
    f->unclaimed -= bytes;
    f->loaded = static_cast<uint32_t>(f->number + 1);
    f->load = s.stmt;
    const int party = first_load_[static_cast<size_t>(n.barriers)] + static_cast<int>(at);
    const int64_t begin = own + (block - x.block) * p_.arena_bytes;
    places_.touch(PlaceHistory::Kind::fill, {party, f->loaded, s.stmt}, i, x.knows, n.dst, begin,
                  begin + bytes);
    f->to_land -= bytes;
    advance(n.barriers, at);
  }
}

void RoleWalk::store(Running& x, int i, const RoleStep& s) {
  const auto& n = node<TensorStore>(s);
  const int64_t begin = byte_of(x, n.src, eval(x, s.value, 0));
  check_place(s, n.map, n.src, eval(x, s.value, 0));
  places_.touch(PlaceHistory::Kind::engine_read, {store_party(i), ++x.stores, s.stmt}, i, x.knows, n.src,
                begin, begin + box_bytes(n.map));
  x.stores_under_way.push_back({x.stores, x.bulk_commits, s.stmt});
}

void RoleWalk::bulk_wait(Running& x, int i, const BulkWait& n) {
  std::erase_if(x.stores_under_way, [&](const Work& w) { return w.group + n.pending < x.bulk_commits; });
  x.knows.seen[static_cast<size_t>(store_party(i))] =
      x.stores_under_way.empty() ? x.stores : x.stores_under_way.front().number - 1;
}

void RoleWalk::copy_wait(Running& x, int i, const AsyncWait& n) {
  std::erase_if(x.copies_under_way, [&](const Work& w) { return w.group + n.pending < x.copy_commits; });
  x.knows.seen[static_cast<size_t>(copy_party(i))] =
      x.copies_under_way.empty() ? x.copies : x.copies_under_way.front().number - 1;
}

const std::vector<OperandRange>& RoleWalk::ranges_of(const WarpgroupMma& m, bool of_a) {
  const auto [it, fresh] = ranges_.try_emplace({&m, of_a});
  if (fresh) it->second = operand_ranges(p_, m, of_a);
  return it->second;
}

void RoleWalk::product(Running& x, int i, const RoleStep& s) {
  const auto& n = node<WarpgroupMma>(s);
  const int party = product_party(x);
  ++x.products;
  for (bool of_a : {true, false}) {
    const int value = of_a ? s.value : s.second;
    if (value < 0) continue;
    const MemoryId memory = of_a ? n.a : n.b;
    if (!r_.judges(memory)) continue;
    const int64_t first = eval(x, value, 0);
    for (const OperandRange& r : ranges_of(n, of_a)) {
      const int64_t begin = byte_of(x, memory, first + r.first);
      places_.touch(PlaceHistory::Kind::engine_read, {party, x.products, s.stmt}, i, x.knows, memory, begin,
                    begin + r.count * ir::dtype_bytes(p_.memory(memory).type));
    }
  }
  x.products_under_way.push_back({x.products, x.product_commits, s.stmt});
  issue_together(x);
}

// The threads of a warpgroup issue a product together: nobody goes on, and releases what it reads, before all
// are there.
void RoleWalk::issue_together(Running& x) {
  const int party = product_party(x);
  int64_t& there = at_product_[static_cast<size_t>(party - first_product_)];
  there += x.threads;
  x.state = State::at_product;
  if (there < p_.machine.warpgroup) return;
  there = 0;
  for (Running& other : running_)
    if (other.state == State::at_product && product_party(other) == party) other.state = State::ready;
}

void RoleWalk::product_wait(Running& x, const WarpgroupWait& n) {
  std::erase_if(x.products_under_way, [&](const Work& w) { return w.group + n.pending < x.product_commits; });
  x.knows.seen[static_cast<size_t>(product_party(x))] =
      x.products_under_way.empty() ? x.products : x.products_under_way.front().number - 1;
}

// By the thread and the block of the cluster alone: all of them are walked.
bool RoleWalk::tells_threads_apart(int condition) const {
  const IndexProgram& e = r_.values[static_cast<size_t>(condition)];
  return !e.vars().empty() && !e.reads_memory() &&
         std::all_of(e.vars().begin(), e.vars().end(), [&](ir::VarId v) {
           return v == p_.thread_var || (p_.cluster > 1 && v == p_.block_vars[0]);
         });
}

// The steps are not taken, by any of those who would.
void RoleWalk::leave_out(size_t first, size_t last) {
  for (; first < last; ++first)
    if (r_.steps[first].op == RoleOp::touch)
      for (size_t t = r_.steps[first].first; t < r_.steps[first].last; ++t)
        if (r_.touches[t].write) places_.leave_out(r_.touches[t].memory);
}

// Elements that the thread touches now; none where its condition does not hold. An index of loaded data is
// anywhere in its slot.
std::optional<std::pair<int64_t, int64_t>> RoleWalk::touched(Running& x, const RoleTouch& a) {
  const auto value = [&](int v) { return r_.values[static_cast<size_t>(v)].eval(x.values); };
  if (a.predicate >= 0 && value(a.predicate) == 0) {
    if (a.write && !tells_threads_apart(a.predicate)) places_.leave_out(a.memory);
    return std::nullopt;
  }
  if (const auto at = value(a.index)) return std::pair(*at, *at + a.count);
  const Memory& m = p_.memory(a.memory);
  int64_t begin = a.slot_constant;
  for (int term : a.slot_terms) {
    const auto known = value(term);
    if (!known) return std::pair(int64_t{0}, m.elements);
    begin += *known;
  }
  return std::pair(begin, begin + m.elements / m.slots);
}

// From the least to the largest place that the sampled threads touch. Of an operand of products what each
// thread touches: other places between may be another warpgroup's, and a product reads all that was written.
void RoleWalk::touch(Running& x, int i, const RoleStep& s) {
  for (size_t t = s.first; t < s.last; ++t) {
    const RoleTouch& a = r_.touches[t];
    const bool each = r_.operands[a.memory.value];
    auto& places = each && x.gathering > 0 ? x.gathered[t] : places_of_step_;
    if (&places == &places_of_step_) places.clear();
    for (int64_t thread : each ? x.process.members : x.process.samples) {
      if (a.row_lanes > 0 && thread % p_.machine.warp >= a.row_lanes) continue;
      if (p_.thread_var.valid()) x.values.set(p_.thread_var, thread);
      for (int64_t lane = 0; lane < a.lanes; ++lane) {
        if (a.lane.valid()) x.values.set(a.lane, lane);
        if (const auto own = touched(x, a)) places.push_back(*own);
      }
    }
    if (&places == &places_of_step_) touch_places(x, i, a, places);
  }
}

void RoleWalk::touch_places(Running& x, int i, const RoleTouch& a, Places& places) {
  std::sort(places.begin(), places.end());
  const PlaceAccess by =
      a.async ? PlaceAccess{copy_party(i), ++x.copies, a.stmt} : PlaceAccess{i, x.epoch, a.stmt};
  for (size_t first = 0, next = 0; first < places.size(); first = next) {
    int64_t end = places[first].second;
    for (next = first + 1;
         next < places.size() && (!r_.operands[a.memory.value] || places[next].first <= end); ++next)
      end = std::max(end, places[next].second);
    places_.touch(a.write ? PlaceHistory::Kind::write : PlaceHistory::Kind::read, by, i, x.knows, a.memory,
                  byte_of(x, a.memory, places[first].first), byte_of(x, a.memory, end));
  }
  if (a.async) x.copies_under_way.push_back({x.copies, x.copy_commits, a.stmt});
}

void RoleWalk::touch_gathered(Running& x, int i) {
  for (auto& [touch, places] : x.gathered) touch_places(x, i, r_.touches[touch], places);
  x.gathered.clear();
}

}  // namespace tilegen::thread
