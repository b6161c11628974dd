#include "ir/text_names.h"

#include <unordered_set>
#include <utility>

#include "ir/text.h"
#include "ir/text_grammar.h"

namespace tilegen::ir::text {
namespace {

constexpr size_t kSuffixRoom = 12;  // "_" and a 32-bit count

std::string with_plain_characters(const std::string& name) {
  if (is_plain_name(name)) return name;
  std::string plain;
  for (char c : name) {
    bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    plain += kept ? c : '_';
  }
  if (plain.empty() || (plain[0] >= '0' && plain[0] <= '9')) plain.insert(0, "_");
  if (plain.size() > kMaxNameLength) plain.resize(kMaxNameLength);
  return plain;
}

class Namer {
 public:
  explicit Namer(const Program& p) : p_(p) {
    table_.vars.resize(p.vars.size());
    table_.buffers.resize(p.buffers.size());
    table_.kernels.resize(p.kernels.size());
    for (const Var& v : p.vars) wanted_.insert(with_plain_characters(v.name));
    for (const Buffer& b : p.buffers)
      if (b.report == Report::none) wanted_.insert(with_plain_characters(b.name));
    for (const Kernel& k : p.kernels) wanted_.insert(with_plain_characters(k.name));
    for (const CompileParam& c : p.compile_params) wanted_.insert(with_plain_characters(c.name));
  }

  NameTable run() {
    table_.program = with_plain_characters(p_.name);
    for (const CompileParam& param : p_.compile_params)
      claim(param.name, table_.compile_params.emplace_back());
    for (const Param& param : p_.params) {
      if (param.kind == Param::Kind::tensor) {
        if (p_.buffer(param.buffer).report != Report::none) continue;  // no text names it
        claim(p_.buffer(param.buffer).name, table_.buffers[param.buffer.value]);
      } else if (p_.is_presence(param)) {
        table_.vars[param.var.value] = "present(" + table_.buffers[param.buffer.value] + ")";
      } else {
        claim(p_.var(param.var).name, table_.vars[param.var.value]);
      }
    }
    name_kernels();
    for (size_t k = 0; k < p_.kernels.size(); ++k) name_inside(static_cast<int>(k));
    // Not reachable from a kernel: named all the same, so that messages about it can be printed.
    for (size_t i = 0; i < p_.vars.size(); ++i)
      if (table_.vars[i].empty()) table_.vars[i] = with_plain_characters(p_.vars[i].name);
    for (size_t i = 0; i < p_.buffers.size(); ++i)
      if (table_.buffers[i].empty()) table_.buffers[i] = with_plain_characters(p_.buffers[i].name);
    return std::move(table_);
  }

 private:
  struct Frame {
    const Block* block;
    size_t next = 0;
    const Block* then = nullptr;  // block to walk afterwards, in the same scope
    size_t scope_mark = 0;
  };

  // The first free of name, name_1, name_2, ... A suffixed name also keeps clear of every name the program
  // uses.
  template <class Taken>
  std::string free_name(const std::string& name, bool reserved_matters, const Taken& taken) const {
    std::string plain = with_plain_characters(name);
    if (!taken(plain) && !(reserved_matters && is_reserved(plain))) return plain;
    std::string base = plain.substr(0, kMaxNameLength - kSuffixRoom);
    for (size_t n = 1;; ++n) {
      std::string candidate = base + "_" + std::to_string(n);
      if (!taken(candidate) && wanted_.count(candidate) == 0) return candidate;
    }
  }

  void claim(const std::string& name, std::string& out) {
    out = free_name(name, true, [&](const std::string& s) { return scope_.count(s) != 0; });
    scope_.insert(out);
    claimed_.push_back(out);
  }

  void release_since(size_t mark) {
    for (; claimed_.size() > mark; claimed_.pop_back()) scope_.erase(claimed_.back());
  }

  void name_kernels() {
    std::unordered_set<std::string> kernels;
    for (size_t k = 0; k < p_.kernels.size(); ++k) {
      table_.kernels[k] = free_name(p_.kernels[k].name, false, [&](const std::string& s) {
        return scope_.count(s) != 0 || kernels.count(s) != 0;
      });
      kernels.insert(table_.kernels[k]);
    }
  }

  void name_inside(int k) {
    const Kernel& kernel = p_.kernels[k];
    size_t mark = claimed_.size();
    for (VarId v : kernel.block_vars) claim(p_.var(v).name, table_.vars[v.value]);
    for (size_t b = 0; b < p_.buffers.size(); ++b)
      if (p_.buffers[b].kernel == k) claim(p_.buffers[b].name, table_.buffers[b]);
    std::vector<Frame> frames{{&kernel.body, 0, nullptr, claimed_.size()}};
    while (!frames.empty()) {
      Frame& top = frames.back();
      if (top.next == top.block->size()) {
        if (top.then != nullptr) {
          top.block = std::exchange(top.then, nullptr);
          top.next = 0;
          continue;
        }
        release_since(top.scope_mark);
        frames.pop_back();
        continue;
      }
      StmtId id = (*top.block)[top.next++];
      if (const auto* loop = p_.as<Loop>(id)) {
        size_t scope_mark = claimed_.size();
        for (VarId v : loop->vars) claim(p_.var(v).name, table_.vars[v.value]);
        frames.push_back({&loop->body, 0, nullptr, scope_mark});
      } else if (const auto* branch = p_.as<Branch>(id)) {
        frames.push_back({&branch->then_body, 0, &branch->else_body, claimed_.size()});
      }
    }
    release_since(mark);
  }

  const Program& p_;
  NameTable table_;
  std::unordered_set<std::string> wanted_;
  std::unordered_set<std::string> scope_;
  std::vector<std::string> claimed_;
};

}  // namespace

NameTable printable_names(const Program& p) { return Namer(p).run(); }

std::vector<std::string> parameter_names(const Program& p, const NameTable& names,
                                         const std::vector<Var>& parameters) {
  std::unordered_set<std::string> taken(names.compile_params.begin(), names.compile_params.end());
  for (const Param& param : p.params)
    taken.insert(param.kind == Param::Kind::tensor ? names.buffers[param.buffer.value]
                                                   : names.vars[param.var.value]);
  for (const Var& v : parameters)
    if (is_reserved(v.name)) taken.insert(v.name);
  std::vector<std::string> out;
  for (const Var& v : parameters) {
    const std::string plain = with_plain_characters(v.name);
    std::string name = plain;
    for (size_t n = 1; taken.contains(name); ++n)
      name = plain.substr(0, kMaxNameLength - kSuffixRoom) + "_" + std::to_string(n);
    taken.insert(name);
    out.push_back(std::move(name));
  }
  return out;
}

}  // namespace tilegen::ir::text
