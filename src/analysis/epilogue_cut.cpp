#include "analysis/epilogue_cut.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/kernel_ops.h"
#include "analysis/loads.h"
#include "analysis/split_loop.h"
#include "arith/prove.h"
#include "ir/statement_paths.h"
#include "ir/store_parts.h"
#include "ops/op.h"

namespace tilegen::analysis {

namespace {

using ir::BufferId;
using ir::ExprId;
using ir::StmtId;
using ir::VarId;

class Finder {
 public:
  Finder(const ir::Program& p, int kernel, StmtId loop, int64_t parts, const KernelOps* ops)
      : p_(p),
        e_(p.exprs),
        kernel_(p.kernels[static_cast<size_t>(kernel)]),
        collected_(ops ? KernelOps() : collect_kernel_ops(p, kernel)),
        ops_(ops ? *ops : collected_),
        paths_(p, kernel),
        parts_(parts) {
    const auto behind = std::find(kernel_.body.begin(), kernel_.body.end(), loop);
    if (behind != kernel_.body.end()) after_.assign(behind + 1, kernel_.body.end());
    for (ValueId v : split_loop(p, kernel, ops_, loop).sums) cut_.sums.push_back(ops_.values[v].buffer);
    ir::for_each_statement(p, after_, [&](StmtId s, int) { behind_.insert(s); });
    for (const KernelOp& op : ops_.ops)
      for (const OpAccess& a : op.accesses)
        if (!behind_.count(op.stmt)) used_before_.insert(a.buffer);
    for (const auto& [where, value] : ops_.scalar_reads)
      if (!behind_.count(where.first)) used_before_.insert(where.second);
  }

  // Along the last dimension that can be cut.
  EpilogueCut find() {
    EpilogueCut refused;
    const size_t rank = cut_.sums.empty() ? 0 : p_.tile_shape(cut_.sums.front()).size();
    for (size_t back = 1; back <= rank; ++back) {
      std::string why = along(static_cast<int>(back));
      if (why.empty()) return std::move(cut_);
      if (refused.refusal.empty()) refused.refusal = std::move(why);
    }
    if (rank == 0) refused.refusal = "the loop leaves no tile";
    return refused;
  }

 private:
  std::string name(BufferId b) const { return "'" + p_.buffer(b).name + "'"; }
  bool on_chip(BufferId b) const { return p_.buffer(b).scope != ir::MemScope::global; }

  std::string along(int back) {
    cut_.tiles.clear(), cut_.width = 0;
    for (BufferId sum : cut_.sums) {
      const auto dim = static_cast<int>(p_.tile_shape(sum).size()) - back;
      if (dim < 0) return name(sum) + " has fewer dimensions than other sums";
      if (std::string why = cut_tile(sum, dim); !why.empty()) return why;
    }
    for (size_t known = 0; known != cut_.tiles.size();) {
      known = cut_.tiles.size();
      cut_.loops.clear(), cut_.regions.clear(), read_.clear(), written_.clear();
      for (StmtId s : after_)
        if (std::string why = statement(s); !why.empty()) return why;
    }
    for (const auto& [where, value] : ops_.scalar_reads)
      if (behind_.count(where.first) && cut_.tiles.count(where.second))
        return paths_[where.first.value] + " reads an element of " + name(where.second) + " in every thread";
    for (const auto& [tensor, place] : written_)
      for (const auto& [other, at] : read_)
        if (other == tensor && at != place)
          return "tensor " + name(tensor) + " is read at other places than it is written";
    return "";
  }

  std::string cut_tile(BufferId b, int dim) {
    if (const auto it = cut_.tiles.find(b); it != cut_.tiles.end())
      return it->second == dim ? "" : name(b) + " would be cut along two dimensions";
    const int64_t extent = p_.tile_shape(b)[static_cast<size_t>(dim)];
    if (extent % parts_ != 0)
      return std::to_string(parts_) + " blocks do not divide the " + std::to_string(extent) + " of " +
             name(b);
    if (cut_.width != 0 && extent / parts_ != cut_.width)
      return name(b) + " has another extent than the sums";
    if (!p_.buffer(b).annotations.empty()) return "the layout of " + name(b) + " is annotated";
    cut_.width = extent / parts_;
    cut_.tiles[b] = dim;
    return "";
  }

  std::string statement(StmtId s) {
    const auto* loop = p_.as<ir::Loop>(s);
    if (loop && loop->kind == ir::LoopKind::parallel) return elements(s, *loop);
    const auto* op = p_.as<ir::TileOp>(s);
    if (!op) return paths_[s.value] + " is no loop over elements, copy or fill";
    if (ops::is_fill(*op)) return whole(s, op->operands[0]);
    if (ops::is_transfer(*op)) return transfer(s, *op);
    for (const ir::Region& r : op->operands)
      if (cut_.tiles.count(r.buffer) || !on_chip(r.buffer))
        return paths_[s.value] + " is no loop over elements, copy or fill";
    return "";
  }

