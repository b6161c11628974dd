#include "schedule/form/canonical_form.h"

#include <algorithm>
#include <map>

#include "ir/op_kinds.h"
#include "ir/text.h"
#include "schedule/form/decode_sparse.h"
#include "schedule/form/forward_temporaries.h"
#include "schedule/form/group_stores.h"
#include "schedule/form/order_variables.h"
#include "schedule/form/preload_operands.h"
#include "schedule/form/sparse_products.h"
#include "schedule/form/unroll_copies.h"

namespace tilegen::schedule {

namespace {

// Only element-wise statements of more than one store or op, and loops that are written out, can have another
// form.
bool has_another_form(const ir::Program& p) {
  return std::any_of(p.stmts.begin(), p.stmts.end(), [](const ir::Stmt& s) {
    const auto* loop = std::get_if<ir::Loop>(&s.node);
    return std::holds_alternative<ir::Store>(s.node) ||
           (loop && (loop->kind == ir::LoopKind::serial || loop->kind == ir::LoopKind::unroll));
  });
}

// Of `p`, in its copy.
std::vector<DecodedOperand> decode_products(const ir::Program& p, const target::Target& t,
                                            const plan::Schedule* given, ir::Program& form) {
  std::set<ir::StmtId> expanded;
  for (const auto& [product, why] : expanded_products(p, t, given)) expanded.insert(product);
  return decode_sparse(form, t, expanded);
}

}  // namespace

std::optional<ir::Program> canonical_form(const ir::Program& p, const target::Target& t,
                                          const plan::Schedule* given) {
  const bool sparse = !sparse_products(p).empty(), other = t.has_block_threads() && has_another_form(p);
  if (!sparse && !other) return std::nullopt;
  ir::Program form = p;
  const std::vector<DecodedOperand> decoded =
      sparse ? decode_products(p, t, given, form) : std::vector<DecodedOperand>();
  ir::Program::Written written;
  if (!decoded.empty()) written = {ir::program_hash(p), ir::statement_paths(p)};
  for (const DecodedOperand& d : decoded) {
    written.paths.resize(form.stmts.size());
    const std::string path = written.paths[d.product.value] + "/decode#0";
    written.paths[d.loop.value] = path;
    written.paths[form.as<ir::Loop>(d.loop)->body.front().value] = path + "/store#0";
  }
  if (!t.has_block_threads()) {
    if (decoded.empty()) return std::nullopt;
    form.written = std::make_shared<const ir::Program::Written>(std::move(written));
    return form;
  }
  bool unrolled = false;
  const std::vector<UnrolledCopy> copies = unroll_copies(form, unrolled);
  const bool forwarded = forward_temporaries(form);
  bool ordered = order_variables(form);
  const StoreGroups groups = group_stores(form);
  ordered = order_variables(form) || ordered;  // of loops that were parts of others
  std::vector<Preload> preloads;
  if (!t.warpgroup_mma.empty()) preloads = preload_operands(form);
  if (decoded.empty() && !unrolled && !forwarded && !ordered && groups.parts.empty() && !groups.joined &&
      preloads.empty())
    return std::nullopt;
  if (decoded.empty()) written = {ir::program_hash(p), ir::statement_paths(p)};
  written.paths.resize(form.stmts.size());
  for (const UnrolledCopy& c : copies)
    written.paths[c.made.value] = written.paths[c.source.value] + "/" + c.trip;
  const std::vector<std::string> paths = written.paths;
  for (const auto& [loop, first] : groups.parts) {
    const std::string& path = written.paths[loop.value] = paths[first.value];
    ir::for_each_statement(form, form.as<ir::Loop>(loop)->body, [&](ir::StmtId s, int) {
      written.paths[s.value] = path + paths[s.value].substr(paths[s.value].rfind('/'));
    });
  }
  std::map<ir::StmtId, int> preloads_of;  // by reader
  for (const Preload& made : preloads) {
    const std::string path =
        written.paths[made.reader.value] + "/preload#" + std::to_string(preloads_of[made.reader]++);
    written.paths[made.loop.value] = path;
    written.paths[form.as<ir::Loop>(made.loop)->body.front().value] = path + "/store#0";
  }
  form.written = std::make_shared<const ir::Program::Written>(std::move(written));
  return form;
}

}  // namespace tilegen::schedule
