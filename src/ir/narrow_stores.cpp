#include "ir/narrow_stores.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/expr_nodes.h"
#include "ir/packed_index.h"
#include "ir/store_parts.h"
#include "ir/unsigned_types.h"
#include "ir/view_operands.h"
#include "ir/view_places.h"

namespace tilegen::ir {
namespace {

class NarrowStores : public ViewPlaces {
 public:
  using ViewPlaces::ViewPlaces;

  std::vector<Diagnostic> run() {
    struct Found {
      StmtId store;
      std::vector<StmtId> around;
    };
    for (const Kernel& k : p_.kernels) {
      kernel_ = k.name;
      std::vector<Found> found;
      std::vector<StmtId> path;
      for_each_statement(p_, k.body, [&](StmtId s, int depth) {
        path.resize(static_cast<size_t>(depth));
        path.push_back(s);
        const auto* store = p_.as<Store>(s);
        if (store && is_view(store->buffer)) found.push_back({s, {path.begin(), path.end() - 1}});
      });
      for (const Found& f : found) {
        location_ = p_.stmts[f.store.value].location;
        if (errors_.empty()) resolve(f.store, f.around);
      }
    }
    insert_around(p_, around_);
    return std::move(errors_);
  }

 private:
  // A store of part `number` of the element of `of` at `indices`.
  struct Part {
    StmtId stmt;
    BufferId of;
    std::vector<ExprId> indices;
    ExprId number, value;
    int bits = 0;  // of the part
  };
  // A parallel loop each of whose iterations has become `ratio` of those that were written.
  struct Merged {
    VarId var;  // as written
    int64_t ratio = 0;
    StmtId parts;  // the loop over them
    VarId iteration, part;
  };

  void resolve(StmtId s, const std::vector<StmtId>& around) {
    const Store store = *p_.as<Store>(s);
    const BufferId of = draft_.views.at(store.buffer).of;
    const DType narrow = p_.buffer(store.buffer).type;
    const int64_t ratio = width_ratio(narrow, p_.buffer(of).type);
    const ExprId at = named_out(store.indices.back());
    const PackedIndex::Split place = PackedIndex(p_).split(at, ratio);
    ExprPool& e = p_.exprs;
    Part part{s, of, store.indices, {}, store.value, dtype_bits(narrow)};
    for (ExprId& index : part.indices) index = named_out(index);

    size_t inner = around.size();  // the parallel loop, or block of threads
    while (inner > 0 && !is_parallel(around[inner - 1])) --inner;
    const bool in_threads = inner > 0 && moves_alone(around[inner - 1]);
    const std::set<VarId> counts = variables(place.rest);
    const VarId by = e[place.rest].op == ExprOp::var ? e[place.rest].var() : VarId();
    part.indices.back() = place.times;

    if (inner > 0 && by.valid() && counts_merged(around[inner - 1], by, ratio) && !in_threads &&
        !named(part.indices, by)) {
      const auto merged = merge(around[inner - 1], by, ratio);
      if (!merged) return refuse(store, ratio);
      part.indices.back() = IndexMaker(e).add(place.times, e.var(merged->iteration));
      part.number = e.var(merged->part);
      if (inner == around.size() && may_join(part, merged->parts)) return join(part, merged->parts);
      return is_tensor(of) ? refuse(store, ratio) : put_in(part);
    }
    const StmtId loop = around.empty() ? StmtId() : around.back();
    part.number = place.rest;
    if (inner > 0 && inner < around.size() && by.valid() && counts_parts(loop, by, ratio) &&
        !named(part.indices, by) && may_join(part, loop))
      return join(part, loop);
    const bool alike =
        std::all_of(counts.begin(), counts.end(), [&](VarId v) { return is_serial(around, v); });
    if (!alike || is_tensor(of) || !DraftExprs(p_).reads(place.rest).empty()) return refuse(store, ratio);
    part.number = IndexMaker(e).mod(place.rest, e.const_int(ratio));
    part.indices.back() = IndexMaker(e).add(place.times, IndexMaker(e).div(place.rest, e.const_int(ratio)));
    put_in(part);
  }

  // Names that are not assigned again as what they stand for, where that is no memory.
  ExprId named_out(ExprId root) {
    for (int depth = 0; depth < 16; ++depth) {
      std::map<VarId, ExprId> values;
      for (VarId v : variables(root)) {
        const auto name = draft_.temporaries.find(v);
        if (name == draft_.temporaries.end() || name->second || is_merged(v)) continue;
        for (const auto& [s, assignment] : draft_.assignments)
          if (assignment.var == v && !draft_.exchanges.contains(s) &&
              DraftExprs(p_).reads(assignment.value).empty())
            values[v] = assignment.value;
      }
      if (values.empty()) break;
      root = Names(p_.exprs, values).rewrite(root);
    }
    return root;
  }
  bool is_merged(VarId v) const {
    return std::any_of(merged_.begin(), merged_.end(), [&](const auto& m) { return m.second.var == v; });
  }
  class Names : public ExprRewriter {
   public:
    Names(ExprPool& e, const std::map<VarId, ExprId>& values) : ExprRewriter(e, e), values_(values) {}

