// What the engines and the threads of a role do to memory.
#include <algorithm>

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

void RoleWalk::load(Running& x, int i, const RoleStep& s) {
  const auto& n = node<TensorLoad>(s);
  const int64_t index = eval(x, s.second, 0), bytes = box_bytes(n.map),
                own = byte_of(x, n.dst, eval(x, s.value, 0));
  const int64_t blocks = n.multicast != 0 ? n.multicast : int64_t{1} << x.block;
  for (int64_t block = 0; block < p_.cluster; ++block) {
    if ((blocks >> block & 1) == 0) continue;
    Phase* f = phase(s, n.barriers, block, index);
    if (f == nullptr) return;
    const int64_t at = of_block(n.barriers, block, index);
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
    places_.touch(PlaceHistory::Kind::fill, {party, f->loaded, s.stmt}, i, x.knows, n.dst, begin, begin + bytes);
    f->to_land -= bytes;
    advance(n.barriers, at);
  }
}

void RoleWalk::store(Running& x, int i, const RoleStep& s) {
  const auto& n = node<TensorStore>(s);
  const int64_t begin = byte_of(x, n.src, eval(x, s.value, 0));
  places_.touch(PlaceHistory::Kind::engine_read, {store_party(i), ++x.copies, s.stmt}, i, x.knows, n.src,
                begin, begin + box_bytes(n.map));
  x.copies_under_way.push_back({x.copies, x.bulk_commits, s.stmt});
}

void RoleWalk::bulk_wait(Running& x, int i, const BulkWait& n) {
  std::erase_if(x.copies_under_way, [&](const Work& w) { return w.group + n.pending < x.bulk_commits; });
  x.knows.seen[static_cast<size_t>(store_party(i))] =
      x.copies_under_way.empty() ? x.copies : x.copies_under_way.front().number - 1;
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
    for (const OperandRange& r : operand_ranges(p_, n, of_a)) {
      const int64_t begin = byte_of(x, memory, first + r.first);
      places_.touch(PlaceHistory::Kind::engine_read, {party, x.products, s.stmt}, i, x.knows, memory, begin,
                    begin + r.count * ir::dtype_bytes(p_.memory(memory).type));
    }
  }
  x.products_under_way.push_back({x.products, x.product_commits, s.stmt});
  issue_together(x);
}

// The threads of a warpgroup issue a product together: nobody goes on, and releases what it reads, before all are there.
void RoleWalk::issue_together(Running& x) {
  constexpr int64_t kGroup = 128;
  const int party = product_party(x);
  int64_t& there = at_product_[static_cast<size_t>(party - first_product_)];
  there += x.threads;
  x.state = State::at_product;
  if (there < kGroup) return;
  there = 0;
  for (Running& other : running_)
    if (other.state == State::at_product && product_party(other) == party) other.state = State::ready;
}

void RoleWalk::product_wait(Running& x, const WarpgroupWait& n) {
  std::erase_if(x.products_under_way, [&](const Work& w) { return w.group + n.pending < x.product_commits; });
  x.knows.seen[static_cast<size_t>(product_party(x))] =
      x.products_under_way.empty() ? x.products : x.products_under_way.front().number - 1;
}

// From the least to the largest place that the sampled threads touch; of an operand of products these alone: what lies between
// may be another warpgroup's.
void RoleWalk::touch(Running& x, int i, const RoleStep& s) {
  for (size_t t = s.first; t < s.last; ++t) {
    const RoleTouch& a = r_.touches[t];
    if (a.lane.valid()) x.values.set(a.lane, 0);
    const auto place = [&](int64_t low, int64_t high) {
      places_.touch(a.write ? PlaceHistory::Kind::write : PlaceHistory::Kind::read, {i, x.epoch, s.stmt}, i,
                    x.knows, a.memory, byte_of(x, a.memory, low), byte_of(x, a.memory, high));
    };
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (size_t sample = 0; sample < x.process.samples.size(); ++sample) {
      if (a.row_lanes > 0 && x.process.samples[sample] % 32 >= a.row_lanes) continue;
      const int64_t at = eval(x, a.index, -1, sample);
      if (at < 0) continue;  // of loaded data
      if (r_.operands[a.memory.value]) {
        place(at, at + a.count);
        continue;
      }
      low = std::min(low, at), high = std::max(high, at + a.count);
    }
    if (low <= high) place(low, high);
  }
}

}  // namespace tilegen::thread
