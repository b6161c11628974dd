#include "thread/role_walk.h"

#include <algorithm>

namespace tilegen::thread {

namespace {

constexpr int64_t kMaxSteps = 100'000;  // of a block

}  // namespace

RoleWalk::RoleWalk(const RoleProgram& r, const PointValues& launch, std::vector<std::string>& hazards,
                   Seen& seen)
    : r_(r),
      p_(*r.program),
      hazards_(hazards),
      seen_(seen),
      places_(p_, static_cast<int>(r.processes.size()) * static_cast<int>(p_.cluster),
              [this](StmtId id, StmtId other, const std::string& text) { hazard(id, other, text); }),
      named_barriers_(static_cast<size_t>(std::max(p_.machine.named_barriers, 1))),
      meetings_(named_barriers_ * static_cast<size_t>(p_.cluster) + 1),
      handed_(static_cast<size_t>(p_.cluster)) {
  const size_t n = r.processes.size() * static_cast<size_t>(p_.cluster);
  int parties = 3 * static_cast<int>(n);
  for (const RoleProcess& process : r.processes) groups_ = std::max(groups_, process.group + 1);
  first_product_ = parties;
  parties += groups_ * static_cast<int>(p_.cluster);
  at_product_.resize(static_cast<size_t>(groups_ * p_.cluster));
  for (const TransactionBarriers& b : p_.barriers) {
    first_load_.push_back(parties);
    parties += static_cast<int>(b.count * p_.cluster);
    phases_.emplace_back(static_cast<size_t>(b.count * p_.cluster));
  }
  for (MemoryId m : r.handed) places_.hand(m);
  for (const RoleStep& s : r.steps)
    if (s.op == RoleOp::cluster_load) places_.hand(node<ClusterLoad>(s).src);
  // What would fill them was found never to run.
  std::vector<bool> filled(p_.memories.size(), false);
  for (const RoleTouch& touch : r.touches)
    if (touch.write) filled[touch.memory.value] = true;
  for (const RoleStep& s : r.steps)
    if (s.op == RoleOp::load) filled[node<TensorLoad>(s).dst.value] = true;
  for (size_t m = 0; m < filled.size(); ++m)
    if (!filled[m]) places_.leave_out(MemoryId(m));
  // Of what is stored in boxes only sampled threads are looked at: others may have written between them.
  for (const RoleStep& s : r.steps)
    if (s.op == RoleOp::store && !r.operands[node<TensorStore>(s).src.value])
      places_.leave_out(node<TensorStore>(s).src);
  for (size_t i = 0; i < n; ++i) places_.name_reader(static_cast<int>(2 * n + i), "the copy engine");
  for (int g = 0; g < groups_ * static_cast<int>(p_.cluster); ++g)
    places_.name_reader(first_product_ + g, "a product");
  for (size_t i = 0; i < n; ++i) {
    const int64_t block = static_cast<int64_t>(i / r.processes.size());
    running_.emplace_back(r.processes[i % r.processes.size()], launch, block);
    if (p_.cluster > 1) running_.back().values.set(p_.block_vars[0], block);
    running_.back().values.set_elements(&handed_[static_cast<size_t>(block)]);
    running_.back().reached.resize(static_cast<size_t>(p_.cluster));
    running_.back().knows.seen.resize(static_cast<size_t>(parties), 0);
    running_.back().knows.fenced.resize(2 * n, 0);
  }
}

void RoleWalk::run() {
  const int64_t most = kMaxSteps * p_.cluster;
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < running_.size(); ++i)
      while (running_[i].state == State::ready && steps_ < most) {
        progress = true;
        ++steps_;
        step(static_cast<int>(i));
      }
  }
  if (steps_ >= most) return;
  const bool stuck =
      std::any_of(running_.begin(), running_.end(), [](const Running& x) { return x.state != State::done; });
  stuck ? report_stuck() : check_end();
}

void RoleWalk::release(Running& x, int i, PlaceClock& to) {
  to.join(x.knows);
  to.seen[static_cast<size_t>(i)] = std::max(to.seen[static_cast<size_t>(i)], x.epoch);
  ++x.epoch;
}

