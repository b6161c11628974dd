#include "expand/workspace_split.h"

#include <algorithm>

#include "analysis/kernel_ops.h"
#include "analysis/split_loop.h"
#include "ir/draft.h"
#include "ir/op_kinds.h"

namespace tilegen::expand {

namespace {

using ir::BufferId;
using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using ir::StmtId;
using ir::VarId;

constexpr int64_t kAtRest = 0x5f315b8ae6c2d084;  // no bits of two floats that sums would be
constexpr int64_t kAtOnce = 8;                   // parts whose loads are under way together

class Meeting {
 public:
  Meeting(ir::Program& form, int kernel, StmtId loop, VarId part, int64_t parts)
      : p_(form),
        e_(form.exprs),
        kernel_(kernel),
        loop_(loop),
        parts_(parts),
        written_(*form.written),
        prefix_(written_.paths[loop.value] + "/meeting"),
        location_(form.stmt(loop).location) {
    const ir::Kernel& k = p_.kernels[static_cast<size_t>(kernel)];
    point_ = number(0), points_ = number(1);
    for (size_t d = 1; d < k.grid.size(); ++d) {  // without the parts'
      point_ = e_.add(e_.mul(point_, k.grid[d]), e_.var(k.block_vars[d]));
      points_ = e_.mul(points_, k.grid[d]);
    }
    mine_ = slot(e_.var(part));
  }

  void run() {
    const auto ops = analysis::collect_kernel_ops(p_, kernel_);
    std::vector<BufferId> sums;
    for (analysis::ValueId v : analysis::split_loop(p_, kernel_, ops, loop_).sums)
      sums.push_back(ops.values[v].buffer);
    const BufferId count = workspace("count", DType::u64, {points_});
    const BufferId ticket = tile("ticket", ir::MemScope::shared, DType::u64);
    const BufferId seen = tile("seen", ir::MemScope::shared, DType::u64);
    const BufferId lost = tile("lost", ir::MemScope::local, DType::boolean);
    std::vector<BufferId> left;
    for (BufferId sum : sums) {
      std::vector<ExprId> shape = {e_.mul(points_, number(parts_))};
      for (int64_t extent : p_.tile_shape(sum)) shape.push_back(number(extent));
      left.push_back(workspace("sums_of_" + p_.buffer(sum).name, p_.buffer(sum).type, shape));
    }

    const ir::Block& all = p_.kernels[static_cast<size_t>(kernel_)].body;
    const auto behind = std::find(all.begin(), all.end(), loop_) + 1;
    ir::Block body(all.begin(), behind), rest(behind, all.end());
    for (size_t i = 0; i < sums.size(); ++i) body.push_back(leave(sums[i], left[i]));
    count_up(count, ticket, seen, lost, body);
    ir::Branch last{e_.binary(ExprOp::eq, at(ticket), word(kAtRest + parts_ - 1)), {}, {}};
    last.then_body.push_back(one_thread("rest", ir::Store{count, {point_}, word(kAtRest)}));
    for (size_t i = 0; i < sums.size(); ++i) {
      last.then_body.push_back(clear(sums[i]));
      last.then_body.push_back(gather(sums[i], left[i]));
    }
    last.then_body.insert(last.then_body.end(), rest.begin(), rest.end());
    body.push_back(add(std::move(last), "last"));
    p_.kernels[static_cast<size_t>(kernel_)].body = std::move(body);
    p_.written = std::make_shared<const ir::Program::Written>(std::move(written_));
  }

 private:
  ExprId number(int64_t n) { return e_.const_int(n); }
  ExprId word(int64_t n) { return e_.const_int(n, DType::u64); }
  ExprId slot(ExprId part) { return e_.add(e_.mul(point_, number(parts_)), part); }
  ExprId at(BufferId one) {
    const ExprId first = number(0);
    return e_.load(one, p_.buffer(one).type, std::span(&first, 1));
  }

  std::string free_name(std::string name) const {
    const auto taken = [&](const auto& x) { return x.name == name; };
    while (std::any_of(p_.buffers.begin(), p_.buffers.end(), taken) ||
           std::any_of(p_.vars.begin(), p_.vars.end(), taken))
      name += "_";
    return name;
  }

  StmtId add(std::variant<ir::Loop, ir::Branch, ir::Store, ir::TileOp> node, const std::string& name) {
    const StmtId id(p_.stmts.size());
    p_.stmts.push_back({std::move(node), location_});
    written_.paths.push_back(prefix_ + "/" + name);
    return id;
  }
  VarId new_var(const std::string& name) {
    ir::Var v;
    v.name = free_name(name);
    p_.vars.push_back(std::move(v));
    return VarId(p_.vars.size() - 1);
  }

  BufferId tile(const std::string& name, ir::MemScope scope, DType type) {
    ir::Buffer b;
    b.name = free_name(name);
    b.scope = scope;
    b.type = type;
    b.shape = {number(1)};
    b.kernel = kernel_;
    b.location = location_;
    p_.buffers.push_back(std::move(b));
    return BufferId(p_.buffers.size() - 1);
  }
  BufferId workspace(const std::string& what, DType type, std::vector<ExprId> shape) {
    ir::Buffer b;
    b.name = free_name(p_.kernels[static_cast<size_t>(kernel_)].name + "_" + what);
    b.type = type;
    b.shape = std::move(shape);
    b.workspace = true;
    b.location = location_;
    p_.buffers.push_back(std::move(b));
    const BufferId id(p_.buffers.size() - 1);
    p_.params.push_back({ir::Param::Kind::tensor, {}, id});
    return id;
  }

