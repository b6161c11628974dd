#include "analysis/independent_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/iteration_dims.h"
#include "analysis/tensor_uses.h"
#include "check/expr_walk.h"
#include "check/index_form.h"
#include "ir/statement_paths.h"
#include "ops/element_view.h"
#include "ops/op.h"

namespace tilegen::analysis {

namespace {

using arith::Sum;
using ir::BufferId;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::StmtId;
using ir::VarId;

const char* const kCombinedTwice = "what it combines in memory would be combined twice";
constexpr int64_t kAlignedBytes = 16;  // what copies of several elements want of a row's beginning

class Finder {
 public:
  Finder(const ir::Program& p, int kernel, VarId index)
      : p_(p),
        kernel_(p.kernels[static_cast<size_t>(kernel)]),
        index_(index),
        paths_(p, kernel),
        forms_(p),
        expressions_(p),
        tensors_(p, kernel_) {}

  IndependentRows find() {
    do {
      changed_ = false;
      walk(kernel_.body);
    } while (changed_ && out_.refusal.empty());
    all_known_ = true;
    walk(kernel_.body);
    if (out_.refusal.empty() && !tensors_.writes()) refuse("it tells no rows of a tensor that is written");
    if (const auto found = tensors_.in_place()) refuse(found->first, found->second);
    out_.rows.assign(rows_.begin(), rows_.end());
    return std::move(out_);
  }

 private:
  void refuse(const std::string& why) {
    if (out_.refusal.empty()) out_.refusal = why;
  }
  void refuse(StmtId s, const std::string& why) { refuse(paths_[s.value] + ": " + why); }
  const std::string& name(BufferId b) const { return p_.buffer(b).name; }
  bool is_tensor(BufferId b) const { return p_.buffer(b).scope == ir::MemScope::global; }
  // The dimension of an on-chip tile that walks rows.
  std::optional<int> rows_of(BufferId b) const {
    const auto it = row_dim_.find(b);
    return it == row_dim_.end() ? std::nullopt : std::optional(it->second);
  }

  void walk(const ir::Block& block) {
    for (StmtId s : block) {
      if (!out_.refusal.empty()) return;
      const auto* loop = p_.as<ir::Loop>(s);
      if (const auto* op = p_.as<ir::TileOp>(s)) {
        tile_op(s, *op);
      } else if (loop && loop->kind != ir::LoopKind::parallel) {
        free_of_rows(s, loop->begin), free_of_rows(s, loop->extents[0]), free_of_rows(s, loop->condition);
        walk(loop->body);
      } else if (const auto* branch = p_.as<ir::Branch>(s)) {
        free_of_rows(s, branch->condition);
        walk(branch->then_body), walk(branch->else_body);
      } else {
        elements(s);
      }
    }
  }

  // The expression tells nothing of where the tile begins, and reads no row.
  void free_of_rows(StmtId s, ExprId root) {
    if (root.valid()) scan(s, root, VarId());
  }

  // Every number in the expression that differs between rows is that of a row, or of a row of a tile: `row`
  // is the variable that walks them, of `s`; invalid: there are none.
  void scan(StmtId s, ExprId root, VarId row) {
    std::set<ExprId> seen;
    std::vector<ExprId> pending{root};
    while (!pending.empty() && out_.refusal.empty()) {
      const ExprId id = pending.back();
      pending.pop_back();
      if (!id.valid() || !seen.insert(id).second) continue;
      const ExprNode& n = p_.exprs[id];
      if (n.op == ExprOp::load) {
        load(s, n.object, p_.exprs.indices(id), row, pending);
        continue;
      }
      if (n.op == ExprOp::var && (n.var() == index_ || (all_known_ && row.valid() && n.var() == row)))
        return refuse(s, "'" + p_.var(n.var()).name + "' tells rows of a tile apart");
      if (n.type == ir::DType::i64 && is_row(id, row)) {
        add_row(id, pending);
        continue;
      }
      pending.insert(pending.end(), {n.a, n.b, n.c});
    }
  }

