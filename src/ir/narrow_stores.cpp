#include "ir/narrow_stores.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ir/expr_nodes.h"
#include "ir/packed_index.h"
#include "ir/packed_lanes.h"
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
  // `ratio` values of the variable are the parts of an element, for which it is `first` outside of the loop.
  struct ByPart {
    VarId var;
    int64_t ratio;
    ExprId first;
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
    ExprPool& e = p_.exprs;
    Part part{s, of, store.indices, {}, store.value, dtype_bits(narrow)};
    for (ExprId& index : part.indices) index = named_out(index);

    size_t inner = around.size();  // the parallel loop, or block of threads
    while (inner > 0 && !is_parallel(around[inner - 1])) --inner;
    const StmtId points = inner > 0 ? around[inner - 1] : StmtId();
    if (points.valid() && !moves_alone(points)) {
      const std::vector<VarId> counted = counts(points);
      for (size_t d = counted.size(); d-- > 0;) {
        auto element = fixed(part.indices) ? element_by(part.indices, counted[d], ratio) : std::nullopt;
        if (!element) continue;
        const Merged* merged = merge(points, counted[d], ratio);
        if (!merged) return refuse(store, ratio);
        part.indices = renamed(*element, counted[d], e.var(merged->iteration));
        part.number = e.var(merged->part);
        const std::span ifs = std::span(around).subspan(inner);
        const ByPart by{counted[d], ratio, e.var(merged->iteration)};
        if (const auto conditions = may_join(part, merged->parts, ifs, by))
          return join(part, merged->parts, ifs, *conditions);
        return is_tensor(of) ? refuse(store, ratio) : put_in(part);
      }
    }
    for (size_t i = inner; points.valid() && i < around.size(); ++i) {
      if (!counts_parts(around[i], ratio)) continue;
      const ByPart by{p_.as<Loop>(around[i])->vars.front(), ratio, e.const_int(0)};
      const auto element = element_by(part.indices, by.var, ratio);
      if (!element) continue;
      Part whole = part;
      whole.indices = renamed(*element, by.var, by.first);
      whole.number = e.var(by.var);
      const std::span ifs = std::span(around).subspan(i + 1);
      if (const auto conditions = may_join(whole, around[i], ifs, by))
        return join(whole, around[i], ifs, *conditions);
    }
    const PackedIndex::Split place = PackedIndex(p_).split(part.indices.back(), ratio);
    const std::set<VarId> by = variables(place.rest);
    const bool alike = std::all_of(by.begin(), by.end(), [&](VarId v) { return is_serial(around, v); });
    if (!alike || is_tensor(of) || !DraftExprs(p_).reads(place.rest).empty()) return refuse(store, ratio);
    part.number = IndexMaker(e).mod(place.rest, e.const_int(ratio));
    part.indices.back() = IndexMaker(e).add(place.times, IndexMaker(e).div(place.rest, e.const_int(ratio)));
    put_in(part);
  }

  // Of indices of parts, where `ratio` * v + lane in the place of v is part `lane` of one element for every
  // lane: the element's.
  std::optional<std::vector<ExprId>> element_by(const std::vector<ExprId>& indices, VarId v, int64_t ratio) {
    if (!named(indices, v)) return std::nullopt;
    PackedIndex index(p_);
    std::vector<ExprId> element;
    for (int64_t lane = 0; lane < ratio; ++lane) {
      LaneExprs of_lane(p_, v, ratio, lane);
      std::vector<ExprId> at;
      for (ExprId i : indices) at.push_back(of_lane.value(i));
      const PackedIndex::Split place = index.split(at.back(), ratio);
      if (!index.is(place.rest, lane)) return std::nullopt;
      at.back() = place.times;
      if (lane == 0) element = at;
      if (at != element) return std::nullopt;
    }
    return element;
  }
  std::vector<ExprId> renamed(std::vector<ExprId> indices, VarId v, ExprId value) {
    for (ExprId& index : indices) index = Names(p_.exprs, {{v, value}}).rewrite(index);
    return indices;
  }
  // They read nothing and no name that may be something else later.
  bool fixed(const std::vector<ExprId>& indices) {
    DraftExprs exprs(p_);
    return std::all_of(indices.begin(), indices.end(), [&](ExprId index) {
      const std::set<VarId> vars = variables(index);
      return exprs.reads(index).empty() && std::none_of(vars.begin(), vars.end(), [&](VarId v) {
               return draft_.temporaries.contains(v) && !is_merged(v);
             });
    });
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
    Names(ExprPool& e, std::map<VarId, ExprId> values) : ExprRewriter(e, e), values_(std::move(values)) {}

   protected:
    ExprId rewrite_var(const ExprNode& n) override {
      const auto it = values_.find(n.var());
      return it != values_.end() ? it->second : to_->var(n.var(), n.type);
    }

   private:
    const std::map<VarId, ExprId> values_;
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
  // Variables of the loop that may count parts, as written.
  std::vector<VarId> counts(StmtId loop) const {
    std::vector<VarId> vars = p_.as<Loop>(loop)->vars;
    if (const auto it = merged_.find(loop); it != merged_.end())
      std::replace(vars.begin(), vars.end(), it->second.iteration, it->second.var);
    return vars;
  }
  // It runs once for each part of an element.
  bool counts_parts(StmtId s, int64_t ratio) const {
    const auto* loop = p_.as<Loop>(s);
    return loop && !loop->condition.valid() && constant(loop->begin) == 0 &&
           constant(loop->extents.front()) == ratio;
  }

  static size_t position(const Loop& loop, VarId v) {
    return static_cast<size_t>(std::find(loop.vars.begin(), loop.vars.end(), v) - loop.vars.begin());
  }
  // Null: it cannot.
  const Merged* merge(StmtId s, VarId v, int64_t ratio) {
    if (const auto it = merged_.find(s); it != merged_.end())
      return it->second.var == v && it->second.ratio == ratio ? &it->second : nullptr;
    ExprPool& e = p_.exprs;
    const auto d = position(*p_.as<Loop>(s), v);
    if (constant(p_.as<Loop>(s)->extents[d]).value_or(1) % ratio != 0) return nullptr;
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
    loop.vars[d] = m.iteration;
    loop.extents[d] = e.const_int(*constant(loop.extents[d]) / ratio);
    bounds_.add(m.iteration, loop.extents[d]);
    bounds_.add(m.part, e.const_int(ratio));
    return &merged_.emplace(s, m).first->second;
  }

  // The element may be put together over the iterations of the loop and stored behind it: nothing there reads
  // it once its part is written, where it lies is known outside, and what stands between loop and store are
  // ifs that hold for all of its parts or for none. Gives what these ask, outside.
  std::optional<std::vector<ExprId>> may_join(const Part& part, StmtId loop, std::span<const StmtId> ifs,
                                              const ByPart& by) {
    if (!fixed(part.indices)) return std::nullopt;
    std::vector<ExprId> conditions;
    for (StmtId s : ifs) {
      const auto* branch = p_.as<Branch>(s);
      if (!branch) return std::nullopt;
      const ExprId condition = named_out(branch->condition);
      if (!fixed({condition})) return std::nullopt;
      const ExprId first = LaneExprs(p_, by.var, by.ratio, 0).value(condition);
      for (int64_t lane = 1; lane < by.ratio; ++lane)
        if (LaneExprs(p_, by.var, by.ratio, lane).value(condition) != first) return std::nullopt;
      conditions.push_back(renamed({first}, by.var, by.first).front());
    }
    DraftExprs exprs(p_);
    const BufferId tile = tile_of(part.of);
    bool behind = false, reads = false;
    for_each_statement(p_, p_.as<Loop>(loop)->body, [&](StmtId s, int) {
      if (behind) visit_reads(s, [&](ExprId e) { reads = reads || exprs.reads(e).contains(tile); });
      behind = behind || s == part.stmt;
    });
    return reads ? std::nullopt : std::optional(std::move(conditions));
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

  void join(const Part& part, StmtId loop, std::span<const StmtId> ifs,
            const std::vector<ExprId>& conditions) {
    ExprPool& e = p_.exprs;
    const DType bits = bits_of(part.of);
    const VarId whole = new_name("whole", bits);
    draft_.temporaries[whole] = true;
    around_[loop].before.push_back(assigned(whole, e.const_int(0, bits)));
    p_.stmts[part.stmt.value].node = Branch{};
    VarId put = whole;
    if (!ifs.empty()) {  // 0 where they do not hold
      put = new_name("part", bits);
      draft_.temporaries[put] = true;
      Around& outside = around_[ifs.front()];
      outside.before.push_back(assigned(put, e.const_int(0, bits)));
      outside.after.push_back(
          assigned(whole, e.binary(ExprOp::bit_or, e.var(whole, bits), e.var(put, bits))));
    }
    const ExprId value = placed(part);
    draft_.assignments[part.stmt] = {
        put, ifs.empty() ? e.binary(ExprOp::bit_or, e.var(whole, bits), value) : value};
    Store store{part.of, part.indices, element_of(part.of, e.var(whole, bits))};
    element(store.buffer, store.indices);
    store.value = kept(store.buffer, store.value);
    StmtId behind = added(std::move(store)), inside = part.stmt;
    for (size_t i = ifs.size(); i-- > 0; inside = ifs[i]) {
      const auto& branch = *p_.as<Branch>(ifs[i]);
      const bool then =
          std::find(branch.then_body.begin(), branch.then_body.end(), inside) != branch.then_body.end();
      behind = added(then ? Branch{conditions[i], {behind}, {}} : Branch{conditions[i], {}, {behind}});
    }
    around_[loop].after.push_back(behind);
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
