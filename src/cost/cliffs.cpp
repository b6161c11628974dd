#include "cost/cliffs.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "analysis/exchange.h"
#include "analysis/gemm_shape.h"
#include "ir/bulk_copy.h"
#include "ir/op_kinds.h"
#include "ir/statement_paths.h"
#include "support/diag_codes.h"

namespace tilegen::cost {

namespace {

using analysis::KernelOp;
using analysis::OpId;

std::string number(int64_t v) { return std::to_string(v); }

std::string times(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, factor < 10 ? "%.1f" : "%.0f", factor);
  return std::string(text) + " times";
}

class KernelCliffs {
 public:
  KernelCliffs(const ir::Program& p, int index, const PlannedKernel& k, SizedProgram& sizes)
      : p_(p),
        index_(index),
        k_(k),
        sizes_(sizes),
        works_(works_of(k)),
        base_(estimate_kernel(index, k, sizes, works_)) {}

  std::vector<Cliff> find() {
    for (OpId i : k_.ops.ops.ids()) {
      const KernelOp& op = k_.ops.ops[i];
      if (op.form == analysis::OpForm::contraction) product(i, op);
      if (op.form == analysis::OpForm::reduction) reduction(i, op);
      accesses(i);
      copies(i, op);
    }
    ir::for_each_statement(p_, kernel().body, [&](ir::StmtId id, int) {
      const auto* loop = p_.as<ir::Loop>(id);
      if (loop && loop->kind == ir::LoopKind::pipelined) loads(id, *loop);
    });
    judge();
    spills();
    return std::move(found_);
  }

 private:
  const ir::Kernel& kernel() const { return p_.kernels[static_cast<size_t>(index_)]; }

  // An op with a fault, and its work without.
  struct Suspect {
    OpId op;
    OpWork instead;
    std::string message, way_out;
  };

  void add(DiagCode code, const std::string& path, const SourceLocation& location, double factor,
           std::string message, std::string way_out) {
    if (factor < kCliff) return;
    Cliff c;
    c.factor = factor;
    c.diagnostic.code = code;
    c.diagnostic.severity = Severity::warning;
    c.diagnostic.op = path;
    c.diagnostic.message =
        std::move(message) + ": the kernel takes about " + times(factor) + " as long as without";
    c.diagnostic.hint = std::move(way_out);
    c.diagnostic.location = location;
    c.diagnostic.stage = "cost";
    found_.push_back(std::move(c));
  }

  void suspect(DiagCode code, OpId op, OpWork instead, std::string message, std::string way_out) {
    suspects_[code].push_back({op, std::move(instead), std::move(message), std::move(way_out)});
  }

  // Cycles of a block's pipes and waits that the fault takes.
  double loss(const Suspect& s) const {
    const auto cycles = [](const Work& w) { return w.busy() + w.latency; };
    return base_.ops[s.op.index()].times * (cycles(works_[s.op.index()].work) - cycles(s.instead.work));
  }

  // Ops that share a fault hide it behind each other: it is weighed for all of them at once, and named where
  // it costs most.
  void judge() {
    for (auto& [code, list] : suspects_) {
      std::vector<OpWork> works = works_;
      for (const Suspect& s : list) works[s.op.index()] = s.instead;
      const double factor = base_.cycles / estimate_kernel(index_, k_, sizes_, works).cycles;
      Suspect& most = *std::max_element(
          list.begin(), list.end(), [&](const Suspect& a, const Suspect& b) { return loss(a) < loss(b); });
      if (list.size() > 1)
        most.message += ", and so in " + number(static_cast<int64_t>(list.size()) - 1) + " more";
      const KernelOp& op = k_.ops.ops[most.op];
      add(code, op.path, op.location, factor, std::move(most.message), std::move(most.way_out));
    }
  }

  // What the planner said of the op.
  std::string note(const std::string& path) const {
    for (const plan::Note& n : k_.schedule.notes)
      if (n.path == path) return n.text;
    return "";
  }