  // Of a tile that is cut: all of it.
  std::string whole(StmtId s, const ir::Region& r) const {
    if (!cut_.tiles.count(r.buffer)) return on_chip(r.buffer) ? "" : paths_[s.value] + " fills a tensor";
    const bool all = r.extents == p_.tile_shape(r.buffer) &&
                     std::all_of(r.offsets.begin(), r.offsets.end(), [&](ExprId offset) {
                       int64_t at = -1;
                       return e_.is_const_int(offset, &at) && at == 0;
                     });
    return all ? "" : paths_[s.value] + " takes a part of " + name(r.buffer);
  }

  std::string transfer(StmtId s, const ir::TileOp& op) {
    const ir::Region* of[] = {&op.operands[0], &op.operands[1]};
    int cut = cut_.tiles.count(of[0]->buffer) ? 0 : cut_.tiles.count(of[1]->buffer) ? 1 : -1;
    for (const ir::Region& r : op.operands)
      for (ExprId offset : r.offsets) note_whole_reads(offset);
    if (cut < 0) {
      note_place(of[0]->buffer, false, kWhole, ExprId());
      return on_chip(of[1]->buffer) ? "" : paths_[s.value] + " stores what is no sum";
    }
    const ir::Region &tile = *of[cut], &other = *of[1 - cut];
    if (std::string why = whole(s, tile); !why.empty()) return why;
    const int dim = opposite(tile, other, cut_.tiles[tile.buffer]);
    if (dim < 0) return paths_[s.value] + " does not move elements dimension by dimension";
    if (cut_.tiles.count(other.buffer) || (on_chip(other.buffer) && !used_before_.count(other.buffer))) {
      if (std::string why = cut_tile(other.buffer, dim); !why.empty()) return why;
      return whole(s, other);
    }
    if (on_chip(other.buffer) && (cut == 0 || p_.buffer(other.buffer).scope != ir::MemScope::shared))
      return paths_[s.value] + " moves a share of " + name(other.buffer) + ", which is used before";
    cut_.regions[s] = {1 - cut, dim};
    note_place(other.buffer, cut == 0, dim, other.offsets[static_cast<size_t>(dim)]);
    return "";
  }

  // The dimension of `other` that goes with that of `tile`, of those longer than 1 in turn.
  static int opposite(const ir::Region& tile, const ir::Region& other, int dim) {
    const auto longer = [](const ir::Region& r) {
      std::vector<int> dims;
      for (size_t d = 0; d < r.extents.size(); ++d)
        if (r.extents[d] > 1) dims.push_back(static_cast<int>(d));
      return dims;
    };
    const std::vector<int> a = longer(tile), b = longer(other);
    if (a.size() != b.size()) return -1;
    int found = -1;
    for (size_t i = 0; i < a.size(); ++i) {
      if (tile.extents[static_cast<size_t>(a[i])] != other.extents[static_cast<size_t>(b[i])]) return -1;
      if (a[i] == dim) found = b[i];
    }
    return found;
  }

  void note_place(BufferId tensor, bool written, int dim, ExprId rest) {
    int64_t at = -1;
    if (rest.valid() && e_.is_const_int(rest, &at) && at == 0) rest = ExprId();
    if (!on_chip(tensor)) (written ? written_ : read_).insert({tensor, {dim, rest}});
  }

  struct Element {
    BufferId buffer;
    std::vector<ExprId> indices;
    bool written;
  };

  static constexpr int kWhole = -1;  // in the place of a dimension: every share reads it
  void note_whole_reads(ExprId root) {
    std::vector<Element> loads;
    collect_loads(root, loads);
    for (const Element& x : loads) note_place(x.buffer, false, kWhole, ExprId());
  }

  std::string elements(StmtId s, const ir::Loop& loop) {
    std::vector<Element> all;
    for (StmtId inner : loop.body)
      if (std::string why = collect(s, inner, all); !why.empty()) return why;
    VarId along;
    for (const Element& x : all) {
      const auto tile = cut_.tiles.find(x.buffer);
      if (tile == cut_.tiles.end()) continue;
      const VarId v = index_var(loop, x, tile->second);
      if (!v.valid() || (along.valid() && v != along))
        return paths_[s.value] + " reads " + name(x.buffer) + " across its elements";
      along = v;
    }
    for (const Element& x : all)
      if (std::string why = along.valid() ? of_share(s, loop, along, x) : beside(s, x); !why.empty())
        return why;
    if (along.valid()) cut_.loops[s] = along;
    return "";
  }

  std::string beside(StmtId s, const Element& x) {
    if (!x.written) note_place(x.buffer, false, kWhole, ExprId());
    return x.written && !on_chip(x.buffer) ? paths_[s.value] + " stores what is no sum" : "";
  }

