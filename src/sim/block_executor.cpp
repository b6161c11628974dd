#include "sim/block_executor.h"

#include <algorithm>
#include <iterator>

#include "layout/tensor_tile.h"
#include "support/checked.h"

namespace tilegen::sim {

namespace {

uint32_t lanes_below(int64_t n) {
  return n >= kLanes ? 0xffffffffu : (uint32_t{1} << std::max<int64_t>(n, 0)) - 1;
}

// A swizzle moves bytes of the last row of a box by less.
constexpr size_t kSwizzleReach = std::end(layout::kBoxSwizzles)[-1];

// A multiple of the repeat of any swizzle, where several follow each other.
int64_t arena_stride(const thread::ThreadProgram& p) {
  const int64_t bytes = p.arena_bytes + static_cast<int64_t>(kSwizzleReach);
  return p.cluster > 1 ? ceil_div(bytes, layout::kSwizzleRepeat) * layout::kSwizzleRepeat : bytes;
}

}  // namespace

BlockExecutor::BlockExecutor(const Launch& launch)
    : launch_(launch),
      code_(*launch.code),
      program_(*launch.code->program),
      options_(*launch.options),
      engines_(program_),
      arena_stride_(arena_stride(program_)),
      warps_(static_cast<size_t>(engines_.warps())),
      temporaries_((size_t{code_.temporaries} + 1) * kLanes),
      arena_(static_cast<size_t>(arena_stride_ * program_.cluster)),
      barriers_(static_cast<size_t>(program_.machine.named_barriers) * static_cast<size_t>(program_.cluster)),
      order_(engines_.warps(), engines_.count()),
      history_(arena_stride_ * program_.cluster, launch.granule),
      groups_(static_cast<size_t>(engines_.groups())),
      asked_by_(static_cast<size_t>(engines_.count())),
      unit_marks_(static_cast<size_t>(arena_.size() / 16 + 1)),
      sums_(code_.accesses.size()),
      stop_(options_.cancellation) {
  for (const thread::TransactionBarriers& b : program_.barriers)
    transactions_.emplace_back(static_cast<size_t>(b.count * program_.cluster));
  for (size_t i = 0; i < warps_.size(); ++i) {
    Warp& w = warps_[i];
    w.index = static_cast<int>(i);
    w.rank = w.index / engines_.block_warps();
    w.local = w.index % engines_.block_warps();
    w.all = lanes_below(program_.threads - int64_t{w.local} * kLanes);
    w.kept.resize(size_t{code_.kept} * kLanes);
    w.registers.resize(size_t{code_.registers} * kLanes);
    w.written.resize(code_.registers);
    if (options_.places != nullptr) {
      w.origins.resize(size_t{code_.registers} * kLanes);
      w.products.resize(options_.places->ops);
    }
    w.in_product.resize(code_.registers);
    w.touched_at.resize(code_.registers);
    w.uniform = launch.uniform;
    w.values = {w.uniform.data(), w.kept.data(), temporaries_.data()};
  }
}

void BlockExecutor::begin_block(int64_t block) {
  block_ = block;
  abandoned_ = false;
  turn_ = 0;
  random_.seed(options_.seed + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(block + 1));
  order_.begin_block();
  history_.begin_block(order_);
  for (BarrierState& b : barriers_) b = {};
  cluster_barrier_ = {};
  reached_.clear();
  for (auto& array : transactions_) std::fill(array.begin(), array.end(), TransactionState{});
  for (Warpgroup& g : groups_) g = {};
  loads_.clear();
  for (Warp& w : warps_) begin_warp(w);
}

void BlockExecutor::begin_warp(Warp& w) {
  int64_t rest = block_ + w.rank;
  std::array<int64_t, 3> at{};
  for (size_t d = launch_.grid.size(); d-- > 0;) {
    at[d] = rest % launch_.grid[d];
    rest /= launch_.grid[d];
  }
  w.mask = w.all;
  w.pc = 0;
  w.state = w.all != 0 ? State::ready : State::done;
  w.statements = 0;
  w.depth = 0;
  w.commits.fill(0);
  for (ProductPlaces& p : w.products) p = {};
  w.copies.clear();
  w.bulk_commits.fill(0);
  w.stores.clear();
  w.touched = 0;
  w.fences = w.product_commits = 0;
  w.has_products = false;
  for (auto* by_register : {&w.written, &w.in_product, &w.touched_at})
    std::fill(by_register->begin(), by_register->end(), 0);
  if (program_.launched_var.valid())
    w.uniform[code_.variables[program_.launched_var.value]].i = launch_.launched;
  for (size_t d = 0; d < launch_.grid.size(); ++d)
    w.uniform[code_.variables[program_.block_vars[d].value]].i = at[d];
  w.uniform[code_.first_thread].i = int64_t{w.local} * kLanes;
  for (int l = 0; l < kLanes; ++l) w.kept[size_t{code_.thread_value} * kLanes + l].i = thread_in_block(w, l);
  run_segment(w, 0);
}

void BlockExecutor::run(int64_t cluster) {
  begin_block(cluster * program_.cluster);
  while (!abandoned_) {
    Warp* w = next_warp();
    if (w == nullptr) break;
    int64_t quantum = std::max<int64_t>(1, options_.switch_every);
    if (options_.order == WarpOrder::random)
      quantum = 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(quantum));
    run_warp(*w, quantum);
    abandoned_ |= stop_();
  }
  end_block();
}