   protected:
    ExprId rewrite_var(const ExprNode& n) override {
      const auto it = values_.find(n.var());
      return it != values_.end() ? it->second : to_->var(n.var(), n.type);
    }

   private:
    const std::map<VarId, ExprId>& values_;
  };
  std::set<VarId> variables(ExprId root) const {
    std::set<VarId> vars;
    ExprNodes nodes(p_.exprs, root);
    while (const ExprId at = nodes.next())
      if (p_.exprs[at].op == ExprOp::var) vars.insert(p_.exprs[at].var());
    return vars;
  }
  bool named(const std::vector<ExprId>& indices, VarId v) const {
    return std::any_of(indices.begin(), indices.end(), [&](ExprId e) { return variables(e).contains(v); });
  }

  bool is_parallel(StmtId s) const {
    const auto* loop = p_.as<Loop>(s);
    return loop && loop->kind == LoopKind::parallel;
  }
  // Its iterations are threads, or what a copy moves.
  bool moves_alone(StmtId s) const {
    return draft_.threads.contains(s) || draft_.async_copies.contains(s) || draft_.bulk_copies.contains(s);
  }
  // The same number for all iterations of the parallel loop at a time: of loops around and inside, and dims.
  bool is_serial(const std::vector<StmtId>& around, VarId v) const {
    if (p_.var(v).kind == VarKind::dim) return true;
    return std::any_of(around.begin(), around.end(), [&](StmtId s) {
      const auto* loop = p_.as<Loop>(s);
      return loop && loop->kind != LoopKind::parallel && loop->vars.front() == v && !loop->condition.valid();
    });
  }
  bool counts_merged(StmtId loop, VarId v, int64_t ratio) const {
    if (const auto it = merged_.find(loop); it != merged_.end() && it->second.var == v) return true;
    const Loop& l = *p_.as<Loop>(loop);
    for (size_t d = 0; d < l.vars.size(); ++d)
      if (l.vars[d] == v) return constant(l.extents[d]).value_or(1) % ratio == 0;
    return false;
  }
  // It runs once for each part of an element.
  bool counts_parts(StmtId s, VarId v, int64_t ratio) const {
    const auto* loop = p_.as<Loop>(s);
    return loop && loop->vars.front() == v && !loop->condition.valid() && constant(loop->begin) == 0 &&
           constant(loop->extents.front()) == ratio;
  }

  const Merged* merge(StmtId s, VarId v, int64_t ratio) {
    if (const auto it = merged_.find(s); it != merged_.end())
      return it->second.var == v && it->second.ratio == ratio ? &it->second : nullptr;
    ExprPool& e = p_.exprs;
    const DType index = p_.var(v).type;
    Merged m{v, ratio, {}, new_name(p_.var(v).name, index), new_name("part", index)};
    std::swap(p_.vars[v.value].name, p_.vars[m.iteration.value].name);
    draft_.temporaries[v] = false;
    draft_.loops_in_parallel = true;
    const StmtId name = assigned(v, e.add(e.mul(e.var(m.iteration, index), ratio), e.var(m.part, index)));
    Loop parts{LoopKind::unroll, {m.part}, e.const_int(0), {e.const_int(ratio)}};
    parts.body = {name};
    const Block& body = p_.as<Loop>(s)->body;
    parts.body.insert(parts.body.end(), body.begin(), body.end());
    m.parts = added(std::move(parts));
    auto& loop = std::get<Loop>(p_.stmts[s.value].node);
    loop.body = {m.parts};
    const auto d = static_cast<size_t>(std::find(loop.vars.begin(), loop.vars.end(), v) - loop.vars.begin());
    loop.vars[d] = m.iteration;
    loop.extents[d] = e.const_int(*constant(loop.extents[d]) / ratio);
    bounds_.add(m.iteration, loop.extents[d]);
    bounds_.add(m.part, e.const_int(ratio));
    return &merged_.emplace(s, m).first->second;
  }

  // The element may be put together over the iterations of the loop and stored behind it: nothing there reads
  // it once its part is written, and where it lies is known outside.
  bool may_join(const Part& part, StmtId loop) {
    DraftExprs exprs(p_);
    for (ExprId index : part.indices) {
      if (!exprs.reads(index).empty()) return false;
      for (VarId v : variables(index))
        if (draft_.temporaries.contains(v)) return false;
    }
    const BufferId tile = tile_of(part.of);
    bool behind = false, reads = false;
    for_each_statement(p_, p_.as<Loop>(loop)->body, [&](StmtId s, int) {
      if (behind) visit_reads(s, [&](ExprId e) { reads = reads || exprs.reads(e).contains(tile); });
      behind = behind || s == part.stmt;
    });
    const Block& body = p_.as<Loop>(loop)->body;
    return !reads && std::find(body.begin(), body.end(), part.stmt) != body.end();
  }
  template <class Visit>
  void visit_reads(StmtId s, Visit&& visit) {
    if (const auto it = draft_.assignments.find(s); it != draft_.assignments.end()) visit(it->second.value);
    if (const auto* store = p_.as<Store>(s)) visit_exprs(*store, visit);
    if (const auto* branch = p_.as<Branch>(s); branch && branch->condition.valid()) visit(branch->condition);
  }

