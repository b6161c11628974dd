#include "ir/combination.h"

#include <algorithm>
#include <unordered_set>

#include "ir/expr_nodes.h"
#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

constexpr int64_t kLongestRun = 8;  // neighbours that one iteration combines

// All, or a divisor, so that no run is shorter than the others.
int64_t run_of(int64_t extent) {
  if (extent <= kLongestRun) return extent;
  for (int64_t run = kLongestRun; run > 2; --run)
    if (extent % run == 0) return run;
  return kLongestRun;
}

class Combiner {
 public:
  Combiner(Program& p, const Combination& what, const SourceLocation& location, Block& block)
      : p_(p),
        e_(p.exprs),
        what_(what),
        axis_(static_cast<size_t>(what.axis)),
        word_(what.scan ? "scan" : "reduce"),
        loops_(p, location, block) {}

  std::optional<Diagnostic> check(const Limits& limits) const;

  void run() {
    extents_ = what_.src[0].extents;
    if (what_.scan)
      run_scan();
    else
      run_reduce();
  }

 private:
  std::optional<Diagnostic> check_counts() const;
  std::optional<Diagnostic> check_group(size_t i) const;
  std::optional<Diagnostic> check_shapes(const Region& dst) const;
  std::optional<Diagnostic> check_first() const;
  std::optional<Diagnostic> check_function(const Limits& limits) const;

  size_t count() const { return what_.src.size(); }
  Extents with_axis(int64_t extent) const {
    Extents extents = extents_;
    extents[axis_] = extent;
    return extents;
  }
  static Exprs at(Exprs point, size_t axis, ExprId index) {
    point[axis] = index;
    return point;
  }
  Exprs at(const Exprs& point, ExprId index) const { return at(point, axis_, index); }
  Tiles tiles(int64_t extent) {
    Tiles made;
    for (size_t i = 0; i < count(); ++i)
      made.push_back(loops_.tile(p_.buffer(what_.dst[i].buffer).name + "_part", MemScope::fragment,
                                 e_.type(what_.by.results[i]), with_axis(extent)));
    return made;
  }
  Exprs combined(const Exprs& left, const Exprs& right) { return ir::combined(e_, what_.by, left, right); }
  // Combined with what is before it, or, in reverse, behind it.
  Exprs onto(const Exprs& before, const Exprs& own) {
    return what_.reverse ? combined(own, before) : combined(before, own);
  }
  ExprId plus(ExprId a, int64_t b) { return e_.add(a, e_.const_int(b)); }

  // Elements of the operation, or of tiles that have been made of them. In reverse counted from the end.
  struct Source {
    Tiles tiles;  // none: src
    int64_t extent = 0;
  };
  Exprs read(const Source& from, const Exprs& point) {
    if (!from.tiles.empty()) return loops_.load(from.tiles, point);
    Exprs values;
    for (const Region& r : what_.src)
      values.push_back(loops_.load(r.buffer, element_of(e_, r, placed(point))));
    return values;
  }
  Exprs placed(const Exprs& point) {
    if (!what_.reverse) return point;
    return at(point, e_.sub(e_.const_int(extents_[axis_] - 1), point[axis_]));
  }

  void run_reduce();
  // `runs` neighbouring ones from `first` on, of `length` elements, all others before being of `apart`.
  struct Runs {
    int64_t first = 0, runs = 1, length = 1, apart = 1;
  };
  void reduce_runs(const Source& from, const Tiles& to, const Tiles& other, const Runs& r);
  void run_scan();
  void scan_runs(const Source& from, const Tiles& to, const Runs& r);
  // The group that is given; empty: none.
  Exprs first_at(const Exprs& point) {
    Exprs first = what_.first;
    for (const Region& r : what_.carry)
      first.push_back(
          loops_.load(r.buffer, element_of(e_, r, without_axis(e_, point, axis_, r.extents.size()))));
    return first;
  }
  Exprs behind_first(const Exprs& point, const Exprs& values) {
    const Exprs first = first_at(point);
    return first.empty() ? values : onto(first, values);
  }
  void put_scanned(const Exprs& point, const Exprs& values);

  Program& p_;
  ExprPool& e_;
  const Combination& what_;
  const size_t axis_;
  const std::string word_;
  PointLoops loops_;
  Extents extents_;  // of src
};

