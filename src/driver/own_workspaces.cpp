#include "driver/own_workspaces.h"

#include <algorithm>

namespace tilegen::driver {

namespace {

using ir::ExprId;

// Expressions over the parameters of one program, as those of another with the same parameters.
class OverParameters : public ir::ExprRewriter {
 public:
  OverParameters(const ir::Program& from, ir::Program& to)
      : ExprRewriter(from.exprs, to.exprs), from_(from), program_(to) {}

 private:
  ExprId rewrite_var(const ir::ExprNode& n) override {
    for (size_t i = 0; i < program_.params.size(); ++i)
      if (from_.params[i].kind != ir::Param::Kind::tensor && from_.params[i].var == n.var())
        return to_->var(program_.params[i].var, n.type);
    return ExprRewriter::rewrite_var(n);
  }
  const ir::Program& from_;
  const ir::Program& program_;
};

void append(const ir::Program& form, size_t param, ir::Program& out) {
  ir::Buffer b = form.buffer(form.params[param].buffer);
  OverParameters rewriter(form, out);
  for (ExprId& extent : b.shape) extent = rewriter.rewrite(extent);
  out.buffers.push_back(std::move(b));
  out.params.push_back({ir::Param::Kind::tensor, {}, ir::BufferId(out.buffers.size() - 1)});
}

// The version's parameters from `common` on become those from `first` on, between others that it does not
// use.
void spread(thread::ThreadProgram& version, const ir::Program& launched, size_t common, size_t first) {
  const std::vector<thread::Param> own(version.params.begin() + static_cast<long>(common),
                                       version.params.end());
  const int shift = static_cast<int>(first - common);
  for (thread::Memory& m : version.memories)
    if (m.param >= static_cast<int>(common)) m.param += shift;
  for (thread::Guard& g : version.guards)
    if (g.param >= static_cast<int>(common)) g.param += shift;
  version.params.resize(common);
  for (size_t i = common; i < launched.params.size(); ++i) {
    if (i >= first && i < first + own.size()) {
      version.params.push_back(own[i - first]);
      continue;
    }
    const ir::Buffer& b = launched.buffer(launched.params[i].buffer);
    thread::Memory m;
    m.name = b.name;
    m.type = b.type;
    m.alignment = ir::dtype_bytes(b.type);
    m.param = static_cast<int>(i);
    version.params.push_back(
        {thread::Param::Kind::tensor, b.name, b.type, {}, version.add_memory(std::move(m))});
  }
}

}  // namespace

std::shared_ptr<const ir::Program> with_own_workspaces(const ir::Program& program,
                                                       std::span<const SplitProgram> forms,
                                                       std::span<thread::ThreadProgram> versions) {
  const size_t common = program.params.size();
  const auto own = [&](size_t i) { return versions[i].params.size() - common; };
  std::vector<size_t> first;
  auto launched = std::make_shared<ir::Program>();
  for (size_t i = 0; i < versions.size(); ++i) {
    if (own(i) > 0 && launched->params.empty()) *launched = program;
    first.push_back(std::max(common, launched->params.size()));
    for (size_t p = common; p < common + own(i); ++p) append(*forms[i], p, *launched);
  }
  if (launched->params.empty()) return nullptr;
  for (size_t i = 0; i < versions.size(); ++i) spread(versions[i], *launched, common, first[i]);
  return launched;
}

}  // namespace tilegen::driver