  // Multiplied by less than the fastest instructions for its types.
  void product(OpId i, const KernelOp& op) {
    const auto* tile = p_.as<ir::TileOp>(op.stmt);
    const plan::OpPlan& plan = k_.plan(op);
    if (!tile || plan.engine != plan::Engine::mma) return;
    const analysis::GemmShape s = analysis::gemm_shape(p_, *tile);
    if (s.sparse) return;  // by the cost model
    const auto volume = static_cast<double>(s.m * s.n * s.k);
    OpWork best = works_[i.index()];
    const target::MmaAtom* own = target::find_mma_atom(k_.t, plan.atom);
    const bool tensor = own && own->unit == target::MmaUnit::matrix;
    double least = 0;  // cycles of the units
    for (const target::WarpgroupAtom& a : k_.t.warpgroup_mma)
      if (a.a == s.a && a.b == s.b && a.c == s.c && (s.a != ir::DType::f32 || s.tf32))
        least = volume / (8.0 * a.m * a.k) * a.cycles_per_8;
    for (const target::MmaAtom& a : k_.t.mma)
      if (least == 0 && !a.given && a.unit == target::MmaUnit::matrix && a.a == s.a && a.b == s.b &&
          a.c == s.c && (!a.tf32 || s.tf32))
        least = volume / (a.m * a.n * a.k) * a.cycles / k_.t.schedulers;
    if (least == 0) return;
    best.place = k_.t.warpgroup_mma.empty() ? OpPlace::threads : OpPlace::units;
    best.work = {};
    best.work[Pipe::tensor] = least;
    best.work[Pipe::shared] = least / 2;
    const std::string why = note(op.path);
    suspect(DiagCode::slow_product, i, best,
            "the " + number(s.m) + "x" + number(s.n) + "x" + number(s.k) + " product is done by " +
                (tensor ? plan.atom : std::string("multiply-adds")) + (why.empty() ? "" : " (" + why + ")"),
            has_one_stage(op) && why.find("one stage") != std::string::npos
                ? "ask for 2 stages or more"
                : "give the tile and the kernel's threads a shape that the fastest instructions divide: "
                  "rows of 64 for each 128 threads, or other threads");
  }

  // The loop around asks for no overlap.
  bool has_one_stage(const KernelOp& op) const {
    bool found = false;
    ir::for_each_statement(p_, kernel().body, [&](ir::StmtId id, int) {
      const auto* loop = p_.as<ir::Loop>(id);
      if (!loop || loop->kind != ir::LoopKind::pipelined || loop->num_stages != 1) return;
      found = found || std::find(loop->body.begin(), loop->body.end(), op.stmt) != loop->body.end();
    });
    return found;
  }

  // A row that so many threads share that their partial results meet in memory, each thread reading all.
  void reduction(OpId i, const KernelOp& op) {
    const plan::OpPlan& plan = k_.plan(op);
    if (!plan.iteration || plan.deferred_to) return;
    const auto exchange =
        analysis::reduction_exchange(p_, op, *plan.iteration, k_.value(op.accesses[1].value), k_.t);
    if (!exchange.through_scratch) return;
    OpWork better = works_[i.index()];
    better.work[Pipe::shared] = 0;
    better.work[Pipe::issue] = std::min(better.work[Pipe::issue], better.work[Pipe::plain] * 2);
    better.work.latency = 0;
    suspect(DiagCode::wide_reduction, i, better,
            number(exchange.parts) + " partial results of each row meet in shared memory",
            "use fewer threads, a power of two of them, or tiles of more rows");
  }

  // Chunks of a box, which lie row by row beside each other.
  bool copies_a_box(const KernelOp& op) const {
    bool found = false;
    ir::for_each_statement(p_, kernel().body, [&](ir::StmtId id, int) {
      const auto* loop = p_.as<ir::Loop>(id);
      found = found || (loop && !ir::bulk_box(p_.stmt(id)).empty() &&
                        std::find(loop->body.begin(), loop->body.end(), op.stmt) != loop->body.end());
    });
    return found;
  }

  // Requests of warps that are served in many parts.
  void accesses(OpId i) {
    const OpWork& w = works_[i.index()];
    if (copies_a_box(k_.ops.ops[i])) return;
    if (w.least_lines > 0 && w.work[Pipe::global] > 1.5 * w.least_lines) {
      OpWork better = w;
      better.work[Pipe::global] = w.least_lines;
      suspect(
          DiagCode::scattered_access, i, better,
          "a warp's requests of tensors touch " +
              number(static_cast<int64_t>(w.work[Pipe::global] / w.least_lines + 0.5)) +
              " times the lines that their bytes need",
          "let consecutive elements of the tensor's last dimension belong to one row of the tile, or copy "
          "the "
          "tile to shared memory first");
    }
    if (w.least_wavefronts > 0 && w.work[Pipe::shared] > 1.5 * w.least_wavefronts) {
      OpWork better = w;
      better.work[Pipe::shared] = w.least_wavefronts;
      suspect(DiagCode::bank_conflicts, i, better,
              "a warp's requests of shared memory take " +
                  number(static_cast<int64_t>(w.work[Pipe::shared] / w.least_wavefronts + 0.5)) +
                  " times the wavefronts that their bytes need",
              "use tiles whose rows are powers of two of at least 16 bytes, or copy through a fragment");
    }
  }

