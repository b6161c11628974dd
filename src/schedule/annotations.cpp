#include "schedule/annotations.h"

#include <algorithm>
#include <map>

#include "analysis/copy_groups.h"
#include "analysis/kernel_ops.h"
#include "ir/bulk_copy.h"
#include "ir/matrix_atom.h"
#include "ir/statement_paths.h"
#include "ir/transaction_barriers.h"
#include "plan/fill_open.h"
#include "schedule/annotation_fields.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using ir::Annotation;
using plan::KernelSchedule;

class AnnotationReader {
 public:
  AnnotationReader(const ir::Program& p, const ir::Program& form, const target::Target& t,
                   AnnotatedSchedule& out)
      : p_(p), form_(form), target_(t), out_(out), paths_(ir::statement_paths(p)) {}

  Checked run() {
    for (size_t k = 0; k < p_.kernels.size() && result_; ++k) {
      const ir::Kernel& kernel = p_.kernels[k];
      kernel_ = static_cast<int>(k);
      schedule_ = {};
      schedule_.kernel = kernel.name;
      ops_.reset();
      labels_.clear();
      ir::for_each_statement(p_, kernel.body, [&](ir::StmtId s, int) {
        if (!p_.stmt(s).label.empty()) labels_[p_.stmt(s).label] = s;
      });
      for (const Annotation& a : kernel.annotations)
        if (applies(a, kernel.name)) of_kernel(a);
      for (const ir::Buffer& b : p_.buffers)
        if (b.kernel == kernel_) of_tile(b);
      ir::for_each_statement(p_, kernel.body, [&](ir::StmtId s, int) { of_statement(s); });
      KernelSchedule nothing;
      nothing.kernel = kernel.name;
      if (!(schedule_ == nothing)) made.kernels.push_back(schedule_);
    }
    return std::move(result_);
  }

  plan::Schedule made;

 private:
  // Hosts have one thread for a block; a note says what is left out.
  bool applies(const Annotation& a, const std::string& path) {
    if (target_.has_block_threads()) return true;
    out_.notes.push_back({path, "the annotation `" + a.key +
                                    "` is left out: it decides for blocks of threads, which " + target_.name +
                                    " does not have"});
    return false;
  }

  void refuse(const Annotation& a, const std::string& path, DiagCode code, const std::string& why,
              const std::string& hint) {
    if (result_) result_ = Error(code, path, why, hint, a.location);
  }
  // Not of what the caller decides.
  void place(const Annotation& a, const std::string& path, std::vector<std::string> fields) {
    if (!is_given(path, fields)) out_.places.push_back({path, std::move(fields), a.key, a.location});
  }
  bool is_given(const std::string& path, const std::vector<std::string>& fields) const {
    const KernelSchedule* given = out_.schedule ? out_.schedule->find(schedule_.kernel) : nullptr;
    if (!given) return false;
    const plan::OpPlan* op = plan::find_op(*given, path);
    const plan::ValuePlan* value = plan::find_value(*given, path);
    const plan::LoopPlan* loop = plan::find_loop(*given, path);
    return std::any_of(fields.begin(), fields.end(), [&](const std::string& f) {
      if (op && says(*op, f)) return true;
      if (value && says(*value, f)) return true;
      if (loop && says(*loop, f)) return true;
      return (f == "raster" && given->raster) || (f == "persistence" && given->persistence) ||
             (f == "cluster" && given->cluster) || (f == "overlap" && given->overlap) ||
             (f == "launch" && given->launch) || (f == "split" && given->split) ||
             (f == "roles" && given->roles);
    });
  }

