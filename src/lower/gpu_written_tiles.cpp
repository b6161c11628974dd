#include "lower/written_tiles.h"

#include <algorithm>

#include "lower/plant_barriers.h"

namespace tilegen::lower {

namespace {

// A statement of the loop that writes the tile, or multiplies it, where it stands among the others in time.
struct Use {
  size_t at = 0;
  int64_t lag = 0;
  bool product = false;
};

}  // namespace

WrittenTiles::WrittenTiles(KernelLowering& k, const std::vector<Issued>& order, const std::string& origin)
    : k_(k), origin_(origin), before_(order.size(), Meeting::none), behind_(order.size(), Meeting::none) {
  for (const schedule::WrittenOperand& w : k.written_) place(w, order);
}

void WrittenTiles::place(const schedule::WrittenOperand& w, const std::vector<Issued>& order) {
  const Meeting those = w.own_rows ? Meeting::warpgroup : Meeting::all;
  std::vector<Use> uses;
  size_t inside = 0;  // writers
  for (size_t at = 0; at < order.size(); ++at) {
    const ir::Block one = {order[at].stmt};
    bool writes = false, multiplies = false;
    ir::for_each_statement(k_.p_, one, [&](ir::StmtId s, int) {
      const auto is = [&](size_t op) { return k_.ops_.ops[op].stmt == s; };
      if (std::any_of(w.writers.begin(), w.writers.end(), is)) writes = true, ++inside;
      multiplies = multiplies || std::any_of(w.products.begin(), w.products.end(), is);
    });
    if (writes || multiplies) uses.push_back({at, order[at].lag, multiplies});
  }
  if (std::none_of(uses.begin(), uses.end(), [](const Use& u) { return u.product; })) return;
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.lag < b.lag; });
  // Iterations follow each other: behind the last use comes the first. With slots in turn the other slot's
  // products are finished in front of the meeting behind the writes (gpu_channel_loop.cpp).
  const bool in_turn = k_.schedule_.values[static_cast<size_t>(w.value)].slots > 1;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].product) continue;
    if (uses[(i + 1) % uses.size()].product) raise(behind_[uses[i].at], those);
    if (uses[(i + uses.size() - 1) % uses.size()].product && !w.own_rows && !in_turn)
      raise(before_[uses[i].at], Meeting::all);
  }
  if (inside == w.writers.size()) return;
  raise(enter_, those);
  const bool again = k_.tile_var_.valid() || w.writers.back() > w.products.front();
  if (again && !w.own_rows) raise(leave_, Meeting::all);
}

void WrittenTiles::meet(Meeting m, thread::Block& out) {
  if (m == Meeting::warpgroup) k_.warpgroup_barrier(out, origin_);
  if (m == Meeting::all)
    out.push_back(k_.out_.add(thread::Barrier{kRoleBarrier, *k_.schedule_.threads, false}, origin_));
}

void WrittenTiles::hand_over(Meeting m, thread::Block& out) {
  if (m == Meeting::none) return;
  out.push_back(k_.out_.add(thread::ProxyFence{}, origin_));
  meet(m, out);
}

}  // namespace tilegen::lower
