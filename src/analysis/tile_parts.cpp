#include "analysis/tile_parts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "analysis/run_ahead.h"

namespace tilegen::analysis {

namespace {

struct Part {
  std::vector<int64_t> begin, extent;

  int64_t elements() const {
    return std::accumulate(extent.begin(), extent.end(), int64_t{1}, std::multiplies<>());
  }
  bool meets(const Part& o) const {
    for (size_t d = 0; d < begin.size(); ++d)
      if (begin[d] + extent[d] <= o.begin[d] || o.begin[d] + o.extent[d] <= begin[d]) return false;
    return true;
  }
};

std::optional<Part> part_of(const ir::Program& p, const ir::Region& to) {
  Part part{{}, to.extents};
  const std::vector<int64_t> shape = p.tile_shape(to.buffer);
  for (size_t d = 0; d < to.offsets.size(); ++d) {
    int64_t at = 0;
    if (!p.exprs.is_const_int(to.offsets[d], &at) || at < 0 || at + to.extents[d] > shape[d])
      return std::nullopt;
    part.begin.push_back(at);
  }
  return part;
}

// All of the statements are members of one block.
bool in_one_block(const ir::Program& p, const std::vector<ir::StmtId>& statements) {
  const auto holds = [&](const ir::Block& b) {
    return std::all_of(statements.begin(), statements.end(),
                       [&](ir::StmtId s) { return std::find(b.begin(), b.end(), s) != b.end(); });
  };
  return std::any_of(p.kernels.begin(), p.kernels.end(),
                     [&](const ir::Kernel& k) { return holds(k.body); }) ||
         std::any_of(p.stmts.begin(), p.stmts.end(), [&](const ir::Stmt& s) {
           const auto* loop = std::get_if<ir::Loop>(&s.node);
           const auto* branch = std::get_if<ir::Branch>(&s.node);
           return (loop && holds(loop->body)) ||
                  (branch && (holds(branch->then_body) || holds(branch->else_body)));
         });
}

}  // namespace

bool fills_whole_tile(const ir::Program& p, const ir::TileOp& copy) {
  const ir::Region& to = copy.operands[1];
  return to.extents == p.tile_shape(to.buffer) &&
         std::all_of(to.offsets.begin(), to.offsets.end(), [&](ir::ExprId e) {
           int64_t offset = 1;
           return p.exprs.is_const_int(e, &offset) && offset == 0;
         });
}

ValueId written_value(const KernelOp& op) {
  for (const OpAccess& a : op.accesses)
    if (a.write) return a.value;
  return {};
}

std::vector<OpId> writers_of(const KernelOps& ops, ValueId tile) {
  std::vector<OpId> list;
  for (OpId i : ops.ops.ids())
    if (std::any_of(ops.ops[i].accesses.begin(), ops.ops[i].accesses.end(),
                    [&](const OpAccess& a) { return a.write && a.value == tile; }))
      list.push_back(i);
  return list;
}

std::string fill_refusal(const ir::Program& p, const KernelOps& ops, ValueId tile) {
  const std::vector<OpId> writers = writers_of(ops, tile);
  if (writers.empty()) return "no copy from a tensor fills it";
  std::vector<Part> parts;
  std::vector<ir::StmtId> statements;
  for (OpId i : writers) {
    if (!is_tile_load(p, ops.ops[i]))
      return writers.size() == 1 ? "no copy from a tensor fills it" : "several operations write it";
    statements.push_back(ops.ops[i].stmt);
    const ir::TileOp& copy = *p.as<ir::TileOp>(ops.ops[i].stmt);
    if (writers.size() == 1) return fills_whole_tile(p, copy) ? "" : "it fills only a part of its tile";
    auto part = part_of(p, copy.operands[1]);
    if (!part) return "several operations write it, at places that are not known by number";
    if (std::any_of(parts.begin(), parts.end(), [&](const Part& o) { return o.meets(*part); }))
      return "several operations write the same of it";
    parts.push_back(std::move(*part));
  }
  const std::vector<int64_t> shape = p.tile_shape(ops.values[tile].buffer);
  int64_t left = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  for (const Part& part : parts) left -= part.elements();
  if (left != 0) return "its copies fill only a part of it";
  if (!in_one_block(p, statements)) return "several operations of different blocks write it";
  // Ops are in program order.
  for (OpId i : ops.ops.ids())
    for (const OpAccess& a : ops.ops[i].accesses)
      if (a.value == tile && a.read && writers.front() < i && i < writers.back())
        return ops.ops[i].path + " reads it before all of it is filled";
  return "";
}

int64_t filled_together(const ir::Program& p, ir::BufferId tile, int dim) {
  int64_t together = 0;
  for (const ir::Stmt& s : p.stmts) {
    const auto* copy = std::get_if<ir::TileOp>(&s.node);
    if (!copy || !ops::is_copy(*copy) || copy->operands[1].buffer != tile ||
        p.buffer(copy->operands[0].buffer).scope != ir::MemScope::global || fills_whole_tile(p, *copy))
      continue;
    const auto d = static_cast<size_t>(dim);
    int64_t at = 1;  // not known
    p.exprs.is_const_int(copy->operands[1].offsets[d], &at);
    together = std::gcd(together, std::gcd(at, copy->operands[1].extents[d]));
  }
  return together;
}

}  // namespace tilegen::analysis
