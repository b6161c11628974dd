// A role is a stack of statement lists under way; it is left where it has to wait and gone on with later.
#include "interp/scheduled_block.h"

#include <algorithm>

namespace tilegen::interp {

using expand::Iteration;
using expand::RoleKind;
using expand::Transport;
using State = HandOver::State;

uint64_t Chance::below(uint64_t n) {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % n;
}

ScheduledBlock::ScheduledBlock(Execution& run, const ir::Program& p, const expand::ScheduledKernel& k,
                               Order order, Chance& chance, GridWalk& grid, int64_t index)
    : run_(run),
      p_(p),
      k_(k),
      order_(order),
      chance_(chance),
      grid_(grid),
      ops_(run, p, k),
      tiles_(p, k),
      points_{index} {
  for (const expand::Role& role : k.roles) {
    RoleState r;
    r.role = &role;
    r.uses.assign(k.pipelines.size(), 0);
    r.vars = run.evaluator().vars();
    r.stack.push_back({Frame::Kind::list, &role.body});
    roles_.push_back(std::move(r));
  }
}

ScheduledBlock::Step ScheduledBlock::step(size_t role) {
  RoleState& r = roles_[role];
  Step step = Step::ended;
  run_.evaluator().exchange(r.vars);
  run_.evaluator().count_work();
  while (!r.stack.empty() && !run_.failed()) {
    Frame& f = r.stack.back();
    if (f.next == f.body->size()) {
      finish_frame(r);
      continue;
    }
    const expand::Stmt& s = (*f.body)[f.next];
    step = Step::waits;
    if (!may_go(r, s)) break;
    step = Step::done;
    ++f.next;
    std::visit([&](const auto& node) { execute(r, node); }, s.node);
    break;
  }
  run_.evaluator().exchange(r.vars);
  return step;
}

void ScheduledBlock::fail(int pipeline, int64_t use, const std::string& what) {
  const std::vector<analysis::OpId>& copies = line(pipeline).copies;
  ops_.fail(copies.empty() ? line(pipeline).loop : k_.ops->ops[copies.front()].stmt,
            ops_.use_text({pipeline, 0, use}) + " " + what);
}

// ---- iterations, uses, slots ----

int64_t ScheduledBlock::number_of(const RoleState& r, Iteration i) const {
  if (r.scopes.empty()) return 0;
  const Scope& scope = r.scopes.back();
  const int64_t from = i.from == Iteration::From::end      ? scope.extent
                       : i.from == Iteration::From::newest ? scope.newest
                                                           : 0;
  return from + i.plus;
}

int64_t ScheduledBlock::use_number(const RoleState& r, int pipeline, Iteration at) const {
  if (!line(pipeline).loop.valid() || r.scopes.empty()) return r.uses[static_cast<size_t>(pipeline)];
  return r.scopes.back().filled + number_of(r, at);
}

void ScheduledBlock::set_iteration(const Scope& scope) {
  run_.evaluator().set(p_.as<ir::Loop>(scope.loop)->vars[0], iteration_at(scope.begin, scope.at));
}

Place ScheduledBlock::place_of(const RoleState& r, ValueId value) {
  for (size_t i = 0; i < k_.pipelines.size(); ++i) {
    const expand::Pipeline& line = k_.pipelines[i];
    if (!line.values.count(value)) continue;
    const bool handed = line.transport == Transport::tensor_copy;
    const auto scope = std::find_if(r.scopes.rbegin(), r.scopes.rend(),
                                    [&](const Scope& s) { return line.loop.valid() && s.loop == line.loop; });
    // Of parts the last one has its use counted last.
    Use use{static_cast<int>(i), 0, r.uses[i + static_cast<size_t>(line.parts - 1 - line.part)]};
    if (scope != r.scopes.rend()) {
      const bool anew = expand::begins_anew(line);
      use.run = anew ? scope->run : 0;
      use.number = anew ? scope->at : scope->filled + scope->at;
    } else if (!handed) {
      continue;
    } else if (line.loop.valid() && r.role->kind != RoleKind::producer) {
      fail(use.pipeline, use.number, "is read outside of its loop");
    }
    return {&tiles_.tile(value, use.number, line.slots), use, handed};
  }
  return {&tiles_.tile(value, 0, 1), {}, false};
}

// ---- operations ----

std::unique_ptr<Operation> ScheduledBlock::prepare(const RoleState& r, ir::StmtId stmt, bool overwrite) {
  return ops_.prepare(stmt, overwrite, places(r));
}

bool ScheduledBlock::at_once() {
  return order_.kind == Order::Kind::early || (order_.kind == Order::Kind::random && chance_.below(2) == 0);
}

void ScheduledBlock::execute(RoleState& r, const expand::Run& s) {
  const std::unique_ptr<Operation> o = prepare(r, s.op, s.overwrite);
  if (!run_.failed()) ops_.execute(*o);
}

void ScheduledBlock::execute(RoleState& r, const expand::Issue& s) {
  Flight f;
  f.role = static_cast<size_t>(&r - roles_.data());
  f.work = prepare(r, s.op, s.overwrite);
  if (run_.failed()) return;
  if (!r.scopes.empty()) f.run = r.scopes.back().run, f.iteration = r.scopes.back().at;
  const plan::OpPlan* plan = plan::find_op(*k_.schedule, ops_.op_of(s.op)->path);
  f.kind = r.role->kind == RoleKind::producer                    ? Flight::Kind::tensor_copy
           : plan && plan->engine == plan::Engine::warpgroup_mma ? Flight::Kind::product
           : plan && plan->engine == plan::Engine::register_copy ? Flight::Kind::register_copy
                                                                 : Flight::Kind::group_copy;
  if (f.kind == Flight::Kind::register_copy) {  // its slot may still be read
    flights_.push_back(std::move(f));
    return;
  }
  if (f.kind == Flight::Kind::product) {
    ops_.issue_product(*f.work);
  } else {
    for (const Operation::Access& a : f.work->accesses)
      if (a.write) f.use = a.place.use;
    if (f.kind == Flight::Kind::tensor_copy) {
      while (!brings(line(f.use.pipeline), s.part)) ++f.use.pipeline;  // parts follow each other
      const HandOver& slot = tiles_.slot(f.use.pipeline, f.use.number);
      if (slot.state != State::acquired || slot.use != f.use.number)
        return ops_.fail(s.op, ops_.use_text(f.use) + " is filled, and its slot is not acquired for it");
      // Elements of all parts come with the last.
      if (s.part != expand::Issue::kWhole && s.part + 1 < line(f.use.pipeline).parts) return;
    }
    f.group = r.groups;
    ops_.issue_copy(*f.work);
  }
  flights_.push_back(std::move(f));
  if (at_once()) land(flights_.back());
}

void ScheduledBlock::execute(RoleState& r, const expand::Deposit& s) {
  const Scope& scope = r.scopes.back();
  const auto loaded = std::find_if(flights_.begin(), flights_.end(), [&](const Flight& f) {
    return f.kind == Flight::Kind::register_copy && &roles_[f.role] == &r && f.work->stmt == s.op &&
           f.run == scope.run && f.iteration == scope.at;
  });
  if (loaded == flights_.end()) return ops_.fail(s.op, "an iteration is deposited that was not loaded");
  ops_.execute(*loaded->work);
  flights_.erase(loaded);
}

// Products of a role take effect in the order of their issue: they add to the same sums.
void ScheduledBlock::land(Flight& f) {
  if (f.kind == Flight::Kind::product)
    for (Flight& before : flights_) {
      if (&before == &f) break;
      if (before.kind == f.kind && before.role == f.role) ops_.finish(*before.work);
    }
  ops_.finish(*f.work);
}

void ScheduledBlock::land_one() {
  std::vector<Flight*> may;
  for (Flight& f : flights_)
    if (f.work->under_way) may.push_back(&f);
  if (!may.empty()) land(*may[chance_.below(may.size())]);
}

void ScheduledBlock::execute(RoleState& r, const expand::Await& s) {
  const auto mine = [&](const Flight& f) { return f.kind == Flight::Kind::product && &roles_[f.role] == &r; };
  int64_t left = std::count_if(flights_.begin(), flights_.end(), mine);
  for (auto f = flights_.begin(); f != flights_.end() && left > s.pending;) {
    if (!mine(*f)) {
      ++f;
      continue;
    }
    land(*f);
    f = flights_.erase(f);
    --left;
  }
  const auto is = [&](const Flight& f, const expand::Token& t) {
    if (!mine(f) || f.work->stmt != t.op) return false;
    if (t.at.from == Iteration::From::none || r.scopes.empty()) return true;
    return f.run == r.scopes.back().run && f.iteration == number_of(r, t.at);
  };
  for (const expand::Token& t : s.finished)
    for (const Flight& f : flights_)
      if (is(f, t)) ops_.fail(t.op, "a wait for the product leaves it running");
}

void ScheduledBlock::execute(RoleState& r, const expand::CommitGroup&) { ++r.groups; }

void ScheduledBlock::execute(RoleState& r, const expand::WaitGroup& s) {
  flights_.remove_if([&](Flight& f) {
    const bool complete =
        f.kind == Flight::Kind::group_copy && &roles_[f.role] == &r && f.group < r.groups - s.pending;
    if (complete) land(f);
    return complete;
  });
}

// Its operands can be read now; a product reads them all in execute() or after `before_last`.
void ScheduledBlock::execute(RoleState& r, const expand::LoadOperands& s) {
  const std::unique_ptr<Operation> o = prepare(r, s.product, false);
  if (!run_.failed()) ops_.check_operands(*o);
}

void ScheduledBlock::execute(RoleState& r, const expand::Multiply& s) {
  const bool first = at_once();
  if (first) execute(r, expand::Run{s.product});
  r.stack.push_back({first ? Frame::Kind::list : Frame::Kind::multiply, &s.before_last, 0, s.product});
  if (!s.beside.empty()) r.stack.push_back({Frame::Kind::list, &s.beside});
}

// ---- the hand-over of slots ----

bool ScheduledBlock::may_go(const RoleState& r, const expand::Stmt& s) {
  if (const auto* acquire = std::get_if<expand::Acquire>(&s.node)) {
    const int64_t use = r.uses[static_cast<size_t>(acquire->pipeline)];
    return tiles_.slot(acquire->pipeline, use).state == State::free;
  }
  if (const auto* wait = std::get_if<expand::Wait>(&s.node)) {
    const int64_t use = use_number(r, wait->pipeline, wait->at);
    const HandOver& slot = tiles_.slot(wait->pipeline, use);
    return slot.use == use && (slot.state == State::committed || slot.state == State::awaited);
  }
  return true;
}

void ScheduledBlock::execute(RoleState& r, const expand::Acquire& s) {
  const int64_t use = r.uses[static_cast<size_t>(s.pipeline)];
  tiles_.slot(s.pipeline, use) = {State::acquired, use};
}

void ScheduledBlock::execute(RoleState& r, const expand::Commit& s) {
  const int64_t use = r.uses[static_cast<size_t>(s.pipeline)]++;
  HandOver& slot = tiles_.slot(s.pipeline, use);
  if (slot.state != State::acquired || slot.use != use)
    return fail(s.pipeline, use, "is committed without being acquired");
  slot.state = State::committed;
}

void ScheduledBlock::execute(RoleState& r, const expand::Wait& s) {
  const int64_t use = use_number(r, s.pipeline, s.at);
  tiles_.slot(s.pipeline, use).state = State::awaited;
  flights_.remove_if([&](Flight& f) {
    const bool here =
        f.kind == Flight::Kind::tensor_copy && f.use.pipeline == s.pipeline && f.use.number == use;
    if (here) land(f);
    return here;
  });
}

void ScheduledBlock::execute(RoleState& r, const expand::Release& s) {
  if (s.where_exists && !r.scopes.empty()) {
    const int64_t number = number_of(r, s.at);
    if (number < 0 || number >= r.scopes.back().extent) return;
  }
  const int64_t use = use_number(r, s.pipeline, s.at);
  if (!line(s.pipeline).loop.valid()) ++r.uses[static_cast<size_t>(s.pipeline)];
  HandOver& slot = tiles_.slot(s.pipeline, use);
  if (slot.state != State::awaited || slot.use != use)
    return fail(s.pipeline, use, "is released without being waited for");
  slot.state = State::free;
}

bool ScheduledBlock::tell_waiting() {
  for (RoleState& r : roles_) {
    if (r.stack.empty()) continue;
    const expand::Stmt& s = (*r.stack.back().body)[r.stack.back().next];
    const std::string waits = "is waited for by role " + r.role->name + " for ever";
    if (const auto* acquire = std::get_if<expand::Acquire>(&s.node))
      fail(acquire->pipeline, r.uses[static_cast<size_t>(acquire->pipeline)], waits);
    if (const auto* wait = std::get_if<expand::Wait>(&s.node))
      fail(wait->pipeline, use_number(r, wait->pipeline, wait->at), waits);
    return true;
  }
  return false;
}

void ScheduledBlock::end() {
  for (const Flight& f : flights_)
    if (f.kind == Flight::Kind::product)
      ops_.fail(f.work->stmt, "the product is never awaited");
    else if (f.kind == Flight::Kind::register_copy)
      ops_.fail(f.work->stmt, "what it loads is never deposited");
  for (size_t i = 0; i < tiles_.slots().size(); ++i)
    for (const HandOver& slot : tiles_.slots()[i])
      if (slot.state != State::free) fail(static_cast<int>(i), slot.use, "is never released");
}

}  // namespace tilegen::interp
