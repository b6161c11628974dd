#include "ir/report_place.h"

#include <algorithm>

namespace tilegen::ir {
namespace {

using Digits = std::vector<PlaceDigit>;

// Of a parallel loop where there is more than one point: those of one point are made around statements, too.
void add_digits(const Program& p, const Loop& loop, Digits& digits) {
  const bool points = loop.kind == LoopKind::parallel;
  for (size_t d = 0; d < loop.vars.size(); ++d) {
    int64_t extent = 0;
    if (points && p.exprs.is_const_int(loop.extents[d], &extent) && extent == 1) continue;
    digits.push_back({loop.vars[d], points ? loop.extents[d] : ExprId()});
  }
}

Digits block_digits(const Kernel& kernel) {
  Digits digits;
  for (size_t d = 0; d < kernel.block_vars.size(); ++d)
    digits.push_back({kernel.block_vars[d], kernel.grid[d]});
  return digits;
}

// How often the variable's loop has run.
ExprId trips_done(Program& p, std::span<const StmtId> around, VarId var) {
  for (StmtId s : around)
    // Where its bounds were refused it has no begin.
    if (const auto* loop = p.as<Loop>(s);
        loop && !loop->vars.empty() && loop->vars[0] == var && loop->begin.valid())
      return p.exprs.sub(p.exprs.var(var), loop->begin);
  return p.exprs.var(var);
}

void visit_places(const Program& p, const Block& block, Digits& digits, const VisitPlace& visit) {
  for (StmtId s : block) {
    if (!visit(s, digits)) continue;
    const size_t outside = digits.size();
    if (const auto* loop = p.as<Loop>(s)) {
      add_digits(p, *loop, digits);
      visit_places(p, loop->body, digits, visit);
      digits.resize(outside);
    } else if (const auto* branch = p.as<Branch>(s)) {
      visit_places(p, branch->then_body, digits, visit);
      visit_places(p, branch->else_body, digits, visit);
    }
  }
}

}  // namespace

int64_t counted_trips(std::span<const PlaceDigit> digits) {
  constexpr int64_t kBits = 20, kLeast = 4;  // of all loops together, and of one
  const auto loops =
      std::count_if(digits.begin(), digits.end(), [](const PlaceDigit& d) { return !d.extent.valid(); });
  return int64_t{1} << std::max<int64_t>(kBits / std::max<int64_t>(loops, 1), kLeast);
}

bool is_message(std::string_view text) {
  return text.size() <= kMaxMessage &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"'; });
}

// Loops inside a parallel loop are written out, and have no variable in the end.
ReportMaker::ReportMaker(Program& p, std::span<const StmtId> around, const SourceLocation& location)
    : p_(p), location_(location) {
  Digits digits;
  if (!p.kernels.empty()) digits = block_digits(p.kernels.back());  // else its first line was refused
  for (StmtId s : around) {
    const auto* loop = p.as<Loop>(s);
    if (!loop || in_parallel_) continue;
    in_parallel_ = loop->kind == LoopKind::parallel;
    add_digits(p, *loop, digits);
  }
  place_ = number(around, digits);
}

ExprId ReportMaker::number(std::span<const StmtId> around, std::span<const PlaceDigit> digits) {
  ExprPool& e = p_.exprs;
  ExprId number = e.const_int(0);
  const int64_t trips = counted_trips(digits);
  for (const auto& [var, extent] : digits) {
    ExprId digit = trips_done(p_, around, var);
    if (!extent.valid()) digit = e.binary(ExprOp::min, digit, e.const_int(trips - 1));
    number = e.add(e.mul(number, extent.valid() ? extent : e.const_int(trips)), digit);
  }
  return number;
}

BufferId ReportMaker::buffer(Report kind, DType type, const char* name) {
  for (size_t b = 0; b < p_.buffers.size(); ++b)
    if (p_.buffers[b].report == kind && p_.buffers[b].type == type) return BufferId(b);
  Buffer b;
  b.name = name;
  b.type = type;
  b.workspace = true;
  b.report = kind;
  b.location = location_;
  const BufferId id(p_.buffers.size());
  p_.buffers.push_back(std::move(b));
  p_.params.push_back({Param::Kind::tensor, {}, id});
  return id;
}

StmtId ReportMaker::add(std::variant<Loop, Branch, Store, TileOp> node) {
  p_.stmts.push_back({std::move(node), location_});
  return StmtId(p_.stmts.size() - 1);
}

Block ReportMaker::placed(std::vector<Store> stores) {
  Block block;
  if (in_parallel_) {
    for (Store& s : stores) block.push_back(add(std::move(s)));
    return block;
  }
  Loop loop;
  loop.kind = LoopKind::parallel;
  loop.begin = p_.exprs.const_int(0);
  loop.extents = {p_.exprs.const_int(1)};
  Var var;
  var.name = "point";
  var.location = location_;
  loop.vars = {VarId(p_.vars.size())};
  p_.vars.push_back(std::move(var));
  const StmtId made = add(std::move(loop));  // before what it holds, as the text has them
  for (Store& s : stores) block.push_back(add(std::move(s)));
  std::get<Loop>(p_.stmts[made.value].node).body = std::move(block);
  return {made};
}

void for_each_place(const Program& p, const VisitPlace& visit) {
  for (const Kernel& kernel : p.kernels) {
    Digits digits = block_digits(kernel);
    visit_places(p, kernel.body, digits, visit);
  }
}

}  // namespace tilegen::ir
