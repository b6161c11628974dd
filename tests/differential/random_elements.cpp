// Parallel loops, chains of them, and stores of single elements.
#include <algorithm>
#include <numeric>

#include "random_generator.h"

namespace tilegen::differential {

// Element-wise steps over one shape, one after the other: what loop fusion and store forwarding look for.
void Generator::chain() {
  std::vector<RandomTensor*> outputs;
  for (RandomTensor& t : tensors_)
    if (!t.readable && t.grid_of.size() <= 3 && product(own_extents(t)) <= 2048) outputs.push_back(&t);
  if (outputs.empty()) return;
  RandomTensor& o = *outputs[static_cast<size_t>(r_.below(static_cast<int64_t>(outputs.size())))];
  const std::vector<int64_t> shape = own_extents(o);
  chaining_ = true;
  std::string last;
  for (int64_t steps = r_.between(2, 5); steps > 0 && affordable(2 * product(shape)); --steps) {
    const DType type = steps == 1 ? o.type : r_.chance(2) ? o.type : random_type();
    Tile* t = tile_of(
        shape, type, r_.pick({MemScope::fragment, MemScope::fragment, MemScope::fragment, MemScope::shared}));
    if (!t) break;
    Tile* from = any_tile([](const Tile&) { return true; }, true);
    if (from && from->shape == shape && from->name != t->name && converts(from->type, t->type) &&
        r_.chance(2)) {
      line("copy " + from->name + " -> " + t->name);
      t->written = true;
    } else if (!t->written && r_.chance(3)) {
      ensure_written(*t);
    } else {
      parallel_store(t, nullptr);
    }
    if (t->type == o.type) last = t->name;
  }
  if (!last.empty() && r_.chance(2))
    line("copy " + last + " -> " + own_region(o, shape, false, {}));
  else
    parallel_store(nullptr, &o);
  chaining_ = false;
}

void Generator::parallel() {
  std::vector<RandomTensor*> outputs;
  for (RandomTensor& t : tensors_)
    if (!t.readable && t.grid_of.size() <= 4) outputs.push_back(&t);
  RandomTensor* output = !outputs.empty() && r_.chance(3)
                             ? outputs[static_cast<size_t>(r_.below(static_cast<int64_t>(outputs.size())))]
                             : nullptr;
  Tile* target = nullptr;
  if (!output) {
    const size_t rank = static_cast<size_t>(r_.pick<int64_t>({1, 2, 2, 2, 3}));
    std::vector<int64_t> shape;
    for (size_t d = 0; d < rank; ++d) shape.push_back(random_tile_extent());
    if (rank == 3) shape[0] = r_.between(1, 4);
    target =
        r_.chance(2) ? any_tile([](const Tile& t) { return t.scope != MemScope::local; }, false) : nullptr;
    if (!target)
      target =
          tile_of(shape, random_type(), r_.pick({MemScope::shared, MemScope::fragment, MemScope::fragment}));
    if (!target) return;
  }
  if (!affordable(3 * product(output ? own_extents(*output) : target->shape))) return;
  parallel_store(target, output);
}

void Generator::parallel_store(Tile* target, RandomTensor* output) {
  const std::vector<int64_t> shape = output ? own_extents(*output) : target->shape;
  std::vector<int64_t> extents = shape;
  const bool plain = options_.for_gpu && target && target->scope == MemScope::fragment;
  const bool partial = !output && !plain && r_.chance(5);
  if (partial && target) {
    ensure_written(*target);
    for (int64_t& e : extents) e = r_.between(1, e);
  }
  // Now and then one row or column, which no variable of the loop runs over.
  size_t fixed = shape.size();
  if (target && shape.size() > 1 && others_.chance(6)) {
    std::swap(r_, others_);
    ensure_written(*target);
    fixed = static_cast<size_t>(r_.below(static_cast<int64_t>(shape.size())));
    extents[fixed] = 1;
    std::swap(r_, others_);
  }
  const bool conditional = r_.chance(4);
  if (target && conditional) ensure_written(*target);
  // Loop variables in a random order of the target's dimensions.
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size(); i > 1; --i)
    if (r_.chance(4)) std::swap(order[i - 1], order[static_cast<size_t>(r_.below(static_cast<int64_t>(i)))]);
  const size_t outer_vars = vars_.size();
  std::vector<std::string> points(shape.size());
  std::string vars, ranges;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t d = order[i];
    if (d == fixed) {
      points[d] = std::to_string(others_.below(shape[d]));
      continue;
    }
    const std::string v = fresh("v");
    vars += (vars.empty() ? "" : ", ") + v;
    ranges += (ranges.empty() ? "" : ", ") + constant_text(extents[d]);
    vars_.push_back({v, extents[d]});
    const int64_t slack = r_.between(0, shape[d] - extents[d]);
    points[d] = !plain && r_.chance(8) ? std::to_string(slack + extents[d] - 1) + " - " + v
                : slack                ? v + " + " + std::to_string(slack)
                                       : v;
  }
  const DType type = output ? output->type : target->type;
  std::string element;
  if (output) {
    element = own_region(*output, {}, true, points);
  } else {
    element = target->name + "[";
    for (size_t d = 0; d < points.size(); ++d) element += (d ? ", " : "") + points[d];
    element += "]";
  }
  // Now and then a second tile is written along.
  Tile* second = !output && !partial && r_.chance(3) && fixed == shape.size()
                     ? tile_of(shape, random_type(), r_.pick({MemScope::shared, MemScope::fragment}))
                     : nullptr;
  if (second && (second->name == target->name || (conditional && !second->written))) second = nullptr;
  const std::string second_element = second ? second->name + element.substr(element.find('[')) : "";
  hidden_ = {output ? output->name : target->name};
  if (second) hidden_.push_back(second->name);
  if (target && target->written && r_.chance(2)) {
    same_element_ = {{element, tile_cap(type)}};
    same_type_ = {type};
  }
  in_parallel_ = true;
  line("parallel " + vars + " in " + ranges + " {");
  ++indent_;
  const auto store_to = [&](const std::string& at, DType t) {
    const std::string value = bounded(expr(t, static_cast<int>(r_.between(0, 3))), t, tile_cap(t)).text;
    line(at + " = " + (r_.chance(4) ? named_value(value, t) : value));
  };
  const auto store = [&] {
    if (asserts_ && r_.chance(4)) assertion();
    report_points(product(extents));
    store_to(element, type);
    if (second) store_to(second_element, second->type);
  };
  if (conditional) {
    line("if " + bool_expr(2).text + " {");
    ++indent_;
    const bool nested = r_.chance(3);
    if (nested) {
      line("if " + bool_expr(1).text + " {");
      ++indent_;
    }
    store();
    if (nested) {
      --indent_;
      line("}");
    }
    --indent_;
    if (r_.chance(2)) {
      line("} else {");
      ++indent_;
      store();
      --indent_;
    }
    line("}");
  } else {
    store();
    if (r_.chance(4)) store();
  }
  --indent_;
  line("}");
  in_parallel_ = false;
  hidden_.clear();
  same_element_.clear();
  same_type_.clear();
  vars_.resize(outer_vars);
  if (target && !partial && !conditional && fixed == shape.size()) target->written = true;
  if (second && !conditional) second->written = true;
}

