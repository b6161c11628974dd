#include "expand/scheduled_trace.h"

#include <algorithm>
#include <map>

namespace tilegen::expand {

namespace {

class Tracer {
 public:
  Tracer(const ir::Program& p, const ScheduledKernel& k, const Role& role, const Lengths& run)
      : p_(p), k_(k), role_(role), run_(run), uses_(k.pipelines.size(), 0) {}

  std::vector<Event> trace() {
    block(role_.body);
    return std::move(events_);
  }

 private:
  struct Scope {
    StmtId loop;
    int64_t filled = 0;  // iterations of earlier runs, where uses count on
    int64_t newest = 0;
    int64_t at = 0;  // of the innermost At
    Scope* around = nullptr;
  };

  void block(const Block& b) {
    for (const Stmt& s : b) std::visit([&](const auto& node) { step(s, node); }, s.node);
  }
  void add(const Stmt& s, int64_t use) {
    Event e{&s, use, {}, {}};
    for (const Scope* scope = scope_; scope; scope = scope->around)
      e.iterations.insert(e.iterations.begin(), {scope->loop, scope->filled + scope->at});
    events_.push_back(std::move(e));
  }
  const Pipeline& line(int pipeline) const { return k_.pipelines[static_cast<size_t>(pipeline)]; }
  int64_t& uses(int pipeline) { return uses_[static_cast<size_t>(pipeline)]; }

  int64_t number(Iteration i) const {
    const int64_t from = i.from == Iteration::From::first  ? 0
                         : i.from == Iteration::From::end  ? run_.iterations
                         : i.from == Iteration::From::none ? 0
                                                           : scope_->newest;
    return from + i.plus;
  }
  int64_t use_of(int pipeline, Iteration at) {
    return line(pipeline).loop.valid() ? scope_->filled + number(at) : uses(pipeline);
  }

  template <class Node>
  void step(const Stmt& s, const Node&) {
    add(s, 0);
  }
  void step(const Stmt& s, const Acquire& node) { add(s, uses(node.pipeline)); }
  void step(const Stmt& s, const Issue& node) {
    int64_t use = 0;
    if (role_.kind == RoleKind::producer)
      for (size_t i = 0; i < k_.pipelines.size(); ++i)
        for (OpId copy : k_.pipelines[i].copies)
          if (k_.ops->ops[copy].stmt == node.op && brings(k_.pipelines[i], node.part)) use = uses_[i];
    add(s, use);
  }
  void step(const Stmt& s, const Commit& node) { add(s, uses(node.pipeline)++); }
  void step(const Stmt& s, const Wait& node) { add(s, use_of(node.pipeline, node.at)); }
  void step(const Stmt& s, const Peek& node) { add(s, use_of(node.pipeline, node.at)); }
  void step(const Stmt& s, const Release& node) {
    if (node.where_exists && (number(node.at) < 0 || number(node.at) >= run_.iterations)) return;
    add(s, use_of(node.pipeline, node.at));
    if (!line(node.pipeline).loop.valid()) ++uses(node.pipeline);
  }
  void step(const Stmt& s, const Await& node) {
    add(s, 0);
    for (const Token& t : node.finished)
      if (t.at.from == Iteration::From::none || (number(t.at) >= 0 && number(t.at) < run_.iterations))
        events_.back().finished.push_back(t.op);
  }
  void step(const Stmt& s, const Multiply& node) {
    add(s, 0);
    block(node.beside);
    block(node.before_last);
  }
  void step(const Stmt&, const Serial& node) {
    const bool filled = std::any_of(k_.pipelines.begin(), k_.pipelines.end(),
                                    [&](const Pipeline& line) { return line.loop == node.loop; });
    const int64_t trips = filled ? run_.iterations : run_.trips;
    for (int64_t i = 0; i < trips; ++i, ++iterations_[node.loop]) block(node.body);
  }
  void step(const Stmt&, const Branch& node) { block(run_.conditions ? node.then_body : node.else_body); }
  void step(const Stmt&, const Version& node) { block(run_.conditions ? node.then_body : node.else_body); }
  void step(const Stmt&, const WithFetched& node) { block(node.body); }
  void step(const Stmt&, const PerWarpgroup& node) { block(node.bodies[run_.warpgroup]); }
  void step(const Stmt& s, const ReduceParts& node) {
    add(s, 0);
    block(node.body);
  }
  void step(const Stmt&, const Pipelined& node) {
    Scope scope{node.loop, filled_[node.loop], 0, 0, scope_};
    scope_ = &scope;
    block(node.body);
    scope_ = scope.around;
    filled_[node.loop] += run_.iterations;
  }
  void step(const Stmt&, const Steady& node) {
    for (int64_t i = node.first; i + node.step <= run_.iterations; i += node.step) {
      scope_->newest = scope_->at = i;
      block(node.body);
    }
    scope_->newest = scope_->at = 0;
  }
  void step(const Stmt&, const Remainder& node) {
    const int64_t left = run_.iterations - node.first;
    if (left >= 0) block(node.cases[static_cast<size_t>(left) % node.cases.size()]);
  }
  void step(const Stmt&, const At& node) {
    const int64_t at = number(node.iteration), around = scope_->at;
    if (node.where_exists && at >= run_.iterations) return;
    scope_->at = at;
    block(node.body);
    scope_->at = around;
  }
  void step(const Stmt&, const WhereIterations& node) {
    block(run_.iterations >= node.least ? node.then_body : node.else_body);
  }
  void step(const Stmt&, const TileLoop& node) {
    const int64_t tiles = node.walk == Walk::own ? 1 : run_.tiles;
    for (int64_t t = 0; t < tiles; ++t) block(node.body);
  }
  // The uses of its iterations, which are the first ones, are counted where they are committed.
  void step(const Stmt&, const Preamble& node) {
    for (int64_t i = 0; i < std::min(node.iterations, run_.iterations); ++i) {
      for (size_t line = 0; line < uses_.size(); ++line)
        if (k_.pipelines[line].loop == node.loop) uses_[line] = i;
      block(node.body);
    }
    std::fill(uses_.begin(), uses_.end(), 0);
  }
  void step(const Stmt&, const BehindPreamble& node) {
    if (iterations_[node.loop] >= std::min(node.iterations, run_.iterations)) block(node.body);
  }

  const ir::Program& p_;
  const ScheduledKernel& k_;
  const Role& role_;
  const Lengths run_;
  std::vector<int64_t> uses_;  // by pipeline: counted by this role
  std::map<StmtId, int64_t> filled_;
  std::map<StmtId, int64_t> iterations_;  // that Serial statements of the loop have run
  Scope* scope_ = nullptr;
  std::vector<Event> events_;
};

}  // namespace

std::vector<Event> trace_role(const ir::Program& p, const ScheduledKernel& k, const Role& role,
                              const Lengths& run) {
  return Tracer(p, k, role, run).trace();
}

}  // namespace tilegen::expand
