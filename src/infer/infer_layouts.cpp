#include "infer/infer_layouts.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "infer/access_cost.h"
#include "infer/projection.h"

namespace tilegen::infer {

using ir::Program;
using layout::ConversionKind;
using layout::Fragment;
using layout::Layout;
using plan::Origin;

namespace {

std::atomic<int64_t> g_calls{0};

// What is decided so far; copied to try a root.
struct State {
  KnownLayouts known;
  std::vector<Origin> origin;          // by value
  std::vector<std::string> reason;     // by value
  std::vector<std::string> pinned_by;  // by value: op path
};

class Inference {
 public:
  explicit Inference(const InferInput& in) : in_(in), p_(in.program), ops_(in.ops) {
    size_t n = ops_.values.size();
    state_.known.fragments.resize(n);
    state_.known.memories.resize(n);
    state_.origin.resize(n, Origin::free);
    state_.reason.resize(n);
    state_.pinned_by.resize(n);
    result_.ops.resize(ops_.ops.size());
    iteration_.resize(ops_.ops.size());
  }

  Expected<InferResult> run() {
    take_given();
    pin_strict();
    if (!failed()) {
      propagate(state_);
      free_values();
      shared_rest();
      for (size_t i = 0; i < ops_.ops.size() && !failed(); ++i) finish_op(i);
    }
    if (failed()) return std::move(error_);
    for (size_t v = 0; v < ops_.values.size(); ++v)
      result_.values.push_back({ops_.values[v].name, state_.known.fragments[v], state_.known.memories[v], 1,
                                state_.origin[v], state_.reason[v]});
    return std::move(result_);
  }

 private:
  bool failed() const { return !error_.diagnostics.empty(); }
  void fail(DiagCode code, const std::string& op, std::string message, std::string hint, SourceLocation loc) {
    if (!failed()) error_ = Error(code, op, std::move(message), std::move(hint), std::move(loc));
  }
  bool distributed(int v) const {
    if (v < 0) return false;
    ir::MemScope s = ops_.values[static_cast<size_t>(v)].scope;
    return s == ir::MemScope::fragment || s == ir::MemScope::local;
  }
  bool pinned(const State& s, int v) const { return s.known.fragments[static_cast<size_t>(v)].has_value(); }
  const Fragment& fragment(const State& s, int v) const { return *s.known.fragments[static_cast<size_t>(v)]; }
  void pin(State& s, int v, Fragment f, Origin o, std::string reason, const std::string& by) {
    s.known.fragments[static_cast<size_t>(v)] = std::move(f);
    s.origin[static_cast<size_t>(v)] = o;
    s.reason[static_cast<size_t>(v)] = std::move(reason);
    s.pinned_by[static_cast<size_t>(v)] = by;
  }

  // ---- given ----------------------------------------------------------------------------------------------------

  void take_given() {
    if (!in_.given) return;
    for (size_t v = 0; v < ops_.values.size(); ++v) {
      const plan::ValuePlan* g = plan::find_value(*in_.given, ops_.values[v].name);
      if (!g) continue;
      const std::vector<int64_t>& shape = ops_.values[v].shape;
      bool fragment_scope = distributed(static_cast<int>(v));
      if ((g->fragment && (!fragment_scope || g->fragment->shape() != shape || g->fragment->threads() != in_.threads)) ||
          (g->memory && (fragment_scope || g->memory->shape() != shape || !g->memory->is_injective()))) {
        fail(DiagCode::schedule_illegal, ops_.values[v].name,
             "the given layout " + (g->fragment ? g->fragment->to_text() : g->memory->to_text()) +
                 " does not fit the buffer's shape and scope or the block's " + std::to_string(in_.threads) + " threads",
             "leave the value out to have it inferred", p_.buffer(ops_.values[v].buffer).location);
        return;
      }
      if (g->fragment) pin(state_, static_cast<int>(v), *g->fragment, Origin::given, g->reason, "schedule");
      if (g->memory) pin_memory(static_cast<int>(v), *g->memory, Origin::given, g->reason, "schedule");
    }
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const plan::OpPlan* g = plan::find_op(*in_.given, ops_.ops[i].path);
      if (!g || !g->iteration) continue;
      if (g->iteration->shape() != iteration_extents(ops_.ops[i]) || g->iteration->threads() != in_.threads) {
        fail(DiagCode::schedule_illegal, ops_.ops[i].path,
             "the given iteration layout " + g->iteration->to_text() + " does not fit the op's extents or the block's " +
                 std::to_string(in_.threads) + " threads",
             "leave `iteration` out to have it inferred", ops_.ops[i].location);
        return;
      }
      iteration_[i] = *g->iteration;
    }
  }