  void of_kernel(const Annotation& a) {
    const std::string& value = a.values.front();
    const std::string& name = schedule_.kernel;
    if (a.key == "raster" || a.key == "group" || a.key == "dies") {
      if (!schedule_.raster) schedule_.raster.emplace().order.clear();
      if (a.key == "raster") schedule_.raster->order = value;
      if (a.key == "group") schedule_.raster->group = number_of(value);
      if (a.key == "dies") schedule_.raster->dies = number_of(value);
      return place(a, name, {"raster", "raster." + (a.key == "raster" ? "order" : a.key), a.key});
    }
    if (a.key == "persistence") {
      schedule_.persistence.emplace().persistent = value != "none";
      if (value != "none") schedule_.persistence->order = value;
      return place(a, name, {"persistence", "persistence.persistent", "persistence.order"});
    }
    if (a.key == "cluster" || a.key == "cluster_along") {
      if (!schedule_.cluster) schedule_.cluster.emplace().blocks = 0;
      if (a.key == "cluster") schedule_.cluster->blocks = number_of(value);
      if (a.key == "cluster_along") schedule_.cluster->along = value;
      return place(a, name, {"cluster", a.key == "cluster" ? "cluster.blocks" : "cluster.along"});
    }
    if (a.key == "overlap") {
      schedule_.overlap.emplace().along = a.values;
      return place(a, name, {"overlap", "overlap.along"});
    }
    if (a.key == "role_registers") {
      if (a.values.size() != 2)
        return refuse(
            a, name, DiagCode::schedule_illegal,
            "the annotation `role_registers` has " + std::to_string(a.values.size()) + " numbers, expected 2",
            "give the registers of a computing thread and of one of the producer's, "
            "role_registers = [240, 24]");
      schedule_.roles.emplace();
      for (const auto& [role, registers] :
           {std::pair("consumer", a.values[0]), std::pair("producer", a.values[1])}) {
        plan::RolePlan& plan = schedule_.roles->emplace_back();
        plan.name = role;
        plan.registers = number_of(registers);
      }
      return place(a, name, {"roles", "roles.registers"});
    }
    if (!schedule_.launch) schedule_.launch.emplace();
    set_field(*schedule_.launch, a);
    place(a, name, {"launch", "launch." + a.key});
  }

  const analysis::KernelOps& ops() {
    if (!ops_) ops_ = analysis::collect_kernel_ops(form_, kernel_);
    return *ops_;
  }

  void of_tile(const ir::Buffer& b) {
    const Annotation* decides = nullptr;  // the place of its elements
    for (const Annotation& a : b.annotations) {
      const std::string path = schedule_.kernel + ":" + b.name;
      if (a.key == ir::kArrivals || a.key == ir::kParticipants) continue;  // what the tile is
      if (!applies(a, path)) continue;
      const bool lays_out = a.key != "slots";
      if (lays_out && decides)
        return refuse(
            a, path, DiagCode::schedule_illegal,
            "the annotations `" + decides->key + "` and `" + a.key + "` both say where elements lie",
            "keep one of them");
      if (lays_out) decides = &a;
      for (const analysis::Value& v : ops().values)
        if (v.name == path || v.name.rfind(path + "@", 0) == 0) of_value(a, v, b);
    }
  }

  void of_value(const Annotation& a, const analysis::Value& v, const ir::Buffer& b) {
    plan::ValuePlan& plan = entry_of(schedule_.values, &plan::ValuePlan::value, v.name);
    plan.origin = plan::Origin::given;
    if (a.key == "slots") {
      plan.slots = number_of(a.values.front());
      return place(a, v.name, {"slots"});
    }
    place(a, v.name, {"fragment", "memory"});
    if (v.scope == ir::MemScope::shared) {
      auto l = annotated_memory(a, v.shape, ir::dtype_bytes(b.type));
      if (l) return void(plan.memory = std::move(*l));
      const Diagnostic& d = l.error().diagnostics.front();
      return refuse(a, v.name, d.code, d.message, d.hint);
    }
    if (a.key != "layout")
      return refuse(
          a, v.name, DiagCode::schedule_illegal,
          "the annotation `" + a.key +
              "` is not possible: the tile is in registers, and a layout of "
              "these tells thread and register of an element",
          "give layout = (i, j) -> thread * registers + register, or the text of a fragment: \"threads "
          "128 : (64,64) -> [0: ..; 1: ..]\", as a schedule shows it");
    auto f = annotated_fragment(a, v.shape, threads());
    if (f) return void(plan.fragment = std::move(*f));
    const Diagnostic& d = f.error().diagnostics.front();
    refuse(a, v.name, d.code, d.message, d.hint);
  }

  int64_t threads() const { return p_.kernels[static_cast<size_t>(kernel_)].threads; }

  // Of a parallel loop; of others none.
  std::vector<int64_t> points_of(ir::StmtId s) const {
    std::vector<int64_t> extents;
    if (const auto* loop = p_.as<ir::Loop>(s))
      for (const ir::ExprId e : loop->extents) {
        int64_t extent = 0;
        if (p_.exprs.is_const_int(e, &extent)) extents.push_back(extent);
      }
    return extents;
  }