// The next ready warp in the order asked for; none when all are done or stuck.
BlockExecutor::Warp* BlockExecutor::next_warp() {
  const int n = static_cast<int>(warps_.size());
  int start = turn_;
  if (options_.order == WarpOrder::random) start = static_cast<int>(random_() % static_cast<uint64_t>(n));
  for (int i = 0; i < n; ++i) {
    const int position = (start + i) % n;
    Warp& w =
        warps_[static_cast<size_t>(options_.order == WarpOrder::reversed ? n - 1 - position : position)];
    if (w.state != State::ready) continue;
    turn_ = (position + 1) % n;
    return &w;
  }
  // The copy engine is late as can be: it moves when nobody else can.
  if (!loads_.empty()) {
    const TensorCopy c = loads_.front();
    loads_.erase(loads_.begin());
    land(c);
    return next_warp();
  }
  bool waiting = false;
  for (const Warp& w : warps_) waiting |= w.state == State::waiting;
  if (waiting) report_stuck();
  return nullptr;
}

void BlockExecutor::end_block() {
  if (!abandoned_) {
    check_unfinished();
    check_reached();
    check_unclaimed();
    if (launch_.tile_order) launch_.tile_order->block_ends();
  }
  for (Warp& w : warps_) {
    for (TensorCopy& c : w.stores)
      if (!abandoned_ && !c.moved) move_out(c);
    for (uint32_t id : w.copies) {
      Copy& c = copies_[id];
      for (int l = 0; l < kLanes; ++l)
        if (c.pending >> l & 1) history_.forget(c.to[l], c.bytes);
      free_copies_.push_back(id);
    }
    counters_.statements += w.statements;
  }
  watched_sources_ = 0;
}

void BlockExecutor::run_warp(Warp& w, int64_t quantum) {
  while (quantum-- > 0 && w.state == State::ready) {
    const Step& s = code_.steps[w.pc++];
    guarded_ = s.z && (s.kind == StepKind::store || s.kind == StepKind::wide_store);
    if (s.segment != kNothing && s.kind != StepKind::end) run_segment(w, s.segment);
    step(w, s);
    ++w.statements;
    if (ended()) {
      abandoned_ = true;
      return;
    }
    if (options_.max_statements > 0 && w.statements > options_.max_statements) {
      Event e;
      e.kind = FindingKind::too_long;
      e.stmt = s.stmt;
      e.block = block_;
      e.thread = first_thread(w, w.mask);
      e.detail = "more than " + std::to_string(options_.max_statements) + " statements ran";
      report(std::move(e));
      abandoned_ = true;
      return;
    }
  }
}

void BlockExecutor::run_segment(Warp& w, uint32_t segment) {
  for (const Instr& n : code_.segments[segment]) {
    if (n.code == Code::load)
      load(w, n);
    else
      evaluate(n, w.values);
  }
}

void BlockExecutor::step(Warp& w, const Step& s) {
  switch (s.kind) {
    case StepKind::loop_begin:
      return enter_loop(w, s);
    case StepKind::loop_while:
      return go_on(w, s);
    case StepKind::loop_end:
      return next_iteration(w, s);
    case StepKind::branch:
      return branch(w, s);
    case StepKind::branch_else: {
      Frame& f = w.frames[w.depth - 1];
      w.mask = f.other;
      if (w.mask == 0) w.pc = s.jump;
      return;
    }
    case StepKind::branch_end:
      w.mask = w.frames[--w.depth].mask;
      return;
    case StepKind::store:
      return store(w, s);
    case StepKind::wide_store:
      return wide_store(w, s);
    case StepKind::lane_reduce:
      return lane_reduce(w, s);
    case StepKind::barrier:
      return barrier(w, s);
    case StepKind::async_copy:
      return async_copy(w, s);
    case StepKind::async_commit:
      return async_commit(w);
    case StepKind::async_wait:
      return async_wait(w, s);
    case StepKind::shuffle:
      return shuffle(w, s);
    case StepKind::load_matrix:
      return matrices(w, s, true);
    case StepKind::store_matrix:
      return matrices(w, s, false);
    case StepKind::mma:
      return mma(w, s);
    case StepKind::role:
      return enter_role(w, s);
    case StepKind::role_end:
      w.pc = s.jump;
      return;
    case StepKind::one_thread:
      return one_thread(w, s);
    case StepKind::transaction_arrive:
      return transaction_arrive(w, s);
    case StepKind::transaction_wait:
      return transaction_wait(w, s);
    case StepKind::transaction_test:
      return transaction_test(w, s);
    case StepKind::fetch_tile:
      return fetch_tile(w, s);
    case StepKind::tensor_load:
      return tensor_load(w, s);
    case StepKind::tensor_store:
      return tensor_store(w, s);
    case StepKind::bulk_commit:
      return bulk_commit(w);
    case StepKind::bulk_wait:
      return bulk_wait(w, s);
    case StepKind::proxy_fence:
      if ((w.touched & ~w.mask) == 0) order_.fence(w.index);
      return;
    case StepKind::cluster_barrier:
      return cluster_barrier(w, s);
    case StepKind::warpgroup_mma:
      return warpgroup_mma(w, s);
    case StepKind::warpgroup_fence:
      converged(w, s, FindingKind::divergent_instruction);
      ++w.fences;
      return;
    case StepKind::warpgroup_commit:
      converged(w, s, FindingKind::divergent_instruction);
      ++w.product_commits;
      return;
    case StepKind::warpgroup_wait:
      return warpgroup_wait(w, s);
    case StepKind::end:
      w.state = State::done;
      return;
  }
}