  void pin_memory(int v, Layout l, Origin o, std::string reason, const std::string& by) {
    size_t i = static_cast<size_t>(v);
    state_.known.memories[i] = std::move(l);
    state_.origin[i] = o;
    state_.reason[i] = std::move(reason);
    state_.pinned_by[i] = by;
  }

  // ---- strict ---------------------------------------------------------------------------------------------------

  void pin_strict() {
    for (size_t v = 0; v < ops_.values.size(); ++v)
      if (ops_.values[v].scope == ir::MemScope::local && !pinned(state_, static_cast<int>(v)))
        pin(state_, static_cast<int>(v), Fragment::replicated(ops_.values[v].shape, in_.threads), Origin::strict,
            "a local buffer is private to each thread", "");
    for (const auto& [i, gemm] : in_.gemms) {
      const KernelOp& op = ops_.ops[i];
      const std::string why = "operand layout of " + gemm.atom;
      if (failed()) return;
      strict_fragment(i, op.accesses[2].value, gemm.c, why, true);
      for (int side = 0; side < 2; ++side) {
        int v = op.accesses[static_cast<size_t>(side)].value;
        const auto& f = side == 0 ? gemm.a_fragment : gemm.b_fragment;
        const auto& m = side == 0 ? gemm.a_memory : gemm.b_memory;
        if (f) strict_fragment(i, v, *f, why, false);
        if (m) strict_memory(i, v, *m, why);
      }
    }
  }

  void strict_fragment(size_t op_index, int v, const Fragment& want, const std::string& why, bool accumulator) {
    const KernelOp& op = ops_.ops[op_index];
    if (!pinned(state_, v)) {
      pin(state_, v, want.canonical(), Origin::strict, why, op.path);
      return;
    }
    if (fragment(state_, v).equivalent(want)) return;
    if (in_.target.is_host()) return use_loop(op_index, v, want.to_text(), fragment(state_, v).to_text());
    if (!accumulator) return;  // a conversion is made when the op is finished
    fail(DiagCode::schedule_illegal, op.path,
         "accumulator '" + ops_.values[static_cast<size_t>(v)].name + "' is held as " + fragment(state_, v).to_text() +
             " (" + state_.pinned_by[static_cast<size_t>(v)] + ") but " + why + " is " + want.to_text(),
         "give both gemms the same warp policy and types, or accumulate into separate buffers", op.location);
  }

  void strict_memory(size_t op_index, int v, const Layout& want, const std::string& why) {
    const auto& have = state_.known.memories[static_cast<size_t>(v)];
    if (!have) {
      pin_memory(v, want, Origin::strict, why, ops_.ops[op_index].path);
      return;
    }
    if (have->equivalent(want)) return;
    if (!in_.target.is_host()) return;  // ldmatrix and plain loads read any layout; conflicts are counted, not refused
    use_loop(op_index, v, want.to_text(), have->to_text());
  }

  void use_loop(size_t op_index, int v, const std::string& want, const std::string& have) {
    fallback_to_loop_.insert(op_index);
    result_.notes.push_back({ops_.ops[op_index].path,
                             "micro-kernel not used: it wants '" + ops_.values[static_cast<size_t>(v)].name + "' as " + want +
                                 ", but " + state_.pinned_by[static_cast<size_t>(v)] + " pinned it as " + have +
                                 "; copy the tile into a second buffer to have both at full speed"});
  }

  // ---- common ---------------------------------------------------------------------------------------------------

  std::vector<int64_t> iteration_extents(const KernelOp& op) const {
    if (op.form == OpForm::element) return op.view.extents;
    return p_.as<ir::TileOp>(op.stmt)->operands[0].extents;
  }