  void of_statement(ir::StmtId s) {
    if (const auto where = ir::annotation_place(p_, s))
      for (const Annotation& a : p_.stmt(s).annotations) {
        // Where copies are done in order their groups are empty.
        if (a.key == "asynchronous" && !analysis::has_copy_groups(target_)) continue;
        if (a.key == ir::kBulk) continue;  // says what the loop does
        if (!applies(a, paths_[s.value])) continue;
        *where == ir::AnnotationPlace::loop ? of_loop(a, s) : of_op(a, s);
      }
  }

  // An operation's own path alone, or those of a parallel loop's stores.
  std::vector<std::string> operations(ir::StmtId s) {
    std::vector<std::string> list;
    const std::string& path = paths_[s.value];
    for (const analysis::KernelOp& op : ops().ops)
      if (op.path == path || op.path.rfind(path + "/", 0) == 0) list.push_back(op.path);
    return p_.as<ir::TileOp>(s) && std::count(list.begin(), list.end(), path) > 0 ? std::vector{path} : list;
  }

  void of_op(const Annotation& a, ir::StmtId s) {
    const auto list = operations(s);
    if (list.empty())
      return refuse(
          a, paths_[s.value], DiagCode::schedule_mismatch,
          "the annotation `" + a.key +
              "` is of a loop without an operation of its own: it is done together "
              "with what stands before or behind it",
          "annotate the first of the loops next to each other, or the statement that uses its values");
    if (is_atom_of_others(a, paths_[s.value])) return;
    for (const std::string& path : list) {
      plan::OpPlan& plan = entry_of(schedule_.ops, &plan::OpPlan::op, path);
      std::vector<std::string> fields = {a.key};
      if (a.key == "warps") {
        if (a.values.size() != 2)
          return refuse(
              a, path, DiagCode::schedule_illegal,
              "the annotation `warps` has " + std::to_string(a.values.size()) + " numbers, expected 2",
              "give the warps along the rows and along the columns, warps = [2, 2]");
        plan.warps_m = number_of(a.values[0]);
        plan.warps_n = number_of(a.values[1]);
        fields = {"warps_m", "warps_n"};
      } else if (a.key == "asynchronous") {
        if (a.values.front() != "true") continue;
        plan.engine = plan::Engine::async_copy;
        fields = {"engine"};
      } else if (a.key == "iteration") {
        auto f = annotated_fragment(a, points_of(s), threads());
        if (!f) {
          const Diagnostic& d = f.error().diagnostics.front();
          return refuse(a, path, d.code, d.message, d.hint);
        }
        plan.iteration = std::move(*f);
      } else {
        set_field(plan, a);
      }
      place(a, path, std::move(fields));
    }
  }

  // An atom of the program without text for the target: the product means the same without it.
  bool is_atom_of_others(const Annotation& a, const std::string& path) {
    if (a.key != "atom") return false;
    const ir::NativeFunction* atom = ir::find_matrix_atom(p_, a.values.front());
    if (!atom || target::find_mma_atom(target_, atom->name)) return false;
    out_.notes.push_back({path, "the atom '" + atom->name + "' is left out: it has " + atom->forms() +
                                    ", which " + target_.name + " does not take"});
    return true;
  }

  void of_loop(const Annotation& a, ir::StmtId s) {
    const std::string& path = paths_[s.value];
    if (a.key == "split") {
      if (schedule_.split)
        return refuse(a, path, DiagCode::schedule_illegal, "two loops of the kernel are split",
                      "let blocks share one of them");
      schedule_.split.emplace();
      schedule_.split->loop = path;
      schedule_.split->parts = number_of(a.values.front());
      return place(a, path, {"split"});
    }
    plan::LoopPlan& plan = entry_of(schedule_.loops, &plan::LoopPlan::loop, path);
    if (a.key != "order" && a.key != "stage") {
      set_field(plan, a);
      return place(a, path, {a.key});
    }
    place(a, path, {"stages"});
    if (plan.stages.empty()) of_stages(a, s, plan);
  }

