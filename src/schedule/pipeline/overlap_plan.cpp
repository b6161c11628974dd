#include "schedule/pipeline/overlap_plan.h"

#include <algorithm>

#include "schedule/pipeline/modulo_schedule.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::ValueId;

namespace {

// The loop's body as operations of the computing threads: statements, a branch or loop with all ops in it.
class Overlap {
 public:
  Overlap(const ir::Program& p, const KernelOps& ops, const analysis::DependenceGraph& dependences,
          const ir::Loop& loop, const OverlapFacts& facts, const std::map<ValueId, int64_t>& slots)
      : ops_(ops) {
    std::map<ir::StmtId, const KernelOp*> op_of;
    for (const KernelOp& op : ops.ops) op_of[op.stmt] = &op;
    const double groups =
        std::max<double>(1, static_cast<double>(facts.ping_pong.threads / facts.ping_pong.target.warpgroup));
    std::map<analysis::OpId, size_t> unit_of;
    for (ir::StmtId id : loop.body) {
      std::vector<const KernelOp*> inside;
      LoopOp unit;
      const ir::Block one = {id};
      ir::for_each_statement(p, one, [&](ir::StmtId s, int) {
        const auto op = op_of.find(s);
        if (op == op_of.end() || facts.ping_pong.copies.count(op->second)) return;
        const auto product = facts.ping_pong.products.find(op->second);
        const bool multiplies = product != facts.ping_pong.products.end();
        const double cycles =
            multiplies ? product->second : thread_cycles(p, *op->second, facts.ping_pong.target);
        unit.product = unit.product || (multiplies && s == id);
        unit.cycles += cycles / groups;
        (multiplies ? graph_.busy_matrix : graph_.busy_threads) += cycles;
        inside.push_back(op->second);
        unit_of[ops.id_of(*op->second)] = units_.size();
      });
      if (inside.empty()) continue;
      if (p.as<ir::Branch>(id) || (p.as<ir::Loop>(id) && inside.front()->stmt != id))
        nested_.insert(units_.size());
      units_.push_back(std::move(inside));
      graph_.ops.push_back(unit);
    }
    find_places(dependences, unit_of, facts);
    add_edges(dependences, unit_of, facts);
    keep_operands(facts);
    order_nested_tiles(p, loop, facts);
    for (const std::set<ValueId>& values : facts.handed_over) {
      LoopTiles tiles;
      const target::Target& t = facts.ping_pong.target;
      for (ValueId v : values) {
        if (const auto count = slots.find(v); count != slots.end()) tiles.slots = count->second;
        const auto bytes = facts.tile_bytes.find(v);
        if (bytes != facts.tile_bytes.end() && t.l2_bytes_per_cycle > 0)
          tiles.load_cycles += static_cast<double>(bytes->second) / t.l2_bytes_per_cycle;
      }
      graph_.load_latency = t.memory_latency;
      tiles.users = users_of(values);
      graph_.tiles.push_back(std::move(tiles));
    }
  }

  const LoopGraph& graph() const { return graph_; }
  const std::vector<std::vector<const KernelOp*>>& units() const { return units_; }
  ValueId value_of(int64_t place) const { return places_[static_cast<size_t>(place)]; }
  const std::vector<ValueId>& places() const { return places_; }

 private:
  using UnitOf = std::map<analysis::OpId, size_t>;

  // Values in registers that live within one iteration: a product and the threads share them.
  void find_places(const analysis::DependenceGraph& dependences, const UnitOf& unit_of,
                   const OverlapFacts& facts) {
    for (const auto& [v, words] : facts.registers) {
      bool product = false, threads = false, here = true;
      for (const KernelOp& op : ops_.ops) {
        if (std::none_of(op.accesses.begin(), op.accesses.end(), [&](const auto& a) { return a.value == v; }))
          continue;
        const auto unit = unit_of.find(ops_.id_of(op));
        here = here && unit != unit_of.end() && nested_.count(unit->second) == 0;
        if (!here) break;
        (graph_.ops[unit->second].product ? product : threads) = true;
      }
      for (const auto& [where, value] : ops_.scalar_reads) here = here && value != v;
      if (here && ops_.exposed.count(v) == 0) graph_.values.push_back({users_of({v}), words});
      for (const analysis::Dependence& d : dependences.edges())
        here = here && !(d.kind == analysis::DependenceKind::flow && d.distance > 0 && d.place.value == v);
      if (product && threads && here) places_.push_back(v);
    }
    graph_.missing_words = facts.missing_words;
    graph_.places = static_cast<int64_t>(places_.size());
  }