BlockExecutor::Frame& BlockExecutor::push(Warp& w) {
  if (w.depth == w.frames.size()) w.frames.emplace_back();
  Frame& f = w.frames[w.depth++];
  f.mask = w.mask;
  return f;
}

uint32_t BlockExecutor::true_lanes(const Warp& w, Ref r, uint32_t among) const {
  const Cell* c = w.values.at(r);
  if (r.stride() == 0) return c->i != 0 ? among : 0;
  uint32_t lanes = 0;
  for (int l = 0; l < kLanes; ++l) lanes |= uint32_t{c[l].i != 0} << l;
  return lanes & among;
}

void BlockExecutor::enter_loop(Warp& w, const Step& s) {
  const Cell* extent = w.values.at(s.x);
  Frame& f = push(w);
  f.iteration = 0;
  f.other = 0;
  f.uniform = s.x.stride() == 0;
  f.extent[0] = extent->i;
  if (!f.uniform)
    for (int l = 0; l < kLanes; ++l) f.extent[static_cast<size_t>(l)] = extent[l].i;
  if (!start_iteration(w, s)) w.pc = s.jump + 1;
}

void BlockExecutor::next_iteration(Warp& w, const Step& s) {
  ++w.frames[w.depth - 1].iteration;
  if (start_iteration(w, code_.steps[s.jump])) w.pc = s.jump + 1;
}

// False when no lane has an iteration left: the loop is over.
bool BlockExecutor::start_iteration(Warp& w, const Step& begin) {
  Frame& f = w.frames[w.depth - 1];
  uint32_t lanes = 0;
  if (f.uniform)
    lanes = f.iteration < f.extent[0] ? f.mask : 0;
  else
    for (int l = 0; l < kLanes; ++l) lanes |= uint32_t{f.iteration < f.extent[static_cast<size_t>(l)]} << l;
  w.mask = lanes & f.mask & ~f.other;
  if (w.mask == 0) {
    w.mask = f.mask;
    --w.depth;
    return false;
  }
  w.values.at(begin.variable)->i = f.iteration;
  run_segment(w, begin.lane_segment);
  return true;
}

// The loop is over for lanes that its condition does not hold for.
void BlockExecutor::go_on(Warp& w, const Step& s) {
  const uint32_t lanes = true_lanes(w, s.x, w.mask);
  Frame& f = w.frames[w.depth - 1];
  f.other |= w.mask & ~lanes;
  w.mask = lanes;
  if (lanes != 0) return;
  w.mask = f.mask;
  --w.depth;
  w.pc = s.jump + 1;
}

void BlockExecutor::branch(Warp& w, const Step& s) {
  uint32_t taken = true_lanes(w, s.x, w.mask);
  if (s.extent != 0 && converged(w, s, FindingKind::divergent_instruction) && taken != 0) taken = w.mask;
  Frame& f = push(w);
  f.other = f.mask & ~taken;
  w.mask = taken;
  if (taken == 0) w.pc = s.jump;
}

void BlockExecutor::enter_role(Warp& w, const Step& s) {
  const thread::Role& role = node<thread::Roles>(s).roles[s.atom];
  const int64_t thread = int64_t{w.local} * kLanes;
  if (thread < role.first_thread || thread >= role.first_thread + role.threads) w.pc = s.jump;
}

// Some lanes alone release what the warp did when no other lane did anything.
void BlockExecutor::release(Warp& w, Ordering::Clock& clock) {
  const bool whole = w.mask == w.all, own = (w.touched & ~w.mask) == 0;
  order_.release(w.index, w.mask, whole, own, clock);
  if (own) w.touched = 0;
}

// Any thread may be elected; the first is.
void BlockExecutor::one_thread(Warp& w, const Step& s) {
  converged(w, s, FindingKind::divergent_instruction);
  push(w);
  w.mask &= ~w.mask + 1;
}

}  // namespace tilegen::sim