  // Numbers that elements are put together as: of packed ones bytes.
  DType bits_of(BufferId of) const { return unsigned_of(std::max(8, dtype_bits(p_.buffer(of).type))); }
  ExprId element_of(BufferId of, ExprId bits) {
    ExprPool& e = p_.exprs;
    const DType type = p_.buffer(of).type;
    return e.bitcast(type, e.cast(unsigned_of(dtype_bits(type)), bits));
  }
  ExprId shift(const Part& part) {
    ExprPool& e = p_.exprs;
    return e.cast(bits_of(part.of), IndexMaker(e).mul(part.number, e.const_int(part.bits)));
  }
  ExprId placed(const Part& part) {
    ExprPool& e = p_.exprs;
    const ExprId bits = e.cast(bits_of(part.of), e.bitcast(unsigned_of(part.bits), part.value));
    return e.binary(ExprOp::shl, bits, shift(part));
  }

  void join(const Part& part, StmtId loop) {
    ExprPool& e = p_.exprs;
    const DType bits = bits_of(part.of);
    const VarId whole = new_name("whole", bits);
    draft_.temporaries[whole] = true;
    around_[loop].before.push_back(assigned(whole, e.const_int(0, bits)));
    p_.stmts[part.stmt.value].node = Branch{};
    draft_.assignments[part.stmt] = {whole, e.binary(ExprOp::bit_or, e.var(whole, bits), placed(part))};
    Store store{part.of, part.indices, element_of(part.of, e.var(whole, bits))};
    element(store.buffer, store.indices);
    store.value = kept(store.buffer, store.value);
    around_[loop].after.push_back(added(std::move(store)));
  }

  // The element's other parts stay as they are.
  void put_in(const Part& part) {
    ExprPool& e = p_.exprs;
    const DType bits = bits_of(part.of);
    const ExprId old = narrow(part.of, part.indices);
    const ExprId was = e.cast(bits, e.bitcast(unsigned_of(dtype_bits(p_.buffer(part.of).type)), old));
    const ExprId ones = e.const_int((int64_t{1} << part.bits) - 1, bits), all = e.const_int(-1, bits);
    const ExprId others = e.binary(ExprOp::bit_xor, e.binary(ExprOp::shl, ones, shift(part)), all);
    const ExprId value = e.binary(ExprOp::bit_or, e.binary(ExprOp::bit_and, was, others), placed(part));
    Store store{part.of, part.indices, element_of(part.of, value)};
    element(store.buffer, store.indices);
    store.value = kept(store.buffer, store.value);
    p_.stmts[part.stmt.value].node = std::move(store);
  }

  void refuse(const Store& store, int64_t ratio) {
    const BufferId tile = tile_of(store.buffer);
    const std::string name = p_.buffer(store.buffer).name, parts = std::to_string(ratio);
    error(DiagCode::dtype_mismatch,
          "elements of '" + p_.buffer(tile).name + "' of " + dtype_name(p_.buffer(tile).type) +
              " are written in parts, as the view '" + name + "' of " +
              dtype_name(p_.buffer(store.buffer).type) +
              ", and no iteration of a parallel loop is seen to write all " + parts + " parts of one",
          "write '" + name +
              "' at [..., e + j] in a parallel loop where the extent of j and e are multiples of " + parts +
              ", without an if on j, or at [..., e * " + parts + " + q] in unroll q in 0 .. " + parts +
              " inside of it");
  }

  StmtId added(std::variant<Loop, Branch, Store, TileOp> node) {
    p_.stmts.push_back({std::move(node), location_});
    return StmtId(p_.stmts.size() - 1);
  }
  VarId new_name(const std::string& like, DType type) {
    Var v;
    v.name = free_tile_name(p_, draft_, like);
    v.type = type;
    v.location = location_;
    p_.vars.push_back(std::move(v));
    const VarId var(p_.vars.size() - 1);
    return var;
  }
  StmtId assigned(VarId var, ExprId value) {
    const StmtId s = added(Branch{});
    draft_.assignments[s] = {var, value};
    return s;
  }

  std::map<StmtId, Merged> merged_;
  std::map<StmtId, Around> around_;
};

}  // namespace

std::vector<Diagnostic> resolve_narrow_stores(Program& p, Draft& draft) {
  return NarrowStores(p, draft).run();
}

}  // namespace tilegen::ir