// One iteration each. Their values change between two sets of tiles, so that all values of a group are made
// of one group.
void Combiner::reduce_runs(const Source& from, const Tiles& to, const Tiles& other, const Runs& r) {
  const Exprs point = loops_.begin(with_axis(r.runs));
  const Exprs own = at(point, plus(point[axis_], r.first));
  const ExprId begin = e_.mul(own[axis_], r.apart);
  Exprs value = read(from, at(point, begin));
  if (r.length == 1) loops_.store(to, own, value);
  for (int64_t t = 1; t < r.length; ++t) {
    const Tiles& next = (r.length - t) % 2 == 1 ? to : other;
    loops_.store(next, own, combined(value, read(from, at(point, plus(begin, t)))));
    value = loops_.load(next, own);
  }
}

void Combiner::run_reduce() {
  Source from{{}, extents_[axis_]};
  do {
    const int64_t run = run_of(from.extent), whole = from.extent / run, rest = from.extent % run;
    const int64_t parts = whole + (rest ? 1 : 0);
    const Tiles to = tiles(parts), other = run > 2 ? tiles(parts) : Tiles();
    reduce_runs(from, to, other, {0, whole, run, run});
    if (rest > 0) reduce_runs(from, to, other, {whole, 1, rest, run});
    from = {to, parts};
  } while (from.extent > 1);
  const Tiles sums = what_.accumulate ? tiles(1) : Tiles();
  const Exprs point = loops_.begin(with_axis(1));
  std::vector<Exprs> places;
  Exprs old;
  for (const Region& r : what_.dst) {
    places.push_back(element_of(e_, r, without_axis(e_, point, axis_, r.extents.size())));
    old.push_back(loops_.load(r.buffer, places.back()));
  }
  Exprs value = loops_.load(from.tiles, point);
  if (what_.accumulate) {
    loops_.store(sums, point, combined(old, value));
    value = loops_.load(sums, point);
  }
  for (size_t i = 0; i < count(); ++i) loops_.store(what_.dst[i].buffer, places[i], value[i]);
}

void Combiner::scan_runs(const Source& from, const Tiles& to, const Runs& r) {
  const Tiles sums[] = {tiles(r.runs), r.length > 1 ? tiles(r.runs) : Tiles()};
  const Exprs point = loops_.begin(with_axis(r.runs));
  const ExprId begin = e_.mul(plus(point[axis_], r.first), r.apart);
  for (int64_t t = 0; t < r.length; ++t) {
    const Exprs own = at(point, plus(begin, t));
    const Exprs value = read(from, own);
    const Tiles& next = sums[t % 2];
    loops_.store(next, point, t == 0 ? value : onto(loops_.load(sums[(t + 1) % 2], point), value));
    loops_.store(to, own, loops_.load(next, point));
  }
}

// The prefixes within runs, then those of the runs' totals, in front of which no run has another.
void Combiner::run_scan() {
  struct Level {
    Source from;
    int64_t run = 1;
    Tiles within;
  };
  std::vector<Level> levels{{{{}, extents_[axis_]}, 1, {}}};
  for (;;) {
    Level& level = levels.back();
    const int64_t extent = level.from.extent, run = run_of(extent), whole = extent / run, rest = extent % run;
    level.run = run;
    level.within = tiles(extent);
    scan_runs(level.from, level.within, {0, whole, run, run});
    if (rest > 0) scan_runs(level.from, level.within, {whole, 1, rest, run});
    const int64_t totals = (extent - 1) / run;  // of runs that have others behind them
    if (totals == 0) break;
    const Tiles next = tiles(totals);
    const Exprs point = loops_.begin(with_axis(totals));
    loops_.store(next, point, loops_.load(level.within, at(point, plus(e_.mul(point[axis_], run), run - 1))));
    levels.push_back({{next, totals}, 1, {}});
  }
  // The last element has no place where each result goes to the next one.
  const int64_t written = extents_[axis_] - (what_.exclusive ? 1 : 0);
  if (what_.exclusive) {
    const Exprs point = loops_.begin(with_axis(1)), first = first_at(point);
    for (size_t i = 0; i < count(); ++i)
      loops_.store(what_.dst[i].buffer, element_of(e_, what_.dst[i], placed(point)), first[i]);
  }
  Tiles before;
  for (size_t l = levels.size(); l-- > 0;) {
    const Level& level = levels[l];
    const int64_t extent = l == 0 ? written : level.from.extent;
    const bool joins = l + 1 < levels.size() && extent > level.run;
    if (l > 0 && !joins && what_.first.empty() && what_.carry.empty()) {
      before = level.within;
      continue;
    }
    const Tiles to = l == 0 ? Tiles() : tiles(extent);
    const auto put = [&](const Exprs& point, const Exprs& values) {
      if (l == 0) return put_scanned(point, values);
      loops_.store(to, point, values);
    };
    if (extent > 0) {
      const Exprs first = loops_.begin(with_axis(std::min(extent, level.run)));
      put(first, behind_first(first, loops_.load(level.within, first)));
    }
    if (joins) {
      const Exprs point = loops_.begin(with_axis(extent - level.run));
      const Exprs run = at(point, e_.floordiv(point[axis_], e_.const_int(level.run)));
      const Exprs own = at(point, plus(point[axis_], level.run));
      put(own, onto(loops_.load(before, run), loops_.load(level.within, own)));
    }
    before = to;
  }
}

