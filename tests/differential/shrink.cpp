#include "shrink.h"

#include <cctype>
#include <set>

#include "check/check_program.h"
#include "ir/store_parts.h"
#include "ir/text.h"

namespace tilegen::differential {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::Program;

namespace {

// ---- places of a program ----

template <class Visit>
void each_expr(ir::Stmt& s, Visit&& visit) {
  if (auto* loop = std::get_if<ir::Loop>(&s.node)) {
    visit(loop->begin);
    for (ExprId& e : loop->extents) visit(e);
  } else if (auto* branch = std::get_if<ir::Branch>(&s.node)) {
    visit(branch->condition);
  } else if (auto* store = std::get_if<ir::Store>(&s.node)) {
    ir::visit_exprs(*store, visit);
  } else if (auto* op = std::get_if<ir::TileOp>(&s.node)) {
    for (ir::Region& r : op->operands)
      for (ExprId& e : r.offsets) visit(e);
    if (op->value.valid()) visit(op->value);
  }
}

// Calls visit(block, position) for statements, outer before inner, until it returns true.
bool find_statement(Program& p, ir::Block& block, const std::function<bool(ir::Block&, size_t)>& visit) {
  for (size_t i = 0; i < block.size(); ++i) {
    if (visit(block, i)) return true;
    ir::Stmt& s = p.stmts[block[i].value];
    if (auto* loop = std::get_if<ir::Loop>(&s.node))
      if (find_statement(p, loop->body, visit)) return true;
    if (auto* branch = std::get_if<ir::Branch>(&s.node))
      if (find_statement(p, branch->then_body, visit) || find_statement(p, branch->else_body, visit))
        return true;
  }
  return false;
}

bool at_statement(Program& p, size_t site, const std::function<void(ir::Block&, size_t)>& change) {
  for (ir::Kernel& k : p.kernels)
    if (find_statement(p, k.body, [&](ir::Block& b, size_t i) {
          if (site-- != 0) return false;
          change(b, i);
          return true;
        }))
      return true;
  return false;
}

// ---- changes of a program; each does the one at `site` and says whether there is one ----

// The text of an emptied kernel goes with the declarations.
bool empty_kernel(Program& p, size_t site) {
  if (site >= p.kernels.size()) return false;
  p.kernels[site].body.clear();
  return true;
}

bool delete_statement(Program& p, size_t site) {
  return at_statement(p, site,
                      [](ir::Block& b, size_t i) { b.erase(b.begin() + static_cast<ptrdiff_t>(i)); });
}

void splice(ir::Block& block, size_t at, const ir::Block& body) {
  const ir::Block copy = body;
  block.erase(block.begin() + static_cast<ptrdiff_t>(at));
  block.insert(block.begin() + static_cast<ptrdiff_t>(at), copy.begin(), copy.end());
}

ExprId rebuild(ir::ExprPool& e, ExprId root, ExprId from, ExprId to) {
  if (root == from) return to;
  const ExprNode n = e[root];
  const auto inner = [&](ExprId id) { return rebuild(e, id, from, to); };
  if (n.op == ExprOp::load) {
    std::vector<ExprId> indices(e.indices(root).begin(), e.indices(root).end());
    for (ExprId& i : indices) i = inner(i);
    return e.load(n.object, n.type, indices);
  }
  if (ir::expr_arity(n.op) == 0) return root;
  const auto operand = [&](ExprId id) { return id.valid() ? inner(id) : id; };
  return e.operation(n, inner(n.a), operand(n.b), operand(n.c));
}

void replace_var(Program& p, const ir::Block& block, ir::VarId var, ExprId value) {
  const ExprId from = p.exprs.var(var);
  ir::for_each_statement(p, block, [&](ir::StmtId id, int) {
    each_expr(p.stmts[id.value], [&](ExprId& e) { e = rebuild(p.exprs, e, from, value); });
  });
}

// Ways to make one statement plainer.
constexpr size_t kFlattenings = 5 + ir::kMaxAttrs;
bool flatten(Program& p, size_t site) {
  return at_statement(p, site / kFlattenings, [&](ir::Block& b, size_t i) {
    ir::Stmt& s = p.stmts[b[i].value];
    auto* branch = std::get_if<ir::Branch>(&s.node);
    auto* loop = std::get_if<ir::Loop>(&s.node);
    switch (site % kFlattenings) {
      case 0:
        if (branch) splice(b, i, branch->then_body);
        if (loop && loop->kind != ir::LoopKind::parallel) {
          const ir::Loop l = *loop;
          replace_var(p, l.body, l.vars[0], l.begin);
          splice(b, i, l.body);
        }
        break;
      case 1:
        if (branch) splice(b, i, branch->else_body);
        break;
      case 2:
        if (branch) branch->else_body.clear();
        if (loop && loop->kind != ir::LoopKind::parallel) {
          loop->kind = ir::LoopKind::serial;
          loop->num_stages = 0;
        }
        break;
      case 3:
        if (loop && loop->kind != ir::LoopKind::parallel) loop->extents[0] = p.exprs.const_int(1);
        if (auto* op = std::get_if<ir::TileOp>(&s.node)) op->attrs = {};
        break;
      case 4:  // one variable less of a parallel loop
        if (loop && loop->kind == ir::LoopKind::parallel && loop->vars.size() > 1) {
          const ir::VarId v = loop->vars.back();
          loop->vars.pop_back();
          loop->extents.pop_back();
          replace_var(p, ir::Block(loop->body), v, p.exprs.const_int(0));
        }
        break;
      default:
        if (auto* op = std::get_if<ir::TileOp>(&s.node)) op->attrs[site % kFlattenings - 5] = 0;
        break;
    }
  });
}

void collect_nodes(const ir::ExprPool& e, ExprId root, std::vector<ExprId>& out, std::set<uint32_t>& seen) {
  if (!root.valid() || !seen.insert(root.value).second) return;
  out.push_back(root);
  const ExprNode& n = e[root];
  for (ExprId o : {n.a, n.b, n.c}) collect_nodes(e, o, out, seen);
  if (n.op == ExprOp::load)
    for (ExprId i : e.indices(root)) collect_nodes(e, i, out, seen);
}

std::vector<ExprId> replacements(ir::ExprPool& e, ExprId id) {
  const ExprNode n = e[id];
  std::vector<ExprId> list;
  if (n.op == ExprOp::const_int || n.op == ExprOp::const_float) return list;
  for (int64_t v : {0, 1}) list.push_back(e.const_number(static_cast<double>(v), n.type));
  for (ExprId o : {n.a, n.b, n.c})
    if (o.valid() && e.type(o) == n.type) list.push_back(o);
  return list;
}

bool simplify_expression(Program& p, size_t site) {
  for (const ir::Kernel& k : p.kernels) {
    std::vector<ExprId*> slots;
    ir::for_each_statement(p, k.body, [&](ir::StmtId id, int) {
      each_expr(p.stmts[id.value], [&](ExprId& e) { slots.push_back(&e); });
    });
    for (ExprId* slot : slots) {
      std::vector<ExprId> nodes;
      std::set<uint32_t> seen;
      collect_nodes(p.exprs, *slot, nodes, seen);
      for (ExprId node : nodes)
        for (ExprId to : replacements(p.exprs, node))
          if (site-- == 0) {
            *slot = rebuild(p.exprs, *slot, node, to);
            return true;
          }
    }
  }
  return false;
}

// ---- changes of the text ----

struct Number {
  size_t first = 0, length = 0;
  int64_t value = 0;
};

// Whole numbers after the header that are no part of a name or of a fraction; "2.0f32" is left alone.
std::vector<Number> numbers(const std::string& text) {
  std::vector<Number> list;
  const auto word = [&](size_t i) {
    return i < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_' || text[i] == '.');
  };
  for (size_t i = text.find('\n'); i != std::string::npos && i < text.size(); ++i) {
    if (!word(i)) continue;
    size_t end = i, digits = i;
    while (std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
    while (word(end)) ++end;
    const bool range = digits > i && text.compare(digits, 2, "..") == 0;
    if (digits > i && digits - i <= 9 && (range || text.substr(i, end - i).find('.') == std::string::npos))
      list.push_back({i, digits - i, std::stoll(text.substr(i, digits - i))});
    i = end;
  }
  return list;
}

class Shrinker {
 public:
  Shrinker(Case c, const std::function<bool(const Case&)>& fails, int max_tries)
      : best_(std::move(c)), fails_(fails), left_(max_tries) {}

  Case run() {
    if (auto p = ir::parse_program(best_.text, "case.tl", limits_)) attempt_text(ir::print_program(*p));
    for (bool progress = true; progress && left_ > 0;) {
      progress = false;
      progress |= sweep(empty_kernel);
      progress |= sweep(delete_statement);
      progress |= sweep(flatten);
      progress |= drop_declarations();
      progress |= lower_dims();
      progress |= lower_numbers();
      progress |= sweep(simplify_expression);
    }
    return best_;
  }

 private:
  bool attempt(Case candidate) {
    if (left_ <= 0) return false;
    auto p = ir::parse_program(candidate.text, "case.tl", limits_);
    if (!p || !check::check_program(*p, limits_).empty()) return false;
    --left_;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool attempt_text(std::string text) {
    if (text == best_.text) return false;
    Case c = best_;
    c.text = std::move(text);
    return attempt(std::move(c));
  }

  bool sweep(bool (*change)(Program&, size_t)) {
    bool progress = false;
    for (size_t site = 0; left_ > 0;) {
      auto p = ir::parse_program(best_.text, "case.tl", limits_);
      if (!p || !change(*p, site)) break;
      if (attempt_text(ir::print_program(*p)))
        progress = true;
      else
        ++site;
    }
    return progress;
  }

  // Lines of declarations; functions that nothing calls; kernels without statements; strides, facts and
  // readonly of the rest.
  bool drop_declarations() {
    bool progress = false;
    for (size_t at = 0; at < best_.text.size();) {
      const size_t end = best_.text.find('\n', at) + 1;
      if (end == 0) break;
      const std::string line = best_.text.substr(at, end - at);
      const auto starts = [&](const char* s) { return line.rfind(s, 0) == 0; };
      bool dropped = false;
      if (starts("dim ") || starts("param ") || starts("scalar ") || starts("tensor ") || starts("  alloc "))
        dropped = attempt_text(best_.text.substr(0, at) + best_.text.substr(end));
      if (starts("fn "))
        if (const size_t meaning = best_.text.find("\n{ return ", at); meaning != std::string::npos)
          dropped = attempt_text(best_.text.substr(0, at) +
                                 best_.text.substr(best_.text.find('\n', meaning + 1) + 1));
      if (!dropped && starts("kernel "))
        if (const size_t close = best_.text.find("\n}", at); close != std::string::npos)
          dropped = attempt_text(best_.text.substr(0, at) +
                                 best_.text.substr(std::min(close + 3, best_.text.size())));
      for (const char* tail : {" strides", " readonly", " divisible", " >=", " <="})
        if (const size_t cut = line.find(tail);
            !dropped && cut != std::string::npos && !starts("kernel") && line[0] != ' ')
          dropped = attempt_text(best_.text.substr(0, at + cut) + best_.text.substr(end - 1));
      if (dropped)
        progress = true;
      else
        at = end;
    }
    return progress;
  }

  bool lower_dims() {
    bool progress = false;
    for (const auto& [name, value] : std::map<std::string, int64_t>(best_.launch.dims))
      for (int64_t v : {int64_t{0}, int64_t{1}, value / 2, value - 1}) {
        if (v < 0 || v >= best_.launch.dims[name]) continue;
        Case c = best_;
        c.launch.dims[name] = v;
        progress |= attempt(std::move(c));
      }
    return progress;
  }

  // All occurrences of one number together, then one by one.
  bool lower_numbers() {
    bool progress = false;
    std::set<int64_t> values;
    for (const Number& n : numbers(best_.text)) values.insert(n.value);
    for (auto it = values.rbegin(); it != values.rend(); ++it)
      for (int64_t v : {int64_t{1}, *it / 2, *it - 1})
        if (v >= 0 && v < *it && attempt_text(replaced(*it, v, SIZE_MAX))) {
          progress = true;
          break;
        }
    for (size_t i = 0; i < numbers(best_.text).size(); ++i) {
      const int64_t old = numbers(best_.text)[i].value;
      for (int64_t v : {int64_t{0}, int64_t{1}, old / 2, old - 1})
        if (v >= 0 && v < old && attempt_text(replaced(old, v, i))) {
          progress = true;
          break;
        }
    }
    return progress;
  }

  std::string replaced(int64_t old, int64_t value, size_t only) const {
    std::string text = best_.text;
    const std::vector<Number> list = numbers(text);
    for (size_t i = list.size(); i-- > 0;)
      if (list[i].value == old && (only == SIZE_MAX || only == i))
        text.replace(list[i].first, list[i].length, std::to_string(value));
    return text;
  }

  const Limits limits_;
  Case best_;
  const std::function<bool(const Case&)>& fails_;
  int left_;
};

}  // namespace

Case shrink(const Case& c, const std::function<bool(const Case&)>& fails, int max_tries) {
  return Shrinker(c, fails, max_tries).run();
}

}  // namespace tilegen::differential