  // Once the loop goes along `along` for the elements of its share alone.
  std::string of_share(StmtId s, const ir::Loop& loop, VarId along, const Element& x) {
    int dim = -1, dims = 0;
    for (size_t d = 0; d < x.indices.size(); ++d)
      if (mentions(x.indices[d], along)) dim = static_cast<int>(d), ++dims;
    if (cut_.tiles.count(x.buffer))
      return dims == 1 ? "" : paths_[s.value] + " reads " + name(x.buffer) + " across its elements";
    if (!on_chip(x.buffer)) {
      const auto at = static_cast<size_t>(std::max(dim, 0));
      const auto rest = dims == 1 ? beside_var(x.indices[at], along) : std::nullopt;
      if (x.written && !rest)
        return paths_[s.value] + " stores to " + name(x.buffer) + " other than element by element";
      note_place(x.buffer, x.written, dim, rest.value_or(x.indices.empty() ? ExprId() : x.indices[at]));
      return "";
    }
    if (dims == 1 && !used_before_.count(x.buffer) && index_var(loop, x, dim) == along)
      return cut_tile(x.buffer, dim);
    const bool memory = p_.buffer(x.buffer).scope == ir::MemScope::shared;
    if (!x.written && (dims == 0 || (memory && used_before_.count(x.buffer)))) return "";
    return paths_[s.value] + " uses " + name(x.buffer) + " other than element by element";
  }

  std::string collect(StmtId loop, StmtId s, std::vector<Element>& all) {
    if (const auto* branch = p_.as<ir::Branch>(s)) {
      collect_loads(branch->condition, all);
      for (const ir::Block* body : {&branch->then_body, &branch->else_body})
        for (StmtId inner : *body)
          if (std::string why = collect(loop, inner, all); !why.empty()) return why;
      return "";
    }
    const auto* store = p_.as<ir::Store>(s);
    if (!store || store->atomic) return paths_[loop.value] + " changes elements in an order of its own";
    all.push_back({store->buffer, store->indices, true});
    ir::visit_exprs(*store, [&](ExprId e) { collect_loads(e, all); });
    return "";
  }

  void collect_loads(ExprId root, std::vector<Element>& all) const {
    any_load(e_, root, [&](ExprId load, const ir::ExprNode& n) {
      const auto indices = e_.indices(load);
      all.push_back({n.object, {indices.begin(), indices.end()}, false});
      return false;
    });
  }

  // The index is a variable of the loop that walks all of the tile's dimension.
  VarId index_var(const ir::Loop& loop, const Element& x, int dim) const {
    const ir::ExprNode n = e_[x.indices[static_cast<size_t>(dim)]];
    if (n.op != ir::ExprOp::var) return {};
    const auto at = std::find(loop.vars.begin(), loop.vars.end(), n.var());
    int64_t extent = 0;
    if (at == loop.vars.end() ||
        !e_.is_const_int(loop.extents[static_cast<size_t>(at - loop.vars.begin())], &extent) ||
        extent != p_.tile_shape(x.buffer)[static_cast<size_t>(dim)])
      return {};
    return n.var();
  }

  // What is added to the variable, invalid for nothing; or the index is no such sum.
  std::optional<ExprId> beside_var(ExprId index, VarId v) const {
    const ir::ExprNode n = e_[index];
    const auto is_var = [&](ExprId e) { return e_[e].op == ir::ExprOp::var && e_[e].var() == v; };
    if (is_var(index)) return ExprId();
    if (n.op != ir::ExprOp::add) return std::nullopt;
    if (is_var(n.a) && !mentions(n.b, v)) return n.b;
    if (is_var(n.b) && !mentions(n.a, v)) return n.a;
    // Sums lean to either side.
    const ExprId inner = mentions(n.a, v) ? n.a : n.b, other = inner == n.a ? n.b : n.a;
    if (mentions(other, v) || !beside_var(inner, v)) return std::nullopt;
    return index;
  }

  bool mentions(ExprId root, VarId v) const { return root.valid() && arith::depends_on(e_, root, v); }

  const ir::Program& p_;
  const ir::ExprPool& e_;
  const ir::Kernel& kernel_;
  const KernelOps collected_;
  const KernelOps& ops_;
  const ir::KernelPaths paths_;
  const int64_t parts_;
  ir::Block after_;
  std::set<StmtId> behind_;
  std::set<BufferId> used_before_;
  EpilogueCut cut_;
  // Of tensors: a dimension or kWhole, and what the cut index is added to there.
  std::set<std::pair<BufferId, std::pair<int, ExprId>>> read_, written_;
};

}  // namespace

EpilogueCut epilogue_cut(const ir::Program& p, int kernel, StmtId loop, int64_t parts, const KernelOps* ops) {
  return Finder(p, kernel, loop, parts, ops).find();
}

}  // namespace tilegen::analysis
