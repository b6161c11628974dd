#include "sim/execute_step.h"

#include "sim/async_copies.h"
#include "sim/barriers.h"
#include "sim/cluster_run.h"
#include "sim/memory_access.h"
#include "sim/run_findings.h"
#include "sim/tensor_engine.h"
#include "sim/transaction_barriers.h"
#include "sim/warp_instructions.h"
#include "sim/warpgroup_products.h"

namespace tilegen::sim {

namespace {

Frame& push(Warp& w) {
  if (w.depth == w.frames.size()) w.frames.emplace_back();
  Frame& f = w.frames[w.depth++];
  f.mask = w.mask;
  return f;
}

// False when no lane has an iteration left: the loop is over.
bool start_iteration(ClusterRun& run, Warp& w, const Step& begin) {
  Frame& f = w.frames[w.depth - 1];
  LaneMask lanes = 0;
  if (f.uniform)
    lanes = f.iteration < f.extent[0] ? f.mask : 0;
  else
    for (int l = 0; l < w.lanes; ++l) lanes |= LaneMask{f.iteration < f.extent[static_cast<size_t>(l)]} << l;
  w.mask = lanes & f.mask & ~f.other;
  if (w.mask == 0) {
    w.mask = f.mask;
    --w.depth;
    return false;
  }
  w.values.at(begin.variable)->i = f.iteration;
  run_segment(run, w, begin.lane_segment);
  return true;
}

void enter_loop(ClusterRun& run, Warp& w, const Step& s) {
  const Cell* extent = w.values.at(s.x);
  Frame& f = push(w);
  f.iteration = 0;
  f.other = 0;
  f.uniform = s.x.stride() == 0;
  f.extent[0] = extent->i;
  if (!f.uniform)
    for (int l = 0; l < w.lanes; ++l) f.extent[static_cast<size_t>(l)] = extent[l].i;
  if (!start_iteration(run, w, s)) w.pc = s.jump + 1;
}

void next_iteration(ClusterRun& run, Warp& w, const Step& s) {
  ++w.frames[w.depth - 1].iteration;
  if (start_iteration(run, w, run.code.steps[s.jump])) w.pc = s.jump + 1;
}

// The loop is over for lanes that its condition does not hold for.
void go_on(Warp& w, const Step& s) {
  const LaneMask lanes = true_lanes(w, s.x, w.mask);
  Frame& f = w.frames[w.depth - 1];
  f.other |= w.mask & ~lanes;
  w.mask = lanes;
  if (lanes != 0) return;
  w.mask = f.mask;
  --w.depth;
  w.pc = s.jump + 1;
}

void branch(ClusterRun& run, Warp& w, const Step& s) {
  LaneMask taken = true_lanes(w, s.x, w.mask);
  if (s.extent != 0 && converged(run, w, s, FindingKind::divergent_instruction) && taken != 0) taken = w.mask;
  Frame& f = push(w);
  f.other = f.mask & ~taken;
  w.mask = taken;
  if (taken == 0) w.pc = s.jump;
}

void enter_role(ClusterRun& run, Warp& w, const Step& s) {
  const thread::Role& role = run.node<thread::Roles>(s).roles[s.atom];
  const int64_t thread = int64_t{w.local} * w.lanes;
  if (thread < role.first_thread || thread >= role.first_thread + role.threads) w.pc = s.jump;
}

// Any thread may be elected; the first is.
void one_thread(ClusterRun& run, Warp& w, const Step& s) {
  converged(run, w, s, FindingKind::divergent_instruction);
  if (s.extent != 0) meet_in_warp(run, w);
  push(w);
  w.mask &= ~w.mask + 1;
}

}  // namespace

void execute_step(ClusterRun& run, Warp& w, const Step& s) {
  switch (s.kind) {
    case StepKind::loop_begin:
      return enter_loop(run, w, s);
    case StepKind::loop_while:
      return go_on(w, s);
    case StepKind::loop_end:
      return next_iteration(run, w, s);
    case StepKind::branch:
      return branch(run, w, s);
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
      return store(run, w, s);
    case StepKind::wide_store:
      return wide_store(run, w, s);
    case StepKind::lane_reduce:
      return lane_reduce(run, w, s);
    case StepKind::barrier:
      return barrier(run, w, s);
    case StepKind::async_copy:
      return async_copy(run, w, s);
    case StepKind::async_commit:
      return async_commit(w);
    case StepKind::async_wait:
      return async_wait(run, w, s);
    case StepKind::shuffle:
      return shuffle(run, w, s);
    case StepKind::vote:
      return vote(run, w, s);
    case StepKind::load_matrix:
      return matrices(run, w, s, true);
    case StepKind::store_matrix:
      return matrices(run, w, s, false);
    case StepKind::mma:
      return mma(run, w, s);
    case StepKind::role:
      return enter_role(run, w, s);
    case StepKind::role_end:
      w.pc = s.jump;
      return;
    case StepKind::one_thread:
      return one_thread(run, w, s);
    case StepKind::transaction_arrive:
      return transaction_arrive(run, w, s);
    case StepKind::transaction_wait:
      return transaction_wait(run, w, s);
    case StepKind::transaction_test:
      return transaction_test(run, w, s);
    case StepKind::fetch_tile:
      return fetch_tile(run, w, s);
    case StepKind::tensor_load:
      return tensor_load(run, w, s);
    case StepKind::tensor_store:
      return tensor_store(run, w, s);
    case StepKind::bulk_commit:
      return bulk_commit(w);
    case StepKind::bulk_wait:
      return bulk_wait(run, w, s);
    case StepKind::proxy_fence:
      if ((w.touched & ~w.mask) == 0) run.order.fence(w.index);
      return;
    case StepKind::cluster_barrier:
      return cluster_barrier(run, w, s);
    case StepKind::cluster_load:
      return cluster_load(run, w, s);
    case StepKind::warpgroup_mma:
      return warpgroup_mma(run, w, s);
    case StepKind::warpgroup_fence:
      converged(run, w, s, FindingKind::divergent_instruction);
      ++w.fences;
      return;
    case StepKind::warpgroup_commit:
      converged(run, w, s, FindingKind::divergent_instruction);
      ++w.product_commits;
      return;
    case StepKind::warpgroup_wait:
      return warpgroup_wait(run, w, s);
    case StepKind::end:
      w.state = WarpState::done;
      return;
  }
}

}  // namespace tilegen::sim
