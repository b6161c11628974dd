// The statements of a scheduled program that have others inside: each is a frame of its role's stack.
#include <algorithm>

#include "interp/scheduled_block.h"

namespace tilegen::interp {

bool ScheduledBlock::asks_for_next(RoleState& r, ir::StmtId id) {
  const auto& loop = *p_.as<ir::Loop>(id);
  bool goes_on = true;
  if (loop.condition.valid()) ops_.with_scalars(id, places(r), [&] { goes_on = run_.goes_on(loop); });
  return goes_on && !run_.failed();
}

void ScheduledBlock::execute(RoleState& r, const expand::Serial& s) {
  const auto& loop = *p_.as<ir::Loop>(s.loop);
  Execution::Bounds bounds;
  ops_.with_scalars(s.loop, places(r), [&] { bounds = run_.bounds_of(loop); });
  if (run_.failed() || bounds.extent <= 0) return;
  run_.evaluator().set(loop.vars[0], bounds.begin);
  if (!asks_for_next(r, s.loop)) return;
  Frame f{Frame::Kind::serial, &s.body, 0, s.loop};
  f.begin = bounds.begin;
  f.end = bounds.extent;
  r.stack.push_back(f);
}

void ScheduledBlock::execute(RoleState& r, const expand::Branch& s) {
  bool taken = false;
  ops_.with_scalars(s.branch, places(r), [&] { taken = run_.holds(*p_.as<ir::Branch>(s.branch)); });
  if (!run_.failed()) r.stack.push_back({Frame::Kind::list, taken ? &s.then_body : &s.else_body});
}

// Versions mean the same where their condition holds, so that either may be taken; but what a factor says is
// asked.
void ScheduledBlock::execute(RoleState& r, const expand::Version& s) {
  bool taken = true;
  if (s.condition == expand::Version::Condition::factor_is_not_one)
    taken = !place_of(r, s.factor).tile->storage.all_one();
  else
    taken = at_once();
  r.stack.push_back({Frame::Kind::list, taken ? &s.then_body : &s.else_body});
}

// Tiles are whole here, and warpgroups do not differ.
void ScheduledBlock::execute(RoleState& r, const expand::PerWarpgroup& s) {
  r.stack.push_back({Frame::Kind::list, &s.body});
}

// The first block runs after the others of its point. Where each has a share, it does the shares of all.
void ScheduledBlock::execute(RoleState& r, const expand::ReduceParts& s) {
  const ir::Kernel& kernel = p_.kernels[static_cast<size_t>(k_.kernel)];
  const int64_t points = grid_.tiles / grid_.extents[0], point = points_.back() % points;
  const int64_t part = run_.evaluator().get(kernel.split->part).i;
  if (part > 0) {
    std::vector<Storage>& left = grid_.parts[{point, part}];
    for (ValueId v : s.sums) left.push_back(place_of(r, v).tile->storage);
    return;
  }
  for (int64_t other = 1; other < grid_.extents[0]; ++other) {
    const auto theirs = grid_.parts.extract({point, other});
    for (size_t i = 0; i < s.sums.size(); ++i) place_of(r, s.sums[i]).tile->storage.add(theirs.mapped()[i]);
  }
  Frame f{s.shares.empty() ? Frame::Kind::list : Frame::Kind::shares, &s.body};
  f.end = grid_.extents[0];
  r.stack.push_back(f);
}

void ScheduledBlock::execute(RoleState& r, const expand::Pipelined& s) {
  Execution::Bounds bounds;
  ops_.with_scalars(s.loop, places(r), [&] { bounds = run_.bounds_of(*p_.as<ir::Loop>(s.loop)); });
  if (run_.failed()) return;
  Scope scope;
  scope.loop = s.loop;
  scope.run = ++r.runs;
  scope.begin = bounds.begin;
  scope.extent = std::max<int64_t>(bounds.extent, 0);
  scope.filled = r.filled[s.loop];
  r.scopes.push_back(scope);
  r.stack.push_back({Frame::Kind::pipelined, &s.body});
}

void ScheduledBlock::execute(RoleState& r, const expand::Steady& s) {
  Scope& scope = r.scopes.back();
  if (s.first + s.step > scope.extent) return;
  scope.newest = scope.at = s.first;
  Frame f{Frame::Kind::steady, &s.body};
  f.i = s.first;
  f.step = s.step;
  f.end = scope.extent;
  r.stack.push_back(f);
}

void ScheduledBlock::execute(RoleState& r, const expand::At& s) {
  Scope& scope = r.scopes.back();
  const int64_t at = number_of(r, s.iteration);
  if (s.where_exists && at >= scope.extent) return;
  Frame f{Frame::Kind::at, &s.body};
  f.at = std::exchange(scope.at, at);
  f.value = run_.evaluator().get(p_.as<ir::Loop>(scope.loop)->vars[0]);
  set_iteration(scope);
  r.stack.push_back(f);
}

void ScheduledBlock::execute(RoleState& r, const expand::Remainder& s) {
  const int64_t left = r.scopes.back().extent - s.first;
  if (left >= 0) r.stack.push_back({Frame::Kind::list, &s.cases[static_cast<size_t>(left) % s.cases.size()]});
}

void ScheduledBlock::execute(RoleState& r, const expand::WhereIterations& s) {
  r.stack.push_back({Frame::Kind::list, r.scopes.back().extent >= s.least ? &s.then_body : &s.else_body});
}

void ScheduledBlock::execute(RoleState& r, const expand::TileLoop& s) {
  if (begin_tile(r, 0)) r.stack.push_back({Frame::Kind::tiles, &s.body});
}

// The uses of its iterations are the pipelines' first ones; they are counted where they are committed.
void ScheduledBlock::execute(RoleState& r, const expand::Preamble& s) {
  if (!set_point(0)) return;
  const auto& loop = *p_.as<ir::Loop>(s.loop);
  Execution::Bounds bounds;
  ops_.with_scalars(s.loop, places(r), [&] { bounds = run_.bounds_of(loop); });
  if (run_.failed() || bounds.extent <= 0) return;
  run_.evaluator().set(loop.vars[0], bounds.begin);
  Frame f{Frame::Kind::preamble, &s.body, 0, s.loop};
  f.begin = bounds.begin;
  f.end = r.begun[s.loop] = std::min(bounds.extent, s.iterations);
  r.stack.push_back(f);
}

void ScheduledBlock::execute(RoleState& r, const expand::BehindPreamble& s) {
  if (r.iterations[s.loop] >= r.begun[s.loop]) r.stack.push_back({Frame::Kind::list, &s.body});
}

void ScheduledBlock::count_uses(RoleState& r, ir::StmtId loop, int64_t uses) {
  for (size_t i = 0; i < k_.pipelines.size(); ++i)
    if (k_.pipelines[i].loop == loop) r.uses[i] = uses;
}

// The role that comes to a turn first has its tile claimed.
bool ScheduledBlock::begin_tile(RoleState& r, int64_t turn) {
  if (grid_.walk == expand::Walk::own && turn > 0) return false;
  if (turn == static_cast<int64_t>(points_.size()))
    points_.push_back(grid_.walk == expand::Walk::dynamic ? grid_.launched + grid_.taken++
                                                          : points_.back() + grid_.launched);
  if (!set_point(turn)) return false;
  if (r.role->kind != expand::RoleKind::producer) tiles_.begin_tile();
  return true;
}

// False: the turn has none.
bool ScheduledBlock::set_point(int64_t turn) {
  int64_t point = points_[static_cast<size_t>(turn)];
  if (point >= grid_.tiles) return false;
  const std::vector<ir::VarId>& vars = p_.kernels[static_cast<size_t>(k_.kernel)].block_vars;
  for (size_t d = vars.size(); d-- > 0; point /= grid_.extents[d])
    run_.evaluator().set(vars[d], point % grid_.extents[d]);
  return true;
}

// Its list is done: the next iteration of a loop, or what stands after it.
void ScheduledBlock::finish_frame(RoleState& r) {
  Frame& f = r.stack.back();
  switch (f.kind) {
    case Frame::Kind::preamble:
      ++f.i;
      count_uses(r, f.stmt, f.i == f.end ? 0 : f.i);
      if (f.i == f.end) break;
      run_.evaluator().set(p_.as<ir::Loop>(f.stmt)->vars[0], iteration_at(f.begin, f.i));
      f.next = 0;
      return;
    case Frame::Kind::serial:
      ++r.iterations[f.stmt];
      if (++f.i == f.end) break;
      run_.evaluator().set(p_.as<ir::Loop>(f.stmt)->vars[0], iteration_at(f.begin, f.i));
      if (!asks_for_next(r, f.stmt)) break;
      f.next = 0;
      return;
    case Frame::Kind::steady:
      f.i = f.i + 2 * f.step > f.end ? 0 : f.i + f.step;
      r.scopes.back().newest = r.scopes.back().at = f.i;
      if (f.i == 0) break;
      f.next = 0;
      return;
    case Frame::Kind::tiles:
      if (!begin_tile(r, ++f.i)) break;
      f.next = 0;
      return;
    case Frame::Kind::pipelined:
      r.filled[r.scopes.back().loop] += r.scopes.back().extent;
      r.scopes.pop_back();
      break;
    case Frame::Kind::at:
      r.scopes.back().at = f.at;
      run_.evaluator().set(p_.as<ir::Loop>(r.scopes.back().loop)->vars[0], f.value);
      break;
    case Frame::Kind::multiply: {
      const ir::StmtId product = f.stmt;
      r.stack.pop_back();
      return execute(r, expand::Run{product});
    }
    case Frame::Kind::shares: {
      const ir::VarId part = p_.kernels[static_cast<size_t>(k_.kernel)].split->part;
      ++f.i;
      run_.evaluator().set(part, f.i == f.end ? 0 : f.i);
      if (f.i == f.end) break;
      f.next = 0;
      return;
    }
    case Frame::Kind::list:
      break;
  }
  r.stack.pop_back();
}

}  // namespace tilegen::interp