void RoleWalk::step(int i) {
  Running& x = running_[static_cast<size_t>(i)];
  const RoleStep& s = r_.steps[x.pc++];
  x.at = s.stmt;
  switch (s.op) {
    case RoleOp::loop:
      x.loops.push_back({0, eval(x, s.value, 1)});
      x.gathering += s.gathers;
      return iterate(x, i, s, x.pc - 1);
    case RoleOp::loop_end: {
      const RoleStep& begin = r_.steps[s.jump];
      auto& [at, extent] = x.loops.back();
      at = begin.sampled ? std::max(at + 1, extent - 1) : at + 1;
      return iterate(x, i, begin, s.jump);
    }
    case RoleOp::branch: {
      const bool taken = eval(x, s.value, 1) != 0;
      if (!tells_threads_apart(s.value))
        taken ? leave_out(s.jump, r_.steps[s.jump - 1].jump) : leave_out(x.pc, s.jump);
      if (!taken) x.pc = s.jump;
      return;
    }
    case RoleOp::jump:
      x.pc = s.jump;
      return;
    case RoleOp::one_thread:
      if (x.process.warps == 0) return void(x.pc = s.jump);
      x.outside.push_back(x.threads);
      x.threads = x.process.warps;
      return;
    case RoleOp::one_thread_end:
      x.threads = x.outside.back();
      x.outside.pop_back();
      return;
    case RoleOp::barrier: {
      const auto& b = node<Barrier>(s);
      return meet(
          x, i, static_cast<size_t>(x.block) * named_barriers_ + static_cast<size_t>(b.id) % named_barriers_,
          b.threads == 0 ? p_.threads : b.threads, b.arrive_only);
    }
    case RoleOp::cluster_barrier:
      return meet(x, i, meetings_.size() - 1, p_.threads * p_.cluster, false);
    case RoleOp::arrive:
      return arrive(x, i, s);
    case RoleOp::wait:
      return wait(x, s);
    case RoleOp::test:
      return test(x, s);
    case RoleOp::cluster_load:
      return cluster_load(x, i, s);
    case RoleOp::load:
      return load(x, i, s);
    case RoleOp::store:
      return store(x, i, s);
    case RoleOp::bulk_commit:
      ++x.bulk_commits;
      return;
    case RoleOp::bulk_wait:
      return bulk_wait(x, i, node<BulkWait>(s));
    case RoleOp::copy_commit:
      ++x.copy_commits;
      return;
    case RoleOp::copy_wait:
      return copy_wait(x, i, node<AsyncWait>(s));
    case RoleOp::proxy_fence: {
      const auto copies = static_cast<size_t>(copy_party(i));
      x.knows.fenced[static_cast<size_t>(i)] = x.epoch++;
      x.knows.fenced[copies] = x.knows.seen[copies];
      return;
    }
    case RoleOp::product:
      return product(x, i, s);
    case RoleOp::product_commit:
      ++x.product_commits;
      return;
    case RoleOp::product_wait:
      return product_wait(x, node<WarpgroupWait>(s));
    case RoleOp::set:
      return void(x.values.set(ir::VarId(s.first), eval(x, s.value, 0)));
    case RoleOp::fetch_tile: {
      // As if the blocks claimed in turns.
      const int64_t launched = x.values[p_.launched_var].value_or(1),
                    own = x.values[p_.block_vars[0]].value_or(0);
      return void(x.values.set(ir::VarId(s.first), x.fetched++ * launched + own));
    }
    case RoleOp::hand: {
      const auto what = r_.values[static_cast<size_t>(s.value)].eval(x.values);
      auto& handed = handed_[static_cast<size_t>(x.block)];
      const std::pair place(node<Store>(s).memory, eval(x, s.second, 0));
      what ? void(handed[place] = *what) : void(handed.erase(place));
      return;
    }
    case RoleOp::touch:
      return touch(x, i, s);
    case RoleOp::end:
      x.state = State::done;
  }
}

void RoleWalk::iterate(Running& x, int i, const RoleStep& loop, uint32_t begin) {
  const auto [at, extent] = x.loops.back();
  if (at < extent && (loop.second < 0 || eval(x, loop.second, 0) != 0)) {
    x.values.set(node<Loop>(loop).var, at);
    x.pc = begin + 1;
    return;
  }
  x.loops.pop_back();
  x.pc = loop.jump;
  if (extent <= 0) leave_out(begin, loop.jump);
  if (loop.gathers && --x.gathering == 0) touch_gathered(x, i);
}

void RoleWalk::meet(Running& x, int i, size_t at, int64_t wanted, bool arrive_only) {
  Meeting& m = meetings_[at];
  if (m.arrived > 0 && m.wanted != wanted)
    hazard(x.at, m.last,
           "barrier " + std::to_string(at % named_barriers_) + " is for " + std::to_string(wanted) +
               " threads here, and for " + std::to_string(m.wanted) + " to those who are there");
  m.wanted = wanted;
  if (std::find(m.here.begin(), m.here.end(), static_cast<size_t>(i)) != m.here.end())
    hazard(x.at, x.at,
           name_of(x) + " arrives again at barrier " + std::to_string(at % named_barriers_) +
               " before its last arrival is taken (" + std::to_string(m.arrived) + " of " +
               std::to_string(wanted) + " threads)");
  m.here.push_back(static_cast<size_t>(i));
  m.last = x.at;
  m.arrived += x.threads;
  m.clock.seen.resize(x.knows.seen.size(), 0);
  release(x, i, m.clock);
  if (!arrive_only) {
    x.state = State::at_barrier;
    x.array = static_cast<int>(at);
    m.waiting.push_back(static_cast<size_t>(i));
  }
  if (m.arrived < m.wanted) return;
  for (size_t w : m.waiting) {
    running_[w].state = State::ready;
    running_[w].knows.join(m.clock);
  }
  m = {};
}