void Combiner::put_scanned(const Exprs& point, const Exprs& values) {
  const Exprs to = what_.exclusive ? at(point, plus(point[axis_], 1)) : point;
  for (size_t i = 0; i < count(); ++i)
    loops_.store(what_.dst[i].buffer, element_of(e_, what_.dst[i], placed(to)), values[i]);
}

std::optional<Diagnostic> Combiner::check_counts() const {
  const size_t n = count();
  const auto text = [](size_t v) { return std::to_string(v); };
  if (n == 0 || n > kMaxCombinedValues)
    return diagnostic(
        DiagCode::bad_attribute,
        word_ + " by a combination of " + text(n) + " values, expected 1 to " + text(kMaxCombinedValues),
        "combine values of one group in statements of their own");
  if (what_.dst.size() != n)
    return diagnostic(DiagCode::rank_mismatch,
                      word_ + " of " + text(n) + " values writes " + text(what_.dst.size()),
                      "give a result for each value");
  if (what_.by.left.size() == n && what_.by.right.size() == n && what_.by.results.size() == n)
    return std::nullopt;
  return diagnostic(DiagCode::rank_mismatch,
                    word_ + " of " + text(n) + " values by a combination of " +
                        text(what_.by.left.size() + what_.by.right.size()) + " values that gives " +
                        text(what_.by.results.size()),
                    "it takes the values of one group and of another, and gives those of a group: " +
                        text(2 * n) + " parameters and " + text(n) + " results");
}

std::optional<Diagnostic> Combiner::check_group(size_t i) const {
  for (const Region* r : {&what_.src[i], &what_.dst[i]})
    if (p_.buffer(r->buffer).scope == MemScope::global)
      return diagnostic(DiagCode::scope_not_allowed, region_text(p_, *r) + ": expected an on-chip buffer",
                        word_ + " in fragments and copy from or to global memory");
  const DType types[] = {p_.buffer(what_.src[i].buffer).type, p_.var(what_.by.left[i]).type,
                         p_.var(what_.by.right[i]).type, e_.type(what_.by.results[i]),
                         p_.buffer(what_.dst[i].buffer).type};
  static constexpr const char* kWhat[] = {"the source", "the left operand", "the right operand",
                                          "the combination's result", "what is written"};
  for (size_t t = 1; t < std::size(types); ++t)
    if (types[t] != types[0])
      return diagnostic(DiagCode::dtype_mismatch,
                        "value " + std::to_string(i + 1) + " of " + word_ + ": the source " +
                            region_text(p_, what_.src[i]) + " is " + dtype_name(types[0]) + ", " + kWhat[t] +
                            " is " + dtype_name(types[t]),
                        std::string("use one type; copy the source into a tile of ") + dtype_name(types[t]));
  return std::nullopt;
}

std::optional<Diagnostic> Combiner::check_shapes(const Region& dst) const {
  const Extents& src = what_.src[0].extents;
  if (what_.scan ? dst.extents == src : fits_without_axis(src, dst.extents, what_.axis)) return std::nullopt;
  return diagnostic(DiagCode::shape_mismatch,
                    region_text(p_, dst) + " does not fit src " + region_text(p_, what_.src[0]) +
                        (what_.scan ? "" : " without axis " + std::to_string(what_.axis)),
                    what_.scan ? "the results of scan have src's extents"
                               : "the results have src's extents without the axis, or with extent 1 there");
}