  // For one iteration of a parallel loop, as elements of tensors are written.
  StmtId one_thread(const std::string& name, ir::Store store) {
    const StmtId inner = add(std::move(store), name + "/store#0");
    ir::Loop loop;
    loop.kind = ir::LoopKind::parallel;
    loop.vars = {new_var("once")};
    loop.begin = number(0);
    loop.extents = {number(1)};
    loop.body = {inner};
    return add(std::move(loop), name);
  }

  StmtId leave(BufferId sum, BufferId left) {
    const std::vector<int64_t> shape = p_.tile_shape(sum);
    ir::TileOp copy;
    copy.kind = ir::OpKind::copy;
    copy.operands.push_back({sum, std::vector<ExprId>(shape.size(), number(0)), shape});
    ir::Region to{left, {mine_}, {1}};
    to.offsets.resize(1 + shape.size(), number(0));
    to.extents.insert(to.extents.end(), shape.begin(), shape.end());
    copy.operands.push_back(std::move(to));
    return add(std::move(copy), "leave_" + p_.buffer(sum).name);
  }

  // The ticket is a number of the counter's that is one of this launch's. A counter that is none changes by
  // the first addition of each block alone, so some block sets it to rest; in the loop a block adds once it
  // has seen that.
  void count_up(BufferId count, BufferId ticket, BufferId seen, BufferId lost, ir::Block& out) {
    const auto add_to = [&](const std::string& name, ExprId value, BufferId old, ir::AtomicOrder order) {
      ir::Store s{count, {point_}, value, ir::AtomicKind::add};
      s.old = ir::Store::OldValue{old, {number(0)}};
      s.order = order;
      return one_thread(name, std::move(s));
    };
    const auto astray = [&](BufferId value) {
      return e_.binary(ExprOp::le, word(parts_), e_.binary(ExprOp::sub, at(value), word(kAtRest)));
    };
    const auto judge = [&](const std::string& name, BufferId value) {
      return add(ir::Store{lost, {number(0)}, astray(value)}, name);
    };
    out.push_back(add_to("count", word(1), ticket, ir::AtomicOrder::acq_rel));
    out.push_back(judge("judge", ticket));
    ir::Loop again;
    again.vars = {new_var("again")};
    again.begin = number(0);
    again.extents = {number(ir::Draft::kEndless)};
    again.condition = at(lost);
    again.body.push_back(add_to("again/look", word(0), seen, ir::AtomicOrder::relaxed));
    again.body.push_back(
        one_thread("again/settle", ir::Store{count,
                                             {point_},
                                             e_.select(astray(seen), word(kAtRest), at(seen)),
                                             ir::AtomicKind::compare_exchange,
                                             at(seen)}));
    again.body.push_back(
        add_to("again/count", e_.select(astray(seen), word(0), word(1)), ticket, ir::AtomicOrder::acq_rel));
    again.body.push_back(judge("again/judge", seen));
    out.push_back(add(std::move(again), "again"));
  }

  StmtId clear(BufferId sum) {
    const std::vector<int64_t> shape = p_.tile_shape(sum);
    ir::TileOp fill;
    fill.kind = ir::OpKind::fill;
    fill.operands.push_back({sum, std::vector<ExprId>(shape.size(), number(0)), shape});
    fill.value = e_.const_number(0, p_.buffer(sum).type);
    return add(std::move(fill), "clear_" + p_.buffer(sum).name);
  }

  StmtId gather(BufferId sum, BufferId left) {
    const std::string name = "gather_" + p_.buffer(sum).name;
    const DType type = p_.buffer(sum).type;
    int64_t at_once = std::min(kAtOnce, parts_);
    while (parts_ % at_once != 0) --at_once;
    const VarId group = new_var("group"), part = new_var("part_of_group");
    ir::Loop element;
    element.kind = ir::LoopKind::parallel;
    element.begin = number(0);
    std::vector<ExprId> indices, from = {slot(e_.add(e_.mul(e_.var(group), number(at_once)), e_.var(part)))};
    for (int64_t extent : p_.tile_shape(sum)) {
      element.vars.push_back(new_var("at"));
      element.extents.push_back(number(extent));
      indices.push_back(e_.var(element.vars.back()));
      from.push_back(indices.back());
    }
    const ExprId total = e_.binary(ExprOp::add, e_.load(sum, type, indices), e_.load(left, type, from));
    element.body = {add(ir::Store{sum, indices, total}, name + "/store#0")};
    ir::Loop parts;
    parts.kind = ir::LoopKind::unroll;
    parts.vars = {part};
    parts.begin = number(0);
    parts.extents = {number(at_once)};
    parts.body = {add(std::move(element), name + "/add")};
    ir::Loop groups;
    groups.vars = {group};
    groups.begin = number(0);
    groups.extents = {number(parts_ / at_once)};
    groups.body = {add(std::move(parts), name + "/parts")};
    return add(std::move(groups), name);
  }

  ir::Program& p_;
  ir::ExprPool& e_;
  const int kernel_;
  const StmtId loop_;
  const int64_t parts_;
  ir::Program::Written written_;
  const std::string prefix_;
  const SourceLocation location_;
  ExprId point_, points_;  // of the grid, without parts: this block's, and their number
  ExprId mine_;            // where this block's sums lie
};

}  // namespace

void meet_in_workspace(ir::Program& form, int kernel, ir::StmtId loop, ir::VarId part, int64_t parts) {
  Meeting(form, kernel, loop, part, parts).run();
}

}  // namespace tilegen::expand