RoleWalk::Phase* RoleWalk::phase(const RoleStep& s, int array, int64_t block, int64_t index) {
  if (block < 0 || block >= p_.cluster) {
    hazard(s.stmt, s.stmt, "there is no block " + std::to_string(block) + " of the cluster");
    return nullptr;
  }
  if (index >= 0 && index < p_.barriers[static_cast<size_t>(array)].count)
    return &phases_[static_cast<size_t>(array)][static_cast<size_t>(of_block(array, block, index))];
  hazard(s.stmt, s.stmt,
         "there is no " + p_.barriers[static_cast<size_t>(array)].name + "[" + std::to_string(index) + "]");
  return nullptr;
}

// At barriers of which blocks how many threads arrive.
std::vector<std::pair<int64_t, int64_t>> RoleWalk::arrivals(Running& x, const RoleStep& s) {
  if (s.second < 0) return {{x.block, x.threads}};
  std::vector<std::pair<int64_t, int64_t>> counts;
  for (int64_t thread : x.process.members) {
    if (x.threads < x.process.threads && thread % p_.machine.warp != 0) continue;  // one of each warp
    if (p_.thread_var.valid()) x.values.set(p_.thread_var, thread);
    const int64_t block = r_.values[static_cast<size_t>(s.second)].eval(x.values).value_or(x.block);
    const auto known =
        std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == block; });
    known == counts.end() ? counts.push_back({block, 1}) : void(++known->second);
  }
  return counts;
}

void RoleWalk::arrive(Running& x, int i, const RoleStep& s) {
  const auto& n = node<TransactionArrive>(s);
  const int64_t index = eval(x, s.value, 0), wanted = arrivals_wanted(n.barriers);
  for (const auto& [block, threads] : arrivals(x, s)) {
    Phase* f = phase(s, n.barriers, block, index);
    if (f == nullptr) return;
    const int64_t at = of_block(n.barriers, block, index);
    if (f->arrived + threads > wanted)
      hazard(s.stmt, s.stmt,
             std::to_string(threads) + " arrivals more than counted at " + phase_text(n.barriers, at));
    f->arrived = std::min(wanted, f->arrived + threads);
    f->to_land += n.bytes * threads;
    f->unclaimed += n.bytes * threads;
    f->current.seen.resize(x.knows.seen.size(), 0);
    if (block != x.block) x.reached[static_cast<size_t>(block)] = {x.epoch, 0, s.stmt};
    release(x, i, f->current);
    advance(n.barriers, at);
  }
}

void RoleWalk::advance(int array, int64_t index) {
  Phase& f = phases_[static_cast<size_t>(array)][static_cast<size_t>(index)];
  if (f.arrived < arrivals_wanted(array) || f.to_land != 0) return;
  ++f.number;
  f.arrived = f.unclaimed = 0;
  f.completed.join(f.current);
  f.current = {};
  f.completed.seen[static_cast<size_t>(first_load_[static_cast<size_t>(array)] + index)] =
      static_cast<uint32_t>(f.number);
  for (Running& x : running_)
    if (x.state == State::at_phase && x.array == array && x.index == index && (f.number & 1) != x.parity) {
      x.state = State::ready;
      pass(x, f);
    }
}

void RoleWalk::pass(Running& x, Phase& f) {
  x.knows.join(f.completed);
  f.waited = static_cast<uint32_t>(f.number);
}

void RoleWalk::wait(Running& x, const RoleStep& s) {
  const auto& n = node<TransactionWait>(s);
  x.array = n.barriers;
  x.index = eval(x, s.value, 0);
  x.parity = eval(x, s.second, 0) & 1;
  if (n.unless.valid()) check_tested(x, s, n.unless);
  Phase* f = phase(s, x.array, x.block, x.index);
  if (f == nullptr) return;
  x.index = of_block(x.array, x.block, x.index);
  (f->number & 1) != x.parity ? pass(x, *f) : void(x.state = State::at_phase);
}

// Its answer may be no at any time: the wait after it is walked as if it were.
void RoleWalk::test(Running& x, const RoleStep& s) {
  const auto& n = node<TransactionTest>(s);
  x.tested[{n.dst, n.dst_index}] = {n.barriers, eval(x, s.value, 0), eval(x, s.second, 0) & 1};
}

// A wait may be left out only for the phase that was asked for.
void RoleWalk::check_tested(Running& x, const RoleStep& s, ir::ExprId unless) {
  const ir::ExprNode& answer = p_.exprs[unless];
  const ir::ExprNode* held = answer.op == ir::ExprOp::ne && answer.a.valid() ? &p_.exprs[answer.a] : nullptr;
  const Tested wanted{x.array, x.index, x.parity};
  if (held != nullptr && held->op == ir::ExprOp::load)
    if (const auto it = x.tested.find({held->object, p_.exprs.indices(answer.a)[0]});
        it != x.tested.end() && it->second == wanted)
      return;
  hazard(s.stmt, s.stmt,
         "it does not wait for parity " + std::to_string(x.parity) + " of " +
             phase_text(x.array, of_block(x.array, x.block, x.index)) +
             " after a test that did not ask for that");
}

}  // namespace tilegen::thread