  // index * tile + row + what is neither's.
  bool is_row(ExprId e, VarId row) {
    return row.valid() && forms_.coefficient(e, row) == 1 && takes_tile(forms_.coefficient(e, index_));
  }
  bool takes_tile(int64_t coefficient) {
    if (coefficient <= 0) return false;
    if (out_.tile == 0) out_.tile = coefficient;
    return coefficient == out_.tile;
  }
  // row and what is neither's: of a tile.
  bool is_own_row(ExprId e, VarId row) {
    return row.valid() && forms_.coefficient(e, row) == 1 && forms_.coefficient(e, index_) == 0;
  }
  void add_row(ExprId e, std::vector<ExprId>& pending) {
    rows_.insert(e);
    push_atoms(e, pending);
  }
  void push_atoms(ExprId e, std::vector<ExprId>& pending) {
    for (const arith::Term& t : forms_.linear(e).terms)
      if (p_.exprs[t.atom].op != ExprOp::var) pending.push_back(t.atom);
  }

  void load(StmtId s, BufferId b, std::span<const ExprId> indices, VarId row, std::vector<ExprId>& pending) {
    const std::optional<int> dim = rows_of(b);
    bool found = false;
    for (size_t d = 0; d < indices.size(); ++d) {
      const bool of_tile = dim && d == static_cast<size_t>(*dim);
      if (is_tensor(b) && is_row(indices[d], row)) {
        add_row(indices[d], pending);
        aligned(s, b, d);
      } else if (of_tile && is_own_row(indices[d], row)) {
        found = true;
        push_atoms(indices[d], pending);
      } else {
        pending.push_back(indices[d]);
      }
    }
    if (dim && !found) refuse(s, "it reads other rows of '" + name(b) + "' than its own");
    if (is_tensor(b)) tensors_.read(s, b, indices);
  }

  // A tensor's dense dimension: what moves several elements at once wants to begin where it does without.
  void aligned(StmtId s, BufferId b, size_t d) {
    if (d + 1 != p_.buffer(b).shape.size()) return;
    const int64_t granule = std::max<int64_t>(1, kAlignedBytes / ir::dtype_bytes(p_.buffer(b).type));
    if (out_.tile % granule != 0 || !is_multiple(p_, p_.buffer(b).shape[d], granule))
      refuse(s, "rows of '" + name(b) + "' lie beside each other in memory and may begin at no multiple of " +
                    std::to_string(kAlignedBytes) + " bytes");
  }
  // What a store or an operation writes.
  struct RowAccess {
    BufferId buffer;
    int dim = -1;                  // that walks rows; -1: none does
    int64_t rows = 0;              // of the access
    std::optional<int64_t> first;  // beyond the tile's first; nothing: not known
    ExprId index;
  };

  // ---- element-wise loops and stores ----

  void elements(StmtId s) {
    std::vector<VarId> vars;
    std::vector<int64_t> extents;
    ir::Block body{s};
    if (const auto* loop = p_.as<ir::Loop>(s)) {
      body = loop->body;
      vars = loop->vars;
      extents.resize(vars.size());
      for (size_t d = 0; d < vars.size(); ++d) p_.exprs.is_const_int(loop->extents[d], &extents[d]);
    }
    VarId row;
    int64_t extent = 0;
    for (size_t d = 0; d < vars.size(); ++d) {
      if (!walks_rows(body, vars[d])) continue;
      if (row.valid()) return refuse(s, "two of its variables walk rows");
      row = vars[d], extent = extents[d];
    }
    element_block(s, body, row, extent);
  }

  // Whether a row of a tensor or of a tile has the variable.
  bool walks_rows(const ir::Block& body, VarId v) {
    bool found = false;
    const auto indices_of = [&](BufferId b, std::span<const ExprId> indices) {
      const std::optional<int> dim = rows_of(b);
      for (size_t d = 0; d < indices.size(); ++d)
        if (forms_.coefficient(indices[d], v) != 0)
          found =
              found || (dim && d == static_cast<size_t>(*dim)) || forms_.coefficient(indices[d], index_) != 0;
    };
    const auto expression = [&](ExprId root) {
      expressions_.start();
      expressions_.visit(root, [&](ExprId id, const ExprNode& n) {
        if (n.op == ExprOp::load) indices_of(n.object, p_.exprs.indices(id));
        if (n.type == ir::DType::i64 && forms_.coefficient(id, v) != 0)
          found = found || forms_.coefficient(id, index_) != 0;
      });
    };
    ir::for_each_statement(p_, body, [&](StmtId s, int) {
      if (const auto* store = p_.as<ir::Store>(s)) {
        ir::visit_exprs(*store, expression);
        indices_of(store->buffer, store->indices);
      } else if (const auto* branch = p_.as<ir::Branch>(s)) {
        expression(branch->condition);
      }
    });
    return found;
  }

