#include "expand/share_form.h"

#include <algorithm>
#include <map>

#include "analysis/epilogue_cut.h"
#include "ir/op_kinds.h"
#include "ir/store_parts.h"

namespace tilegen::expand {

namespace {

using analysis::EpilogueCut;
using ir::BufferId;
using ir::ExprId;
using ir::StmtId;
using ir::VarId;

// The loop's variable counts elements of the share: those of cut tiles it names as before.
class OfShare : public ir::ExprRewriter {
 public:
  OfShare(ir::ExprPool& pool, const EpilogueCut& cut, const std::map<BufferId, BufferId>& own, VarId along,
          ExprId by)
      : ExprRewriter(pool, pool), cut_(cut), own_(own), along_(along), by_(by) {}

  BufferId buffer(BufferId b) const {
    const auto it = own_.find(b);
    return it == own_.end() ? b : it->second;
  }
  void indices(BufferId b, std::vector<ExprId>& list) const {
    if (const auto it = cut_.tiles.find(b); it != cut_.tiles.end() && along_.valid())
      list[static_cast<size_t>(it->second)] = to_->var(along_);
  }

 private:
  ExprId rewrite_var(const ir::ExprNode& n) override {
    const ExprId own = ExprRewriter::rewrite_var(n);
    return along_.valid() && n.var() == along_ ? to_->add(own, by_) : own;
  }
  ExprId rewrite_load(const ir::ExprNode& n, std::span<const ExprId> at) override {
    std::vector<ExprId> list(at.begin(), at.end());
    indices(n.object, list);
    return to_->load(buffer(n.object), n.type, list);
  }

  const EpilogueCut& cut_;
  const std::map<BufferId, BufferId>& own_;
  const VarId along_;
  const ExprId by_;
};

class Sharing {
 public:
  Sharing(ir::Program& form, int kernel, StmtId loop, VarId part, const EpilogueCut& cut)
      : p_(form),
        e_(form.exprs),
        kernel_(kernel),
        loop_(loop),
        cut_(cut),
        first_(e_.mul(e_.var(part), e_.const_int(cut.width))) {}

  void run() {
    ir::Program::Written written = *p_.written;
    ir::Block& body = p_.kernels[static_cast<size_t>(kernel_)].body;
    const auto behind = std::find(body.begin(), body.end(), loop_) + 1;
    const ir::Block after(behind, body.end());
    for (const auto& [tile, dim] : cut_.tiles)
      if (std::find(cut_.sums.begin(), cut_.sums.end(), tile) == cut_.sums.end())
        p_.buffers[tile.value].shape[static_cast<size_t>(dim)] = e_.const_int(cut_.width);
    ir::Block shares;
    for (BufferId sum : cut_.sums) {
      shares.push_back(take_share(sum));
      written.paths.push_back(written.paths[loop_.value] + "/share_of_" + p_.buffer(sum).name);
    }
    for (StmtId s : after) narrow(s);
    body.insert(std::find(body.begin(), body.end(), loop_) + 1, shares.begin(), shares.end());
    p_.written = std::make_shared<const ir::Program::Written>(std::move(written));
  }

 private:
  std::string free_name(std::string name) const {
    const auto taken = [&](const auto& x) { return x.name == name; };
    while (std::any_of(p_.buffers.begin(), p_.buffers.end(), taken) ||
           std::any_of(p_.vars.begin(), p_.vars.end(), taken))
      name += "_";
    return name;
  }

  StmtId take_share(BufferId sum) {
    const auto dim = static_cast<size_t>(cut_.tiles.at(sum));
    ir::Buffer own = p_.buffer(sum);
    own.name = free_name(own.name + "_own");
    own.shape[dim] = e_.const_int(cut_.width);
    p_.buffers.push_back(std::move(own));
    const BufferId id(p_.buffers.size() - 1);
    own_[sum] = id;
    const std::vector<int64_t> shape = p_.tile_shape(id);
    const std::vector<ExprId> zero(shape.size(), e_.const_int(0));
    ir::TileOp copy;
    copy.kind = ir::OpKind::copy;
    copy.operands = {{sum, zero, shape}, {id, zero, shape}};
    copy.operands[0].offsets[dim] = first_;
    const StmtId s(p_.stmts.size());
    p_.stmts.push_back({std::move(copy), p_.stmt(loop_).location});
    return s;
  }

  void narrow(StmtId s) {
    if (const auto* loop = p_.as<ir::Loop>(s); loop && loop->kind == ir::LoopKind::parallel) {
      const auto along = cut_.loops.find(s);
      return along == cut_.loops.end() ? void() : narrow_loop(s, along->second);
    }
    auto* op = std::get_if<ir::TileOp>(&p_.stmts[s.value].node);
    if (!op) return;
    for (ir::Region& r : op->operands) {
      const auto tile = cut_.tiles.find(r.buffer);
      if (tile == cut_.tiles.end()) continue;
      r.extents[static_cast<size_t>(tile->second)] = cut_.width;
      if (const auto own = own_.find(r.buffer); own != own_.end()) r.buffer = own->second;
    }
    if (const auto at = cut_.regions.find(s); at != cut_.regions.end()) {
      ir::Region& r = op->operands[static_cast<size_t>(at->second.first)];
      const auto dim = static_cast<size_t>(at->second.second);
      r.extents[dim] = cut_.width;
      r.offsets[dim] = e_.add(r.offsets[dim], first_);
    }
  }

  void narrow_loop(StmtId s, VarId along) {
    OfShare share(e_, cut_, own_, along, first_);
    auto& loop = std::get<ir::Loop>(p_.stmts[s.value].node);
    for (size_t i = 0; i < loop.vars.size(); ++i)
      if (loop.vars[i] == along) loop.extents[i] = e_.const_int(cut_.width);
    const ir::Block body = loop.body;
    ir::for_each_statement(p_, body, [&](StmtId inner, int) {
      if (auto* branch = std::get_if<ir::Branch>(&p_.stmts[inner.value].node))
        branch->condition = share.rewrite(branch->condition);
      auto* store = std::get_if<ir::Store>(&p_.stmts[inner.value].node);
      if (!store) return;
      ir::visit_exprs(*store, [&](ExprId& e) { e = share.rewrite(e); });
      share.indices(store->buffer, store->indices);
      store->buffer = share.buffer(store->buffer);
    });
  }

  ir::Program& p_;
  ir::ExprPool& e_;
  const int kernel_;
  const StmtId loop_;
  const EpilogueCut& cut_;
  const ExprId first_;  // of the share's elements
  std::map<BufferId, BufferId> own_;
};

}  // namespace

std::string share_refusal(const ir::Program& p, int kernel, StmtId loop, int64_t parts,
                          const analysis::KernelOps& ops) {
  const std::string why = analysis::epilogue_cut(p, kernel, loop, parts, &ops).refusal;
  return why.empty() ? "" : "what follows it cannot be shared: " + why;
}

void share_sums(ir::Program& form, int kernel, StmtId loop, VarId part, int64_t parts) {
  const EpilogueCut cut = analysis::epilogue_cut(form, kernel, loop, parts);
  if (cut.refusal.empty()) Sharing(form, kernel, loop, part, cut).run();
}

}  // namespace tilegen::expand