  void add_edges(const analysis::DependenceGraph& dependences, const UnitOf& unit_of,
                 const OverlapFacts& facts) {
    std::set<ValueId> slotted;  // a slot for each iteration: conflicts with nothing
    for (const KernelOp* copy : facts.ping_pong.copies)
      for (const analysis::OpAccess& a : copy->accesses)
        if (a.write) slotted.insert(a.value);
    for (const analysis::Dependence& d : dependences.edges()) {
      const auto from = unit_of.find(d.from), to = unit_of.find(d.to);
      if (from == unit_of.end() || to == unit_of.end()) continue;
      const ValueId value = d.place.value;
      if (value.valid() && slotted.count(value)) continue;
      if (from->second == to->second && d.distance == 0) continue;
      LoopEdge e{from->second, to->second, d.distance, d.kind == analysis::DependenceKind::flow};
      const auto place = std::find(places_.begin(), places_.end(), value);
      if (place != places_.end()) e.place = static_cast<int>(place - places_.begin());
      const auto writes = [&](const KernelOp& op) {
        return std::any_of(op.accesses.begin(), op.accesses.end(),
                           [&](const auto& a) { return a.write && a.value == value; });
      };
      e.queued = value.valid() && writes(ops_.ops[d.from]) && writes(ops_.ops[d.to]);
      graph_.edges.push_back(e);
    }
  }

  // Threads do not read an operand in registers while a product is at it (PTX ISA, wgmma.mma_async: registers
  // in flight are not accessed), though neither writes it.
  void keep_operands(const OverlapFacts& facts) {
    for (const auto& [v, words] : facts.registers) {
      std::vector<size_t> products, readers;
      for (size_t u = 0; u < units_.size(); ++u) {
        bool read = false, written = false;
        for (const KernelOp* op : units_[u])
          for (const analysis::OpAccess& a : op->accesses) {
            read = read || (a.value == v && a.read);
            written = written || (a.value == v && a.write);
          }
        if (read && !written) (graph_.ops[u].product ? products : readers).push_back(u);
      }
      for (size_t product : products)
        for (size_t reader : readers)
          graph_.edges.push_back({std::min(product, reader), std::max(product, reader), 0, false});
    }
  }

  std::vector<size_t> users_of(const std::set<ValueId>& values) const {
    std::vector<size_t> users;
    for (size_t u = 0; u < units_.size(); ++u)
      if (std::any_of(units_[u].begin(), units_[u].end(), [&](const KernelOp* op) {
            return std::any_of(op->accesses.begin(), op->accesses.end(),
                               [&](const auto& a) { return values.count(a.value) > 0; });
          }))
        users.push_back(u);
    return users;
  }

  // A producer comes to a tile of the next iteration when it has filled those of a loop inside, which takes
  // as many slots as that loop has iterations: they are given back first.
  void order_nested_tiles(const ir::Program& p, const ir::Loop& loop, const OverlapFacts& facts) {
    std::set<ir::StmtId> inside;
    ir::for_each_statement(p, loop.body, [&](ir::StmtId s, int) {
      if (const auto* l = p.as<ir::Loop>(s); l && l->kind != ir::LoopKind::parallel)
        ir::for_each_statement(p, l->body, [&](ir::StmtId id, int) { inside.insert(id); });
    });
    for (const std::set<ValueId>& inner : facts.handed_over) {
      const bool nested = std::any_of(ops_.ops.begin(), ops_.ops.end(), [&](const KernelOp& op) {
        return facts.ping_pong.copies.count(&op) && inner.count(op.accesses.back().value) &&
               inside.count(op.stmt);
      });
      if (!nested) continue;
      for (const std::set<ValueId>& other : facts.handed_over)
        for (size_t from : users_of(inner))
          for (size_t to : users_of(other))
            if (from != to) graph_.edges.push_back({from, to, 1, false});
    }
  }