  void element_block(StmtId at, const ir::Block& body, VarId row, int64_t extent) {
    for (StmtId s : body) {
      if (!out_.refusal.empty()) return;
      if (const auto* branch = p_.as<ir::Branch>(s)) {
        scan(at, branch->condition, row);
        element_block(at, branch->then_body, row, extent);
        element_block(at, branch->else_body, row, extent);
      } else if (const auto* store = p_.as<ir::Store>(s)) {
        element_store(at, *store, row, extent);
      } else {
        return refuse(at, "it has a loop inside");
      }
    }
  }

  void element_store(StmtId at, const ir::Store& store, VarId row, int64_t extent) {
    if (store.atomic) return refuse(at, kCombinedTwice);
    scan(at, store.value, row);
    RowAccess access;
    access.buffer = store.buffer;
    for (size_t d = 0; d < store.indices.size(); ++d) {
      const ExprId index = store.indices[d];
      const Sum& sum = forms_.linear(index);
      const bool tensor_row = is_tensor(store.buffer) && is_row(index, row);
      const bool tile_row = !is_tensor(store.buffer) && is_own_row(index, row);
      if (!tensor_row && !tile_row) {
        scan(at, index, row);
        continue;
      }
      if (access.dim >= 0) return refuse(at, "two dimensions of '" + name(store.buffer) + "' are its rows");
      access.dim = static_cast<int>(d);
      access.rows = extent;
      access.first = sum.terms.size() == (tensor_row ? 2u : 1u) ? std::optional(sum.constant) : std::nullopt;
      access.index = index;
    }
    write(at, access, row.valid());
    if (is_tensor(store.buffer)) tensors_.write(store.buffer, store.indices);
  }

  // ---- tile operations ----

  void tile_op(StmtId s, const ir::TileOp& op) {
    if (ops::layout_rule(op).atomic) return refuse(s, kCombinedTwice);
    const IterationDims operands = iteration_dims(p_, op);
    free_of_rows(s, op.value);
    std::vector<std::optional<int>> row_dims(op.operands.size());
    int row = -1;  // the iteration dimension that walks rows
    const auto is = [&](int dim) {
      if (dim < 0) return refuse(s, "it has one row of a tile, or several in one dimension");
      if (row >= 0 && row != dim) return refuse(s, "two of its dimensions walk rows");
      row = dim;
    };
    for (size_t o = 0; o < op.operands.size() && out_.refusal.empty(); ++o) {
      const ir::Region& r = op.operands[o];
      row_dims[o] = rows_of(r.buffer);
      for (size_t d = 0; d < r.offsets.size(); ++d) {
        const int64_t coeff = forms_.coefficient(r.offsets[d], index_);
        if (!is_tensor(r.buffer) || coeff == 0) {
          free_of_rows(s, r.offsets[d]);
          continue;
        }
        if (!takes_tile(coeff))
          return refuse(s, "'" + p_.var(index_).name + "' tells rows of another number");
        if (row_dims[o]) return refuse(s, "two dimensions of '" + name(r.buffer) + "' are its rows");
        row_dims[o] = static_cast<int>(d);
        std::vector<ExprId> rest;
        add_row(r.offsets[d], rest);
        for (ExprId e : rest) free_of_rows(s, e);
        aligned(s, r.buffer, d);
      }
      if (row_dims[o]) is(operands.dim_of[o][static_cast<size_t>(*row_dims[o])]);
    }
    if (row < 0 || !out_.refusal.empty()) return note_tensors(s, op, operands);
    for (const std::vector<int>& dims : operands.dim_of)
      if (std::find(dims.begin(), dims.end(), ops::kIrregularIndex) != dims.end())
        return refuse(s, "a dimension of it is several of another");
    if (row == operands.reduced) return refuse(s, "it combines the rows of a tile");
    for (size_t o = 0; o < op.operands.size() && out_.refusal.empty(); ++o) {
      const ir::Region& r = op.operands[o];
      const auto& dims = operands.dim_of[o];
      const auto at = std::find(dims.begin(), dims.end(), row);
      const int walked = at == dims.end() ? -1 : static_cast<int>(at - dims.begin());
      if (all_known_ && operands.reads[o] && walked >= 0 && row_dims[o] != walked)
        return refuse(s, "rows of '" + name(r.buffer) + "' are told by their place in it");
      if (!operands.writes[o]) continue;
      RowAccess access{r.buffer, walked, 0, std::nullopt, ExprId()};
      if (walked >= 0) {
        const Sum& sum = forms_.linear(r.offsets[static_cast<size_t>(walked)]);
        access.rows = r.extents[static_cast<size_t>(walked)];
        access.index = r.offsets[static_cast<size_t>(walked)];
        if (sum.terms.size() == (is_tensor(r.buffer) ? 1u : 0u)) access.first = sum.constant;
      }
      write(s, access, true);
    }
    note_tensors(s, op, operands);
  }