  // Both lists, of the same length.
  void of_stages(const Annotation& a, ir::StmtId s, plan::LoopPlan& plan) {
    const std::string& path = paths_[s.value];
    const Annotation *order = nullptr, *stage = nullptr;
    for (const Annotation& other : p_.stmt(s).annotations) {
      if (other.key == "order") order = &other;
      if (other.key == "stage") stage = &other;
    }
    if (!order || !stage || order->values.size() != stage->values.size())
      return refuse(
          a, path, DiagCode::schedule_illegal,
          "the loop has " + (order ? std::to_string(order->values.size()) : "no") + " names in `order` and " +
              (stage ? std::to_string(stage->values.size()) : "no") + " numbers in `stage`",
          "give the labels of its statements in the order of issue, and the stage of each: order = [load, "
          "product], stage = [0, 2]");
    for (size_t i = 0; i < order->values.size(); ++i) {
      const auto named = labels_.find(order->values[i]);
      const auto list = named == labels_.end() ? std::vector<std::string>() : operations(named->second);
      if (list.empty())
        return refuse(
            *order, path, DiagCode::schedule_mismatch,
            "`order` names '" + order->values[i] + "', which is the label of no operation of the kernel",
            "put a label in front of it: label " + order->values[i] + ": copy ...");
      for (const std::string& op : list) plan.stages.emplace_back(op, number_of(stage->values[i]));
    }
  }

  const ir::Program& p_;
  const ir::Program& form_;
  const target::Target& target_;
  AnnotatedSchedule& out_;
  const std::vector<std::string> paths_;
  int kernel_ = 0;
  KernelSchedule schedule_;
  std::optional<analysis::KernelOps> ops_;
  std::map<std::string, ir::StmtId> labels_;
  Checked result_ = Unit{};
};

namespace {

// Names that a schedule may have from before statements had labels.
class LabelledNames {
 public:
  explicit LabelledNames(const ir::Program& p) {
    const bool any =
        std::any_of(p.stmts.begin(), p.stmts.end(), [](const ir::Stmt& s) { return !s.label.empty(); });
    if (!any) return;
    const auto with = ir::statement_paths(p), without = ir::paths_without_labels(p);
    for (size_t s = 0; s < with.size(); ++s)
      if (with[s] != without[s]) names_.emplace(without[s], with[s]);
    for (const std::string& path : with) names_.erase(path);
  }

  void rename(plan::Schedule& s) const {
    if (names_.empty()) return;
    for (KernelSchedule& k : s.kernels) {
      for (plan::OpPlan& o : k.ops) name(o.op);
      if (k.roles)
        for (plan::RolePlan& r : *k.roles)
          for (std::string& op : r.ops) name(op);
      if (k.split) name(k.split->loop);
      for (plan::LoopPlan& l : k.loops) {
        name(l.loop);
        for (auto& [op, stage] : l.stages) name(op);
      }
      for (plan::PipelinePlan& c : k.pipelines) name(c.loop);
      for (plan::ConversionPlan& c : k.conversions) name(c.producer), name(c.consumer);
      for (plan::OpPlan& o : k.ops)
        if (o.deferred_to) name(*o.deferred_to);
    }
  }

 private:
  void name(std::string& path) const {
    if (const auto it = names_.find(path); it != names_.end()) path = it->second;
  }
  std::map<std::string, std::string> names_;
};

}  // namespace

Expected<AnnotatedSchedule> AnnotatedSchedule::make(const ir::Program& p, const ir::Program& form,
                                                    const target::Target& t,
                                                    const std::optional<plan::Schedule>& given) {
  AnnotatedSchedule out;
  out.schedule = given;
  if (out.schedule) LabelledNames(p).rename(*out.schedule);
  AnnotationReader reader(p, form, t, out);
  if (Checked ok = reader.run(); !ok) {
    Error e = ok.error();
    e.diagnostics[0].stage = "plan";
    return e;
  }
  if (reader.made.kernels.empty()) return out;
  if (!out.schedule) out.schedule.emplace();
  for (const KernelSchedule& k : reader.made.kernels) {
    const auto own = std::find_if(out.schedule->kernels.begin(), out.schedule->kernels.end(),
                                  [&](const KernelSchedule& g) { return g.kernel == k.kernel; });
    own == out.schedule->kernels.end() ? out.schedule->kernels.push_back(k) : plan::fill_open(*own, k);
  }
  return out;
}

}  // namespace tilegen::schedule