  // Pinned access whose layout says most about the iterations: most dimensions walked, then strictness, then order.
  int root_access(const State& s, const KernelOp& op) const {
    int best = -1, best_dims = -1;
    Origin best_origin = Origin::free;
    for (size_t i = 0; i < op.view.accesses.size(); ++i) {
      int v = op.accesses[i].value;
      if (!distributed(v) || !pinned(s, v)) continue;
      const ops::ElementAccess& a = op.view.accesses[i];
      if (!pull_back(fragment(s, v), a, op.view.extents)) continue;
      int dims = static_cast<int>(std::count_if(a.dim_of.begin(), a.dim_of.end(), [](int k) { return k >= 0; }));
      Origin o = s.origin[static_cast<size_t>(v)];
      if (dims > best_dims || (dims == best_dims && o < best_origin)) {
        best = static_cast<int>(i);
        best_dims = dims;
        best_origin = o;
      }
    }
    return best;
  }

  // Pins what the op's iteration layout says of its other values; true when something was pinned.
  bool spread(State& s, const KernelOp& op, const Fragment& iteration, Origin origin) {
    bool changed = false;
    for (size_t i = 0; i < op.view.accesses.size(); ++i) {
      int v = op.accesses[i].value;
      if (!distributed(v) || pinned(s, v)) continue;
      auto f = project(iteration, op.view.accesses[i], ops_.values[static_cast<size_t>(v)].shape);
      if (!f) continue;
      pin(s, v, std::move(*f), origin, "as " + op.path + " needs it", op.path);
      changed = true;
    }
    return changed;
  }

  bool propagate_op(State& s, size_t index) {
    const KernelOp& op = ops_.ops[index];
    if (op.form == OpForm::element) {
      if (iteration_[index]) return spread(s, op, *iteration_[index], Origin::common);
      int root = root_access(s, op);
      if (root < 0) return false;
      return spread(s, op, *pull_back(fragment(s, op.accesses[static_cast<size_t>(root)].value),
                                      op.view.accesses[static_cast<size_t>(root)], op.view.extents),
                    Origin::common);
    }
    if (op.form == OpForm::reduce) {
      int src = op.accesses[0].value, dst = op.accesses[1].value;
      if (!distributed(src) || !distributed(dst) || !pinned(s, src) || pinned(s, dst)) return false;
      auto f = reduced(op, fragment(s, src));
      if (!f) return false;
      pin(s, dst, std::move(*f), Origin::common, "row statistic held beside " + ops_.values[static_cast<size_t>(src)].name,
          op.path);
      return true;
    }
    return false;
  }

  // Layout of a reduction's result when the source's iterations are `src`; nothing for parts of buffers.
  std::optional<Fragment> reduced(const KernelOp& op, const Fragment& src) const {
    const auto& tile_op = *p_.as<ir::TileOp>(op.stmt);
    const ir::Region& dst = tile_op.operands[1];
    bool keep = dst.extents.size() == tile_op.operands[0].extents.size();
    std::vector<int64_t> shape = p_.tile_shape(dst.buffer);
    if (shape != dst.extents || src.shape() != tile_op.operands[0].extents) return std::nullopt;
    Fragment f = src.reduce(static_cast<int>(tile_op.attrs[ir::reduce_attr::axis]), keep);
    if (f.shape() != shape) return std::nullopt;
    return f.canonical();
  }