  const KernelOps& ops_;
  LoopGraph graph_;
  std::vector<std::vector<const KernelOp*>> units_;
  std::set<size_t> nested_;  // branches and loops
  std::vector<ValueId> places_;
};

// The given stages as an order; `why` they are none.
LoopOrder given_order(const Overlap& overlap, const plan::LoopPlan& plan, const OverlapFacts& facts,
                      const std::map<ValueId, int64_t>& slots, std::string& why) {
  const auto& units = overlap.units();
  const int64_t newest = plan.num_stages - 1;
  LoopOrder o = program_order(overlap.graph());
  std::vector<std::pair<const KernelOp*, int64_t>> issued;
  for (const auto& [path, stage] : plan.stages) {
    for (const auto& unit : units)
      for (const KernelOp* op : unit)
        if (op->path == path) issued.push_back({op, stage - newest});
    if (stage < newest && std::none_of(facts.ping_pong.copies.begin(), facts.ping_pong.copies.end(),
                                       [&](const KernelOp* c) { return c->path == path; }))
      why = path + " is in a stage that the loop does not have";
  }
  o.order.clear();
  for (size_t at = 0; at < issued.size() && why.empty();) {
    const auto unit = std::find_if(units.begin(), units.end(),
                                   [&](const auto& u) { return u.front() == issued[at].first; });
    if (unit == units.end()) {
      for (const auto& u : units)
        if (std::find(u.begin(), u.end(), issued[at].first) != u.end())
          why = issued[at].first->path + " is issued apart from " + u.front()->path +
                " of the same branch or loop";
      break;
    }
    const auto u = static_cast<size_t>(unit - units.begin());
    if (std::find(o.order.begin(), o.order.end(), u) != o.order.end())
      why = issued[at].first->path + " stands in it twice";
    o.lag[u] = issued[at].second;
    o.order.push_back(u);
    for (const KernelOp* op : *unit) {
      if (at == issued.size() || issued[at].first != op || issued[at].second != o.lag[u])
        why = op->path + " is issued apart from " + unit->front()->path + " of the same branch or loop";
      if (!why.empty()) break;
      ++at;
    }
  }
  for (size_t u = 0; u < units.size() && why.empty(); ++u)
    if (std::find(o.order.begin(), o.order.end(), u) == o.order.end())
      why = units[u].front()->path + " is missing";
  if (why.empty() && !units.empty() && *std::min_element(o.lag.begin(), o.lag.end()) > 0)
    why = "all ops lag, and none works on the newest iteration";
  for (size_t place = 0; place < overlap.places().size(); ++place)
    if (const auto given = slots.find(overlap.places()[place]); given != slots.end())
      o.slots[place] = std::max<int64_t>(1, given->second);
  return o;
}

std::string order_refusal(const KernelOps& ops, const Overlap& overlap, const plan::LoopPlan& plan,
                          const OverlapFacts& facts, const std::map<ValueId, int64_t>& slots) {
  std::string why;
  const LoopOrder o = given_order(overlap, plan, facts, slots, why);
  if (!why.empty()) return why;
  for (const auto& [value, count] : slots)
    if (count > 1 && facts.registers.count(value) &&
        std::find(overlap.places().begin(), overlap.places().end(), value) == overlap.places().end())
      return "'" + ops.values[value].name +
             "' has slots in registers, and is no value of one iteration that a product and threads share";
  if (!slots_suffice(overlap.graph(), o))
    return "more iterations are under way between the first and the last use of a tile than it has slots";
  const auto broken = broken_edges(overlap.graph(), o);
  if (broken.empty()) return "";
  return overlap.units()[broken.front().to].front()->path + " would not see what " +
         overlap.units()[broken.front().from].front()->path + " leaves, or the other way round";
}

// What keeps products from running beside the threads' work; empty where they do, or nothing is to gain.
std::string serial_note(const LoopGraph& g, const LoopOrder& o) {
  if (o.most_lag() > 0) return "";
  LoopGraph roomy = g;
  roomy.missing_words = 0;
  const LoopOrder any = modulo_schedule(roomy, [](const auto&) { return true; });
  if (any.most_lag() > 0)
    return "products do not run beside the threads' work: the values of both would take more registers than "
           "a "
           "thread has, or leave room for fewer blocks";
  const auto feeds = [&](bool product, size_t op, bool from) {
    return std::any_of(g.edges.begin(), g.edges.end(), [&](const LoopEdge& e) {
      return e.flow && e.distance == 0 && (from ? e.from : e.to) == op &&
             g.ops[from ? e.to : e.from].product == product;
    });
  };
  for (size_t i = 0; i < g.ops.size(); ++i)
    if (!g.ops[i].product && feeds(true, i, false) && feeds(true, i, true))
      return "products do not run beside the threads' work: a value would have to live in two iterations at "
             "once, or little is gained";
  return "";
}

}  // namespace

Checked order_loop(const ir::Program& p, const KernelOps& ops, analysis::LoopDependences& dependences,
                   ir::StmtId loop, const OverlapFacts& facts, bool given, plan::LoopPlan& plan,
                   std::map<ValueId, int64_t>& slots, std::string& note) {
  const auto& statement = *p.as<ir::Loop>(loop);
  const int64_t newest = plan.num_stages - 1;
  const Overlap overlap(p, ops, dependences.of(loop), statement, facts, slots);
  if (given) {
    if (std::string why = order_refusal(ops, overlap, plan, facts, slots); !why.empty())
      return Error(DiagCode::schedule_illegal, plan.loop,
                   "the given order of the loop's ops is not legal: " + why,
                   "leave `stages` out to have it planned", p.stmts[loop.value].location);
    return Unit{};
  }
  const auto by_value = [&](const std::vector<int64_t>& counts) {
    std::map<ValueId, int64_t> of;
    for (size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 1) of[overlap.value_of(static_cast<int64_t>(i))] = counts[i];
    return of;
  };
  const LoopOrder o =
      modulo_schedule(overlap.graph(), [&](const auto& counts) { return facts.fit(by_value(counts)); });
  note = serial_note(overlap.graph(), o);
  if (o.order == program_order(overlap.graph()).order && o.most_lag() == 0) return Unit{};
  std::set<std::string> ordered;
  for (const auto& unit : overlap.units())
    for (const KernelOp* op : unit) ordered.insert(op->path);
  std::erase_if(plan.stages, [&](const auto& s) { return ordered.count(s.first) > 0; });
  for (size_t u : o.order)
    for (const KernelOp* op : overlap.units()[u]) plan.stages.push_back({op->path, newest + o.lag[u]});
  plan.reason += o.most_lag() > 0
                     ? "; products that wait for others lag an iteration behind, so that both run beside the "
                       "threads' work"
                     : "; products are issued as soon as their operands are there";
  for (const auto& [value, count] : by_value(o.slots)) slots[value] = count;
  return Unit{};
}

}  // namespace tilegen::schedule
