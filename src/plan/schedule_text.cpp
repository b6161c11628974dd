// A Schedule for people. One line per decision: what, how, and after "--" why; columns are aligned within a
// section. Layouts that have a name (row-major, padded) are shown by it, others in full on a line of their
// own below.
//
//   kernel gemm  128 threads, raster grouped by 8 -- neighbouring blocks share B
//     ops
//       gemm/ko/copy#0  async_copy  vector 8                -- 16 bytes per thread
//       gemm/ko/gemm#0  mma         m16n8k16.f16 warps 2x2  -- fewest shared loads
//     memory  49152 bytes
//       gemm:As  [0, 24576)  24576 bytes
#include <algorithm>

#include "plan/schedule_fields.h"

namespace tilegen::plan {
namespace {

std::string one_line(std::string s) {
  std::replace_if(
      s.begin(), s.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return s;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string s;
  for (int64_t e : shape) s += (s.empty() ? "" : "x") + std::to_string(e);
  return s.empty() ? "scalar" : s;
}

std::string plural(int64_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// Lines of one section: cells, the reason, and lines that belong below.
class Table {
 public:
  struct Row {
    std::vector<std::string> cells;
    std::string reason;
    std::vector<std::string> below;
  };
  void add(Row row) {
    for (std::string& c : row.cells) c = one_line(std::move(c));
    rows_.push_back(std::move(row));
  }

  void print(std::string& out, const std::string& title) const {
    if (rows_.empty()) return;
    out += "  " + title + "\n";
    std::vector<size_t> widths;
    for (const Row& r : rows_) {
      widths.resize(std::max(widths.size(), r.cells.size()), 0);
      for (size_t i = 0; i < r.cells.size(); i++) widths[i] = std::max(widths[i], r.cells[i].size());
    }
    for (const Row& r : rows_) {
      std::string line = "   ";
      for (size_t i = 0; i < widths.size(); i++) {
        std::string cell = i < r.cells.size() ? r.cells[i] : "";
        if (widths[i] != 0) line += (i ? "  " : " ") + cell + std::string(widths[i] - cell.size(), ' ');
      }
      if (!r.reason.empty()) line += "  -- " + one_line(r.reason);
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
      for (const std::string& b : r.below) out += "      " + one_line(b) + "\n";
    }
  }

 private:
  std::vector<Row> rows_;
};

// A name for the common memory layouts, or empty.
std::string layout_name(const layout::Layout& l) {
  if (l.outputs() != 1) return {};
  std::string swizzle;
  if (const layout::Swizzle& s = l.swizzle(); !s.none())
    swizzle = " swizzle(" + std::to_string(s.bits) + "," + std::to_string(s.base) + "," +
              std::to_string(s.shift) + ")";
  const layout::Layout canonical = l.canonical();
  auto same_digits = [&](const layout::Layout& other) {
    return canonical.digits() == other.canonical().digits();
  };
  if (same_digits(layout::Layout::row_major(l.shape()))) return "row-major" + swizzle;
  if (same_digits(layout::Layout::column_major(l.shape()))) return "column-major" + swizzle;
  if (l.rank() < 2 || l.elements() > (int64_t{1} << 40)) return {};
  for (int64_t pad : {1, 2, 4, 8, 16, 32, 64})
    if (same_digits(layout::Layout::padded_row_major(l.shape(), pad)))
      return "row-major, rows padded by " + std::to_string(pad) + swizzle;
  return {};
}

std::string fragment_summary(const layout::Fragment& f) {
  std::string s = shape_text(f.shape()) + " over " + plural(f.threads(), "thread") + ", " +
                  plural(f.registers(), "register") + " each";
  if (f.replicas() > 1) s += ", " + std::to_string(f.replicas()) + " replicas";
  return s;
}

std::string kernel_line(const KernelSchedule& k) {
  std::string s = "kernel " + k.kernel + "  " + (k.threads ? plural(*k.threads, "thread") : "threads open");
  if (!k.raster) return one_line(s) + ", raster open\n";
  const RasterPlan& r = *k.raster;
  s += ", raster " + (r.order.empty() ? "open" : r.order) +
       (r.order == "grouped" ? " by " + std::to_string(r.group) : "");
  if (r.order == "by_die") s += " of " + std::to_string(r.dies) + ", grouped by " + std::to_string(r.group);
  if (r.order == "lpt")
    s += std::string(" along ") + (r.increasing.value_or(true) ? "decreasing" : "increasing") + " index " +
         std::to_string(r.dimension) + ", groups of " + std::to_string(r.group_iterations) +
         " trips, at least " + plural(r.group_tiles, "tile");
  if (!r.reason.empty()) s += " -- " + r.reason;
  return one_line(s) + "\n";
}

// What an entry has chosen, in the words of its fields.
template <class E>
struct ShownFields {
  const E& entry;
  std::string& text;

  template <class Field>
  void operator()(const Field& f) const {
    if constexpr (requires { f.shown; })
      if (f.shown) shown(f);
  }

 private:
  void add(const char* form, const std::string& value) const {
    std::string words = form;
    if (const size_t at = words.find('%'); at != std::string::npos) words.replace(at, 1, value);
    text += (text.empty() ? "" : ", ") + words;
  }
  void shown(const TextField<E>& f) const {
    if (!(entry.*f.at).empty()) add(f.shown, entry.*f.at);
  }
  template <size_t N>
  void shown(const WordField<E, N>& f) const {
    if (!(entry.*f.at).empty()) add(f.shown, entry.*f.at);
  }
  void shown(const OptionalText<E>& f) const {
    if (!(entry.*f.at).value_or("").empty()) add(f.shown, *(entry.*f.at));
  }
  void shown(const NumberField<E>& f) const {
    if (entry.*f.at != f.open && entry.*f.at > f.neutral) add(f.shown, std::to_string(entry.*f.at));
  }
  void shown(const FlagField<E>& f) const {
    if ((entry.*f.at).value_or(false)) add(f.shown, "");
  }
  void shown(const NamesField<E>& f) const {
    for (const std::string& v : entry.*f.at) add(f.shown, v);
  }
};

Table::Row op_row(const OpPlan& o) {
  std::string how;
  for_each_field<OpPlan>([&](const auto& field) {
    ShownFields<OpPlan>{o, how}(field);
    if (std::string_view(field.key) == "warps_n" && o.warps_m * o.warps_n > 1)
      how += (how.empty() ? "" : ", ") + ("warps " + std::to_string(o.warps_m)) + "x" +
             std::to_string(o.warps_n);
  });
  Table::Row row{{o.op, o.engine ? engine_name(*o.engine) : "open", how}, o.reason, {}};
  if (o.iteration) row.below = {fragment_summary(*o.iteration), o.iteration->to_text()};
  return row;
}

Table::Row value_row(const ValuePlan& v) {
  std::string what = "open", slots = v.slots <= 1 ? "" : plural(v.slots, "slot");
  Table::Row row;
  if (v.fragment) {
    what = "fragment " + fragment_summary(*v.fragment);
    row.below = {v.fragment->to_text()};
  } else if (v.memory) {
    std::string name = layout_name(*v.memory);
    what = "memory " + shape_text(v.memory->shape()) + (name.empty() ? "" : " " + name);
    if (name.empty()) row.below = {v.memory->to_text()};
  }
  row.cells = {v.value, origin_name(v.origin), slots, what};
  row.reason = v.reason;
  return row;
}

Table::Row loop_row(const LoopPlan& l) {
  std::string stages;
  for (const auto& [op, stage] : l.stages)
    stages += (stages.empty() ? "" : "  ") + std::to_string(stage) + ": " + op;
  std::string how;
  for_each_field<LoopPlan>(ShownFields<LoopPlan>{l, how});
  Table::Row row{{l.loop, plural(l.num_stages, "stage") + (how.empty() ? "" : ", " + how)}, l.reason, {}};
  if (!stages.empty()) row.below = {stages};
  return row;
}

Table::Row pipeline_row(const PipelinePlan& c) {
  std::string values;
  for (const std::string& v : c.values) values += (values.empty() ? "" : "  ") + v;
  std::string slots = c.slots <= 1 ? "" : plural(c.slots, "slot");
  if (c.parts > 1) slots += (slots.empty() ? "" : ", ") + plural(c.parts, "part");
  return {{c.name, "in " + c.loop, slots, values}, "", {}};
}

// The producer, what blocks walk over and when they may begin, where a schedule says so.
Table block_table(const KernelSchedule& k) {
  Table t;
  if (k.roles && k.roles->empty()) t.add({{"roles", "none"}, "", {}});
  for (const RolePlan& r : k.roles.value_or(std::vector<RolePlan>())) {
    const auto number = [](int64_t n, const char* what) { return n <= 0 ? std::string() : plural(n, what); };
    std::string ops;
    for (const std::string& op : r.ops) ops += (ops.empty() ? "" : "  ") + op;
    Table::Row row{{r.name, number(r.warps, "warp"), number(r.registers, "register")}, r.reason, {}};
    if (!ops.empty()) row.below = {ops};
    t.add(std::move(row));
  }
  if (k.persistence) {
    const PersistencePlan& w = *k.persistence;
    t.add({{"persistent",
            !w.persistent          ? "no"
            : w.order == "dynamic" ? w.order
                                   : "yes",
            w.skip_empty_tiles.value_or(false) ? "empty tiles skipped" : ""},
           w.reason,
           {}});
  }
  if (k.cluster && k.cluster->blocks > 1)
    t.add({{"cluster", plural(k.cluster->blocks, "block"), "along " + k.cluster->along},
           k.cluster->reason,
           {}});
  if (k.split && k.split->parts > 1)
    t.add(
        {{"split", plural(k.split->parts, "part"), "of " + k.split->loop + ", through a " + k.split->through},
         k.split->reason,
         {}});
  if (k.overlap) {
    std::string names;
    for (const std::string& name : k.overlap->along) names += (names.empty() ? "along " : ", ") + name;
    t.add({{"overlap", k.overlap->last_tiles ? "last tiles" : "no", names}, k.overlap->reason, {}});
  }
  if (k.launch) {
    std::string how, registers;
    if (k.launch->dependent) how = *k.launch->dependent ? "dependent" : "after the kernel before";
    for_each_field<LaunchPlan>(ShownFields<LaunchPlan>{*k.launch, registers});
    if (!how.empty() || !registers.empty()) t.add({{"launch", how, registers}, k.launch->reason, {}});
  }
  return t;
}

Table::Row conversion_row(const ConversionPlan& c) {
  return {
      {c.value, layout::conversion_name(c.kind), c.producer + " -> " + c.consumer, plural(c.cost, "cycle")},
      c.reason,
      {"from " + c.from.to_text(), "to   " + c.to.to_text()}};
}

void print_kernel(std::string& out, const KernelSchedule& k) {
  out += "\n" + kernel_line(k);
  Table ops, values, loops, pipelines, conversions, assumptions, memory, notes;
  for (const OpPlan& o : k.ops) ops.add(op_row(o));
  for (const ValuePlan& v : k.values) values.add(value_row(v));
  for (const LoopPlan& l : k.loops) loops.add(loop_row(l));
  for (const PipelinePlan& c : k.pipelines) pipelines.add(pipeline_row(c));
  for (const ConversionPlan& c : k.conversions) conversions.add(conversion_row(c));
  if (k.assumptions)
    for (const Assumption& a : *k.assumptions)
      assumptions.add({{a.param, "a multiple of " + std::to_string(a.multiple) +
                                     (a.most_bytes > 0 ? ", at most " + plural(a.most_bytes, "byte") : "")},
                       "",
                       {}});
  uint64_t end = 0;  // unsigned: a hand-written schedule may hold any sizes
  for (const MemoryPlan& m : k.memory) {
    uint64_t last = static_cast<uint64_t>(m.offset) + static_cast<uint64_t>(m.bytes);
    end = std::max(end, last);
    std::string what = m.owner;
    if (m.storage != Storage::value) what += std::string(" ") + storage_name(m.storage);
    if (!m.value.empty()) what += " of " + m.value;
    memory.add(
        {{what, "[" + std::to_string(m.offset) + ", " + std::to_string(last) + ")", plural(m.bytes, "byte")},
         "",
         {}});
  }
  for (const Note& n : k.notes) notes.add({{n.path, n.text}, "", {}});
  block_table(k).print(out, "block");
  ops.print(out, "ops");
  values.print(out, "values");
  loops.print(out, "loops");
  pipelines.print(out, "pipelines");
  conversions.print(out, "conversions");
  assumptions.print(out, "assumptions");
  memory.print(out, "memory  " + std::to_string(end) + " bytes");
  notes.print(out, "notes");
}

}  // namespace

std::string schedule_to_text(const Schedule& s) {
  std::string out = "schedule for " + (s.target.empty() ? "any target" : one_line(s.target));
  if (!s.program_hash.empty()) out += ", program " + one_line(s.program_hash);
  out += "\n";
  for (const KernelSchedule& k : s.kernels) print_kernel(out, k);
  return out;
}

}  // namespace tilegen::plan