  void propagate(State& s) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < ops_.ops.size(); ++i) changed = propagate_op(s, i) || changed;
    }
  }

  // ---- free -----------------------------------------------------------------------------------------------------

  // Row-major iteration with the vector along `dim`.
  std::optional<Fragment> vectors_along(const std::vector<int64_t>& extents, int dim, int64_t vector) const {
    std::vector<int> order;  // new dimension i is old order[i]: `dim` last
    for (int d = 0; d < static_cast<int>(extents.size()); ++d)
      if (d != dim) order.push_back(d);
    order.push_back(dim);
    std::vector<int64_t> permuted;
    for (int d : order) permuted.push_back(extents[static_cast<size_t>(d)]);
    Fragment f = Fragment::row_major_vectors(permuted, in_.threads, vector);
    std::vector<int> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int>(i);
    auto placed = Fragment::make(f.map().permute(back), in_.threads);
    if (!placed) return std::nullopt;
    return *placed;
  }

  std::vector<Fragment> candidates(const KernelOp& op) const {
    std::vector<int64_t> extents = iteration_extents(op);
    std::vector<Fragment> list;
    if (extents.empty()) {
      list.push_back(Fragment::replicated({}, in_.threads));
      return list;
    }
    std::set<int> dims = {static_cast<int>(extents.size()) - 1};
    for (const ops::ElementAccess& a : op.view.accesses)
      if (!a.dim_of.empty() && a.dim_of.back() >= 0) dims.insert(a.dim_of.back());
    for (auto it = dims.rbegin(); it != dims.rend(); ++it) {
      int64_t extent = extents[static_cast<size_t>(*it)];
      for (int64_t vector = in_.target.is_host() ? 1 : in_.target.vector_bytes; vector >= 1; vector /= 2)
        if (extent % vector == 0)
          if (auto f = vectors_along(extents, *it, vector)) list.push_back(std::move(*f));
    }
    return list;
  }

  double cost_of(const State& s, size_t index, const Fragment& iteration) const {
    const KernelOp& op = ops_.ops[index];
    if (op.form != OpForm::element) return static_cast<double>(iteration.registers() * iteration.replicas());
    return access_cost(p_, op, iteration, s.known, in_.target) * std::pow(8.0, op.depth);
  }

  // Cost of every op whose iteration layout follows from `s`.
  double total_cost(const State& s) const {
    double cost = 0;
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const KernelOp& op = ops_.ops[i];
      if (op.form != OpForm::element) continue;
      int root = root_access(s, op);
      if (root < 0) continue;
      auto it = pull_back(fragment(s, op.accesses[static_cast<size_t>(root)].value),
                          op.view.accesses[static_cast<size_t>(root)], op.view.extents);
      if (it) cost += cost_of(s, i, *it);
    }
    return cost;
  }

  // Tries `iteration` at op `index`; the state it leads to.
  std::optional<State> try_root(size_t index, const Fragment& iteration) {
    const KernelOp& op = ops_.ops[index];
    State trial = state_;
    if (op.form == OpForm::element) {
      if (!spread(trial, op, iteration, Origin::free)) return std::nullopt;
    } else {
      int src = op.accesses[0].value, dst = op.accesses[1].value;
      bool changed = false;
      if (distributed(src) && !pinned(trial, src)) {
        if (iteration.shape() != ops_.values[static_cast<size_t>(src)].shape) return std::nullopt;
        pin(trial, src, iteration.canonical(), Origin::free, "as " + op.path + " reads it", op.path);
        changed = true;
      }
      if (distributed(dst) && !pinned(trial, dst))
        if (auto f = reduced(op, iteration)) {
          pin(trial, dst, std::move(*f), Origin::free, "result of " + op.path, op.path);
          changed = true;
        }
      if (!changed) return std::nullopt;
    }
    propagate(trial);
    return trial;
  }

  void free_values() {
    for (size_t v = 0; v < ops_.values.size(); ++v) {
      if (!distributed(static_cast<int>(v)) || pinned(state_, static_cast<int>(v))) continue;
      std::optional<State> best;
      double best_cost = INFINITY;
      std::string best_root;
      for (size_t i = 0; i < ops_.ops.size(); ++i) {
        const KernelOp& op = ops_.ops[i];
        if (op.form == OpForm::gemm || !touches_unpinned(op)) continue;
        for (const Fragment& f : candidates(op)) {
          auto trial = try_root(i, f);
          if (!trial || !pinned(*trial, static_cast<int>(v))) continue;
          double cost = total_cost(*trial);
          if (cost < best_cost - 1e-9) {
            best_cost = cost;
            best = std::move(trial);
            best_root = op.path;
          }
        }
      }
      if (best) {
        state_ = std::move(*best);
        state_.reason[v] += "; cheapest root: " + best_root;
        continue;
      }
      // No op can spread a layout to it (parts or irregular indices only): one thread's row-major, or a copy per thread.
      pin(state_, static_cast<int>(v), Fragment::replicated(ops_.values[v].shape, in_.threads), Origin::free,
          "only parts or computed indices of it are used; every thread holds a copy", "");
      propagate(state_);
    }
  }

  bool touches_unpinned(const KernelOp& op) const {
    return std::any_of(op.accesses.begin(), op.accesses.end(),
                       [&](const OpAccess& a) { return distributed(a.value) && !pinned(state_, a.value); });
  }

  void shared_rest() {
    for (size_t v = 0; v < ops_.values.size(); ++v)
      if (ops_.values[v].scope == ir::MemScope::shared && !state_.known.memories[v])
        pin_memory(static_cast<int>(v), Layout::row_major(ops_.values[v].shape), Origin::free,
                   "row-major: no instruction asks for another form", "");
  }

  // ---- finish ---------------------------------------------------------------------------------------------------

  void finish_op(size_t index) {
    const KernelOp& op = ops_.ops[index];
    plan::OpPlan& plan = result_.ops[index];
    plan.op = op.path;
    if (op.form == OpForm::gemm) return finish_gemm(index, plan);
    plan.engine = op.form == OpForm::reduce ? plan::Engine::lane_reduce : plan::Engine::loop;
    Fragment iteration = op.form == OpForm::reduce ? reduce_iteration(index) : element_iteration(index, plan);
    plan.iteration = iteration;
    if (op.form == OpForm::element) {
      plan.vector = vector_width(p_, op, iteration, state_.known, in_.target);
      if (const plan::OpPlan* g = given(index); g && g->vector > 0 && g->vector < plan.vector) plan.vector = g->vector;
    }
    if (in_.threads > 1) {
      if (op.form == OpForm::reduce)
        reduce_conversions(op, iteration);
      else
        element_conversions(op, iteration);
    }
  }

  const plan::OpPlan* given(size_t index) const {
    return in_.given ? plan::find_op(*in_.given, ops_.ops[index].path) : nullptr;
  }

  void finish_gemm(size_t index, plan::OpPlan& plan) {
    const ops::GemmPlan& gemm = in_.gemms.at(index);
    const KernelOp& op = ops_.ops[index];
    plan.engine = fallback_to_loop_.count(index) ? plan::Engine::loop : gemm.engine;
    plan.atom = plan.engine == plan::Engine::loop ? "" : gemm.atom;
    plan.warps_m = gemm.warps_m;
    plan.warps_n = gemm.warps_n;
    plan.reason = plan.engine == plan::Engine::loop ? "operand layouts contradict another op's (see notes)" : gemm.reason;
    if (fallback_to_loop_.count(index)) return;
    for (int side = 0; side < 2; ++side) {
      const auto& want = side == 0 ? gemm.a_fragment : gemm.b_fragment;
      int v = op.accesses[static_cast<size_t>(side)].value;
      if (want) convert(v, fragment(state_, v), *want, state_.pinned_by[static_cast<size_t>(v)], op.path, op.location, true);
    }
  }

  Fragment reduce_iteration(size_t index) {
    if (iteration_[index]) return *iteration_[index];
    const KernelOp& op = ops_.ops[index];
    int src = op.accesses[0].value;
    if (distributed(src) && fragment(state_, src).shape() == iteration_extents(op)) return fragment(state_, src);
    return candidates(op).front();
  }

  Fragment element_iteration(size_t index, plan::OpPlan& plan) {
    const KernelOp& op = ops_.ops[index];
    if (iteration_[index]) {
      plan.reason = "given";
      return *iteration_[index];
    }
    int root = root_access(state_, op);
    if (root >= 0) {
      int v = op.accesses[static_cast<size_t>(root)].value;
      plan.reason = "threads follow " + ops_.values[static_cast<size_t>(v)].name;
      return *pull_back(fragment(state_, v), op.view.accesses[static_cast<size_t>(root)], op.view.extents);
    }
    std::vector<Fragment> list = candidates(op);
    size_t best = 0;
    double best_cost = INFINITY;
    for (size_t i = 0; i < list.size(); ++i) {
      double cost = cost_of(state_, index, list[i]);
      if (cost < best_cost - 1e-9) {
        best_cost = cost;
        best = i;
      }
    }
    plan.reason = "fewest memory transactions of " + std::to_string(list.size()) + " candidates";
    return list[best];
  }

  void element_conversions(const KernelOp& op, const Fragment& iteration) {
    for (size_t i = 0; i < op.view.accesses.size() && !failed(); ++i) {
      int v = op.accesses[i].value;
      if (!distributed(v)) continue;
      const ops::ElementAccess& a = op.view.accesses[i];
      const Fragment& held = fragment(state_, v);
      const std::string& name = ops_.values[static_cast<size_t>(v)].name;
      auto needed = project(iteration, a, ops_.values[static_cast<size_t>(v)].shape);
      if (!needed) {
        bool everywhere = held.replicas() == in_.threads;
        if (everywhere && (!a.write || iteration.replicas() == in_.threads)) continue;
        fail(DiagCode::target_unsupported, op.path,
             "buffer '" + name + "' is held as " + held.to_text() + ", and its index cannot be followed to a thread",
             "index fragments by the loop's own variables over their whole extents, or go through a shared buffer",
             op.location);
        return;
      }
      if (a.write)
        convert(v, *needed, held, op.path, state_.pinned_by[static_cast<size_t>(v)], op.location, false);
      else if (!held.covers(iteration, index_map(a)))
        convert(v, held, *needed, state_.pinned_by[static_cast<size_t>(v)], op.path, op.location, false);
    }
  }

  void reduce_conversions(const KernelOp& op, const Fragment& iteration) {
    int dst = op.accesses[1].value;
    if (!distributed(dst)) return;
    auto made = reduced(op, iteration);
    if (!made) {
      if (fragment(state_, dst).replicas() == in_.threads) return;
      fail(DiagCode::target_unsupported, op.path, "the result goes to a part of a distributed buffer",
           "reduce into a whole fragment and copy it", op.location);
      return;
    }
    convert(dst, *made, fragment(state_, dst), op.path, state_.pinned_by[static_cast<size_t>(dst)], op.location, false);
  }

  // Element-wise code addresses registers freely, so only movement between threads counts there; a matrix atom takes its
  // registers in one order (`registers_matter`).
  void convert(int v, const Fragment& from, const Fragment& to, const std::string& producer, const std::string& consumer,
               const SourceLocation& loc, bool registers_matter) {
    if (from.equivalent(to) || in_.threads == 1) return;
    ConversionKind kind = layout::classify_conversion(from, to, in_.target.warp);
    if (kind == ConversionKind::none || (kind == ConversionKind::register_permute && !registers_matter)) return;
    const Value& value = ops_.values[static_cast<size_t>(v)];
    if (!in_.conversions) {
      fail(DiagCode::conversion_refused, consumer,
           "value '" + value.name + "' is made by " + producer + " as " + from.to_text() + " but " + consumer +
               " needs it as " + to.to_text() + " (a " + layout::conversion_name(kind) + ")",
           "allow layout conversions, or give both ops the same warp policy", loc);
      return;
    }
    plan::ConversionPlan c;
    c.value = value.name;
    c.producer = producer;
    c.consumer = consumer;
    c.kind = kind;
    c.from = from.canonical();
    c.to = to.canonical();
    c.cost = conversion_cost(kind, to, ir::dtype_bytes(p_.buffer(value.buffer).type));
    c.reason = std::string(layout::conversion_name(kind)) + ": the two ops hold the value on different " +
               (kind == ConversionKind::register_permute ? "registers" : "threads");
    result_.conversions.push_back(std::move(c));
  }

  // Cycles of a block: a move per register, a shuffle per register, or a trip through shared memory with two barriers.
  static int64_t conversion_cost(ConversionKind kind, const Fragment& to, int bytes) {
    int64_t words = (to.registers() * bytes + 3) / 4;
    switch (kind) {
      case ConversionKind::none: return 0;
      case ConversionKind::register_permute: return words;
      case ConversionKind::shuffle: return 4 * words;
      case ConversionKind::replication: return 6 * words;
      case ConversionKind::shared_bounce: return 8 * words + 60;
    }
    return 0;
  }

  const InferInput& in_;
  const Program& p_;
  const KernelOps& ops_;
  State state_;
  std::vector<std::optional<Fragment>> iteration_;  // given, by op
  std::set<size_t> fallback_to_loop_;
  InferResult result_;
  Error error_;
};

}  // namespace

Expected<InferResult> infer_layouts(const InferInput& input) {
  g_calls.fetch_add(1, std::memory_order_relaxed);
  return Inference(input).run();
}

int64_t infer_layouts_calls() { return g_calls.load(std::memory_order_relaxed); }

}  // namespace tilegen::infer