std::optional<Diagnostic> Combiner::check_first() const {
  if (!what_.carry.empty() || (what_.first.empty() && !what_.exclusive)) return std::nullopt;
  if (!what_.scan)
    return diagnostic(DiagCode::bad_attribute, "reduce is given a first group, which scan has",
                      "fill the results with it and reduce with accumulate");
  if (what_.first.size() != count())
    return diagnostic(DiagCode::rank_mismatch,
                      (what_.exclusive ? "an exclusive scan of " : "scan of ") + std::to_string(count()) +
                          " values begins with " + std::to_string(what_.first.size()),
                      "say what the first group is, a value for each: by f from 0, 1");
  for (size_t i = 0; i < count(); ++i)
    if (const DType type = p_.buffer(what_.src[i].buffer).type; e_.type(what_.first[i]) != type)
      return diagnostic(DiagCode::dtype_mismatch,
                        "value " + std::to_string(i + 1) + " of the first group is " +
                            dtype_name(e_.type(what_.first[i])) + ", the source " +
                            region_text(p_, what_.src[i]) + " is " + dtype_name(type),
                        "use one type; cast the value");
  return std::nullopt;
}

// It reads its operands and what is the same everywhere, and fits as often as it is written out.
std::optional<Diagnostic> Combiner::check_function(const Limits& limits) const {
  ExprNodes nodes_of(e_, what_.by.results);
  for (ExprId first : what_.first) nodes_of.add(first);
  int64_t depth = 0;
  while (const ExprId id = nodes_of.next()) {
    const ExprNode& n = e_[id];
    depth = std::max<int64_t>(depth, n.depth);
    if (n.op == ExprOp::load)
      return diagnostic(DiagCode::scope_not_allowed,
                        "the combination reads '" + p_.buffer(n.object).name + "'",
                        "it is of its operands, constants, dims and scalars; pass what it reads as a value");
  }
  int64_t levels = 2;
  for (int64_t n = what_.src[0].extents[axis_]; n > 1; n = n / run_of(n) + (n % run_of(n) ? 1 : 0)) ++levels;
  const auto values = static_cast<int64_t>(count());
  const int64_t copies = levels * 4 * kLongestRun,
                nodes = static_cast<int64_t>(nodes_of.count()) + 64 * values;
  const auto size = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  if (static_cast<int64_t>(e_.size()) + copies * nodes > limits.expr_nodes ||
      size(p_.stmts) + copies * (values + 1) > limits.statements ||
      size(p_.buffers) + levels * 8 * values > limits.buffers || depth + 32 > limits.expr_depth)
    return diagnostic(DiagCode::limit_nodes,
                      word_ +
                          " by a combination is more statements, tiles or expressions than a program has "
                          "room for",
                      "make the combination or the program smaller");
  return std::nullopt;
}

std::optional<Diagnostic> Combiner::check(const Limits& limits) const {
  if (auto wrong = check_counts()) return wrong;
  const Region& src = what_.src[0];
  if (what_.axis < 0 || axis_ >= src.extents.size())
    return diagnostic(
        DiagCode::bad_attribute,
        "axis " + std::to_string(what_.axis) + " of " + word_ + " is outside src " + region_text(p_, src),
        "axes count from 0");
  for (size_t i = 0; i < count(); ++i) {
    if (auto wrong = check_group(i)) return wrong;
    if (what_.src[i].extents != src.extents)
      return diagnostic(DiagCode::shape_mismatch,
                        region_text(p_, what_.src[i]) + " is combined with " + region_text(p_, src),
                        "the sources have the same extents");
    if (auto wrong = check_shapes(what_.dst[i])) return wrong;
  }
  if (auto wrong = check_first()) return wrong;
  return check_function(limits);
}

}  // namespace

std::optional<Diagnostic> add_combination(Program& p, const Combination& what, const SourceLocation& location,
                                          Block& block, const Limits& limits) {
  Combiner combiner(p, what, location, block);
  if (auto error = combiner.check(limits)) return error;
  combiner.run();
  return std::nullopt;
}

}  // namespace tilegen::ir
