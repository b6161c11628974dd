#include "ir/draft_exprs.h"

#include <algorithm>
#include "ir/expr_nodes.h"

namespace tilegen::ir {
namespace {

constexpr uint64_t kMaxNodes = 512;
constexpr uint64_t kSmall = 64;  // repeated as often as it is named
constexpr uint16_t kMaxDepth = 100;

}  // namespace

const DraftExprs::Buffers& DraftExprs::reads(ExprId e) {
  const auto [it, fresh] = reads_.try_emplace(e);
  if (!fresh) return it->second;
  Buffers& found = it->second;
  ExprNodes nodes(p_.exprs, {e});
  while (const ExprId id = nodes.next())
    if (const ExprNode& n = p_.exprs[id]; n.op == ExprOp::load) found.insert(n.object);
  return found;
}

bool DraftExprs::touches(ExprId e, const Buffers& written) {
  const auto is_tensor = [&](BufferId b) {
    return p_.buffer(b).scope == MemScope::global && !p_.buffer(b).read_only;
  };
  const bool tensor_written = std::any_of(written.begin(), written.end(), is_tensor);
  const Buffers& read = reads(e);
  return std::any_of(read.begin(), read.end(),
                     [&](BufferId b) { return written.contains(b) || (tensor_written && is_tensor(b)); });
}

bool DraftExprs::is_large(ExprId e, uint64_t uses) {
  for (size_t i = sizes_.size(); i < p_.exprs.size(); ++i) {
    const ExprNode& n = p_.exprs[ExprId(i)];
    uint64_t size = 1;
    const auto add = [&](ExprId id) { size += id.valid() ? sizes_[id.value] : 0; };
    add(n.a), add(n.b), add(n.c);
    if (n.op == ExprOp::load)
      for (ExprId index : p_.exprs.indices(ExprId(i))) add(index);
    sizes_.push_back(std::min<uint64_t>(size, kMaxNodes + 1));
  }
  const uint64_t size = sizes_[e.value];
  return p_.exprs[e].depth > kMaxDepth || size > kMaxNodes ||
         (size > kSmall && size * std::max<uint64_t>(uses, 1) > kMaxNodes);
}

// Names of tiles are those of their kernel, and nothing in it may have the same.
std::string free_tile_name(const Program& p, const Draft& draft, const std::string& wanted) {
  std::set<std::string> taken;
  for (const Buffer& b : p.buffers) taken.insert(b.name);
  for (size_t v = 0; v < p.vars.size(); ++v)
    if (!draft.temporaries.contains(VarId(v))) taken.insert(p.vars[v].name);
  for (const Kernel& k : p.kernels) taken.insert(k.name);
  for (const CompileParam& c : p.compile_params) taken.insert(c.name);
  std::string name = wanted;
  for (size_t n = 1; taken.contains(name); ++n) name = wanted + "_" + std::to_string(n);
  return name;
}

}  // namespace tilegen::ir