// The value under a name, which an if or a loop may give another one: what it is, in other words.
std::string Generator::named_value(const std::string& value, DType t) {
  const std::string v = fresh("v");
  if (r_.chance(2)) {
    line("let " + v + " = " + value);
    return v;
  }
  line("var " + v + " = " + number_text(t, 0));
  if (r_.chance(2)) {
    line("if " + bool_expr(1).text + " { " + v + " = " + value + " }");
  } else if (r_.chance(4)) {  // a loop that each point leaves by itself
    const std::string c = fresh("v"), most = std::to_string(r_.between(1, 3));
    line("var " + c + " = 0");
    line("while " + c + " < " + most + " and " + bool_expr(1).text + " { " + c + " += 1 " + v + " = " +
         value + (r_.chance(3) ? " if " + bool_expr(1).text + " { break }" : "") + " }");
  } else if (r_.chance(4)) {
    line("serial " + fresh("v") + " in 0 .. min(max(" + expr(DType::i64, 1).text + ", 0), 3) { " + v + " = " +
         value + " }");
  } else {
    const std::string k = fresh("v"), trips = std::to_string(r_.between(1, 3));
    line((r_.chance(2) ? "unroll " : "serial ") + k + " in 0 .. " + trips + " { " + v + " = " + value + " }");
  }
  return v;
}

// One element of a local tile or of an output.
void Generator::uniform_store() {
  if (!affordable(2)) return;
  std::vector<RandomTensor*> outputs;
  for (RandomTensor& t : tensors_)
    if (!t.readable) outputs.push_back(&t);
  if (!outputs.empty() && r_.chance(3)) {
    RandomTensor& o = *outputs[static_cast<size_t>(r_.below(static_cast<int64_t>(outputs.size())))];
    std::vector<std::string> points;
    for (int64_t e : own_extents(o)) points.push_back(std::to_string(r_.below(e)));
    line(own_region(o, {}, true, points) + " = " + bounded(expr(o.type, 2), o.type, tile_cap(o.type)).text);
    return;
  }
  Tile* t = tile_of({r_.between(1, 6)}, random_type(), MemScope::local);
  if (!t || t->scope != MemScope::local) return;
  ensure_written(*t);
  line(t->name + "[" + index_within(t->shape[0]) +
       "] = " + bounded(expr(t->type, 2), t->type, tile_cap(t->type)).text);
}

}  // namespace tilegen::differential