  void note_tensors(StmtId s, const ir::TileOp& op, const IterationDims& operands) {
    for (size_t o = 0; o < op.operands.size(); ++o) {
      const ir::Region& r = op.operands[o];
      if (!is_tensor(r.buffer)) continue;
      if (operands.reads[o]) tensors_.read(s, r.buffer, r.offsets);
      if (operands.writes[o]) tensors_.write(r.buffer, r.offsets);
    }
  }

  // All rows of a tile are written, or none.
  void write(StmtId s, const RowAccess& a, bool has_rows) {
    if (is_tensor(a.buffer)) {
      if (a.dim < 0)
        return refuse(
            s, "'" + name(a.buffer) + "' is written where '" + p_.var(index_).name + "' tells no row of it");
      rows_.insert(a.index);
      aligned(s, a.buffer, static_cast<size_t>(a.dim));
      if (a.first != 0 || a.rows != out_.tile)
        return refuse(s, "'" + name(a.buffer) + "' is written in other parts than tiles of " +
                             std::to_string(out_.tile) + " rows");
      const ExprId extent = p_.buffer(a.buffer).shape[static_cast<size_t>(a.dim)];
      if (!out_.extent.valid()) out_.extent = extent;
      if (out_.extent != extent) refuse(s, "the tensors that are written have different numbers of rows");
      return;
    }
    const std::optional<int> known = rows_of(a.buffer);
    if (!known && !has_rows) return;
    if (a.dim < 0) return refuse(s, "it makes one row of '" + name(a.buffer) + "' of several");
    if (known && *known != a.dim) return refuse(s, "two dimensions of '" + name(a.buffer) + "' are its rows");
    if (a.first != 0 || a.rows != p_.tile_shape(a.buffer)[static_cast<size_t>(a.dim)])
      return refuse(s, "it writes some rows of '" + name(a.buffer) + "'");
    if (!known) {
      row_dim_[a.buffer] = a.dim;
      changed_ = true;
    }
  }

  const ir::Program& p_;
  const ir::Kernel& kernel_;
  const VarId index_;
  const ir::KernelPaths paths_;
  check::IndexForms forms_;
  check::ExprWalk expressions_;
  IndependentRows out_;
  bool changed_ = false, all_known_ = false;  // of row_dim_
  std::map<BufferId, int> row_dim_;
  std::set<ExprId> rows_;
  TensorUses tensors_;
};

}  // namespace

bool is_multiple(const ir::Program& p, ir::ExprId size, int64_t of) {
  check::IndexForms forms(p);
  const Sum& sum = forms.linear(size);
  int64_t all = sum.constant;
  for (const arith::Term& t : sum.terms) {
    const ExprNode& n = p.exprs[t.atom];
    all = arith::gcd_of(all, t.coeff * (n.op == ExprOp::var ? p.var(n.var()).divisor : 1));
  }
  return all % of == 0;
}

IndependentRows independent_rows(const ir::Program& p, int kernel, VarId block_index) {
  return Finder(p, kernel, block_index).find();
}

}  // namespace tilegen::analysis