  // Threads that hold the same points all do their work.
  void copies(OpId i, const KernelOp& op) {
    const plan::OpPlan& plan = k_.plan(op);
    const int64_t holders = plan.iteration ? plan.iteration->replicas() / warpgroups_by_turns(k_, op) : 1;
    if (holders < 2) return;
    const auto replicas = static_cast<double>(holders);
    OpWork once = works_[i.index()];
    const double bytes = once.work.read_bytes + once.work.written_bytes;
    once.work *= 1 / replicas;
    if (bytes > 0) once.work.l2_bytes *= replicas;
    suspect(DiagCode::repeated_work, i, once, number(holders) + " threads do the work of every point",
            "use fewer threads, or a tile whose extents the threads divide");
  }

  void loads(ir::StmtId id, const ir::Loop& loop) {
    const std::string path = ir::KernelPaths(p_, index_)[id.value];
    const plan::LoopPlan* plan = plan::find_loop(k_.schedule, path);
    const int64_t stages = plan ? plan->num_stages : 0;
    const SourceLocation& location = p_.stmt(id).location;
    const int64_t wanted = stages <= 1 ? 2 : loop.num_stages - 1;
    if (stages > 1 && wanted < stages) return;
    const double gain =
        base_.cycles / estimate_kernel(index_, k_, sizes_, works_, {id, wanted, stages <= 1}).cycles;
    const bool produced = std::any_of(k_.schedule.pipelines.begin(), k_.schedule.pipelines.end(),
                                      [&](const plan::PipelinePlan& c) { return c.loop == path; });
    if (stages <= 1)
      add(DiagCode::no_overlap, path, location, gain,
          (produced ? "tiles have one slot, and are loaded only between their last use and the next one"
                    : "each iteration waits for its own loads, nothing is loaded ahead") +
              (plan && !plan->reason.empty() ? " (" + plan->reason + ")" : ""),
          loop.num_stages == 1 ? "ask for 2 stages or more"
                               : "copy tiles that the kernel does not write from tensors to shared memory, "
                                 "which needs room for two of each");
    else
      add(DiagCode::stages_lost, path, location, gain,
          number(stages) + " of the " + number(loop.num_stages) + " stages asked for fit shared memory",
          "use smaller tiles or ask for fewer stages");
  }

  void spills() {
    const Occupancy& o = base_.occupancy;
    if (!o.spills()) return;
    const double factor =
        base_.cycles / estimate_kernel(index_, k_, sizes_, works_, {}, /*spills=*/false).cycles;
    add(DiagCode::register_spills, kernel().name, kernel().location, factor,
        "a thread needs about " + number(o.registers) + " registers and may have " + number(o.may_have),
        "use more threads or smaller tiles");
  }

  const ir::Program& p_;
  const int index_;
  const PlannedKernel& k_;
  SizedProgram& sizes_;
  const std::vector<OpWork> works_;
  const KernelEstimate base_;
  std::map<DiagCode, std::vector<Suspect>> suspects_;
  std::vector<Cliff> found_;
};

}  // namespace

std::vector<Cliff> find_cliffs(const ir::Program& p, const plan::Schedule& schedule, const target::Target& t,
                               const Sizes& given) {
  std::vector<Cliff> all;
  for (size_t i = 0; i < p.kernels.size() && i < schedule.kernels.size(); ++i) {
    const analysis::KernelOps ops = analysis::collect_kernel_ops(p, static_cast<int>(i));
    SizedProgram sizes(p, given);
    const PlannedKernel k{p, ops, schedule.kernels[i], t, sizes};
    for (Cliff& c : KernelCliffs(p, static_cast<int>(i), k, sizes).find()) all.push_back(std::move(c));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Cliff& a, const Cliff& b) { return a.factor > b.factor; });
  return all;
}

}  // namespace tilegen::cost
