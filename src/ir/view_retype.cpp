#include "ir/view_retype.h"

#include <map>
#include <optional>
#include <set>

#include "ir/op_kinds.h"
#include "ir/view_widths.h"

namespace tilegen::ir {
namespace {

class SeenTypes {
 public:
  SeenTypes(const Program& p, const Draft& draft) : p_(p), draft_(draft) {
    for (const Kernel& k : p.kernels)
      for_each_statement(p, k.body, [&](StmtId s, int) {
        if (const auto* store = p.as<Store>(s)) see(*store);
        if (const auto* op = p.as<TileOp>(s)) see(*op);
        if (draft.async_copies.contains(s) || draft.bulk_copies.contains(s)) keep_copied(*p.as<Loop>(s));
      });
  }

  // The type of all operations that have the tile as an operand; nothing where it has to keep its own.
  std::optional<DType> of(BufferId tile) const {
    const auto found = wanted_.find(tile);
    const Buffer& b = p_.buffer(tile);
    if (found == wanted_.end() || found->second.size() != 1 || kept_.contains(tile)) return std::nullopt;
    if (b.scope != MemScope::shared && b.scope != MemScope::fragment) return std::nullopt;
    const DType type = *found->second.begin();
    return same_bits(b.type, type) && !is_packed(type) ? std::optional(type) : std::nullopt;
  }

 private:
  BufferId tile_of(BufferId b) const {
    while (draft_.views.contains(b)) b = draft_.views.at(b).of;
    return b;
  }
  bool in_own_width(BufferId b) const {
    for (; draft_.views.contains(b); b = draft_.views.at(b).of)
      if (has_other_width(p_, draft_.views.at(b))) return false;
    return true;
  }
  bool in_own_type(BufferId b) const { return p_.buffer(b).type == p_.buffer(tile_of(b)).type; }

  void see(const Store& store) {
    if (store.atomic) kept_.insert(tile_of(store.buffer));
    if (store.old) kept_.insert(tile_of(store.old->buffer));
    const ExprNode& value = p_.exprs[store.value];
    if (value.op != ExprOp::load || !in_own_type(store.buffer)) return;
    const Buffer& from = p_.buffer(tile_of(value.object));
    if (from.scope == MemScope::global && from.type == value.type) kept_.insert(tile_of(store.buffer));
  }

  // The bytes of asynchronous copies stay as the tensor has them, whatever view they are copied to.
  void keep_copied(const Loop& copy) {
    for (StmtId s : copy.body)
      if (const auto* store = p_.as<Store>(s)) kept_.insert(tile_of(store->buffer));
  }

  void see(const TileOp& op) {
    if (op.kind == OpKind::fill) return;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const BufferId b = op.operands[i].buffer;
      if (op.kind == OpKind::copy) {
        const MemScope other = p_.buffer(tile_of(op.operands[1 - i].buffer)).scope;
        if (in_own_type(b) && (other == MemScope::global || other == MemScope::shared))
          kept_.insert(tile_of(b));
      } else if (in_own_type(b)) {
        kept_.insert(tile_of(b));
      } else if (in_own_width(b)) {
        wanted_[tile_of(b)].insert(p_.buffer(b).type);
      }
    }
  }

  const Program& p_;
  const Draft& draft_;
  std::map<BufferId, std::set<DType>> wanted_;
  std::set<BufferId> kept_;
};

}  // namespace

void retype_tiles(Program& p, Draft& draft) {
  if (draft.views.empty()) return;
  const SeenTypes seen(p, draft);
  const size_t buffers = p.buffers.size();
  for (size_t i = 0; i < buffers; ++i) {
    const BufferId tile(i);
    const auto type = draft.views.contains(tile) ? std::nullopt : seen.of(tile);
    if (!type) continue;
    Buffer retyped = p.buffer(tile);
    retyped.type = *type;
    draft.views[tile] = {
        BufferId(p.buffers.size()), TileView::Form::reinterpret, {}, {}, p.buffer(tile).type};
    p.buffers.push_back(std::move(retyped));
  }
}

}  // namespace tilegen::ir
