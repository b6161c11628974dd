#include <algorithm>
#include <numeric>

#include "random_generator.h"

namespace tilegen::differential {

bool Generator::affordable(int64_t elements) {
  const int64_t cost = elements * multiplier_;
  if (multiplier_ > options_.budget || spent_ + cost > options_.budget) return false;
  spent_ += cost;
  return true;
}

// Extents of the part of an output that belongs to one block.
std::vector<int64_t> Generator::own_extents(const RandomTensor& o) {
  std::vector<int64_t> extents;
  for (size_t d = 0; d < o.shape.size(); ++d)
    extents.push_back(o.grid_of[d] >= 0 ? grid_[static_cast<size_t>(o.grid_of[d])].tile
                                        : std::max<int64_t>(o.shape[d].value, 1));
  return extents;
}

// A region of these extents inside the block's own part, or the element at `points` of it.
std::string Generator::own_region(const RandomTensor& o, const std::vector<int64_t>& extents, bool as_indices,
                                  const std::vector<std::string>& points) {
  const std::vector<int64_t> own = own_extents(o);
  std::string text = o.name + "[";
  for (size_t d = 0; d < own.size(); ++d) {
    std::string at;
    if (o.grid_of[d] >= 0)
      at = grid_[static_cast<size_t>(o.grid_of[d])].name + " * " + std::to_string(own[d]) + " + ";
    at += as_indices ? points[d] : std::to_string(r_.between(0, own[d] - extents[d]));
    text += (d ? ", " : "") + at + (as_indices ? "" : " :+ " + std::to_string(extents[d]));
  }
  return text + "]";
}

void Generator::clamp(const Tile& t) {
  std::string vars, extents, index;
  for (size_t d = 0; d < t.shape.size(); ++d) {
    const std::string v = fresh("v"), comma = d ? ", " : "";
    vars += comma + v;
    index += comma + v;
    extents += comma + std::to_string(t.shape[d]);
  }
  const std::string element = t.name + "[" + index + "]";
  line("parallel " + vars + " in " + extents + " {");
  ++indent_;
  line(element + " = " + bounded({element, 1e30}, t.type, tile_cap(t.type)).text);
  --indent_;
  line("}");
}

void Generator::copy_in() {
  std::vector<const RandomTensor*> sources;
  for (const RandomTensor& t : tensors_)
    if (t.readable) sources.push_back(&t);
  const RandomTensor& x = *sources[static_cast<size_t>(r_.below(static_cast<int64_t>(sources.size())))];
  std::vector<int64_t> extents, kept;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    extents.push_back(d + 3 < x.shape.size() ? 1 : random_tile_extent());
    if (d + 3 >= x.shape.size()) kept.push_back(extents.back());
  }
  if (!affordable(product(extents))) return;
  const DType type = r_.chance(3) ? random_type() : x.type;
  Tile* t = tile_of(x.shape.size() > 3 ? kept : extents, converts(x.type, type) ? type : x.type,
                    r_.pick({MemScope::shared, MemScope::shared, MemScope::fragment, MemScope::local}));
  if (!t) return;
  std::string region = x.name + "[";
  for (size_t d = 0; d < extents.size(); ++d)
    region += (d ? ", " : "") + offset(extents[d]) + " :+ " + std::to_string(extents[d]);
  line("copy " + region + "] -> " + t->name);
  t->written = true;
}

void Generator::copy_out() {
  std::vector<RandomTensor*> outputs;
  for (RandomTensor& t : tensors_)
    if (!t.readable) outputs.push_back(&t);
  if (outputs.empty()) return;
  const RandomTensor& o = *outputs[static_cast<size_t>(r_.below(static_cast<int64_t>(outputs.size())))];
  std::vector<int64_t> extents = own_extents(o);
  if (extents.size() > 4) return;
  for (int64_t& e : extents)
    if (r_.chance(4)) e = r_.between(1, e);
  if (!affordable(product(extents))) return;
  const DType type = r_.chance(3) ? random_type() : o.type;
  Tile* t = tile_of(extents, converts(type, o.type) ? type : o.type,
                    r_.pick({MemScope::shared, MemScope::fragment}));
  if (!t) return;
  ensure_written(*t);
  line("copy " + t->name + " -> " + own_region(o, extents, false, {}));
}

void Generator::copy_tiles() {
  Tile* src = any_tile([](const Tile&) { return true; }, true);
  if (!src || !affordable(product(src->shape))) return;
  const Tile from = *src;
  std::vector<int64_t> extents = from.shape;
  const bool partial = r_.chance(3);
  if (partial)
    for (int64_t& e : extents) e = r_.between(1, e);
  const DType type = r_.chance(2) ? from.type : random_type();
  Tile* dst =
      tile_of(r_.chance(2) && partial ? from.shape : extents, converts(from.type, type) ? type : from.type,
              r_.pick({MemScope::shared, MemScope::fragment, MemScope::local}));
  if (!dst || dst->name == from.name) return;
  if (dst->shape != extents) ensure_written(*dst);
  std::string a, b;
  for (size_t d = 0; d < extents.size(); ++d) {
    const std::string comma = d ? ", " : "", e = " :+ " + std::to_string(extents[d]);
    a += comma + std::to_string(r_.between(0, from.shape[d] - extents[d])) + e;
    b += comma + std::to_string(r_.between(0, dst->shape[d] - extents[d])) + e;
  }
  line("copy " + from.name + "[" + a + "] -> " + dst->name + "[" + b + "]");
  if (dst->shape == extents) dst->written = true;
}

void Generator::fill() {
  Tile* t = any_tile([](const Tile&) { return true; }, false);
  if (!t || !affordable(product(t->shape))) return;
  hidden_ = {t->name};
  std::string region;
  const bool partial = r_.chance(3);
  if (partial) {
    ensure_written(*t);
    for (size_t d = 0; d < t->shape.size(); ++d) {
      const int64_t e = r_.between(1, t->shape[d]);
      region +=
          (d ? ", " : "[") + std::to_string(r_.between(0, t->shape[d] - e)) + " :+ " + std::to_string(e);
    }
    region += "]";
  }
  line("fill " + t->name + region + ", " +
       bounded(expr(t->type, r_.chance(2) ? 0 : 2), t->type, tile_cap(t->type)).text);
  hidden_.clear();
  t->written = true;
}

std::string Generator::part_of(Tile& tile) {
  std::string region;
  for (size_t d = 0; d < tile.shape.size(); ++d) {
    const int64_t e = r_.between(1, tile.shape[d]);
    region +=
        (d ? ", " : "[") + std::to_string(r_.between(0, tile.shape[d] - e)) + " :+ " + std::to_string(e);
    tile.shape[d] = e;
  }
  return region + "]";
}

DType Generator::combined_type(DType from) {
  if (ir::is_float(from) && ir::dtype_bits(from) == 16 && r_.chance(2)) return DType::f32;
  if (ir::is_integer(from) && ir::dtype_bits(from) == 8 && r_.chance(2)) return DType::i32;
  return from;
}

void Generator::cumsum() {
  Tile* src = any_tile([](const Tile& t) { return !ir::is_bool(t.type); }, true);
  if (!src || !affordable(product(src->shape))) return;
  Tile from = view_as_operand(*src);
  const auto axis = static_cast<size_t>(r_.below(static_cast<int64_t>(from.shape.size())));
  const std::string region = r_.chance(3) ? part_of(from) : "";
  const std::string attrs = " {axis=" + std::to_string(axis) + (r_.chance(3) ? ", reverse}" : "}");
  if (r_.chance(2)) return scan(from, region, axis);
  const auto exact = [&](DType to) {
    return !ir::is_float(to) || static_cast<double>(from.shape[axis] + 1) * tile_cap(to) <= exact_limit(to);
  };
  if (r_.chance(4) && from.name == src->name) {
    if (!exact(from.type)) return;
    line("cumsum " + from.name + region + " -> " + from.name + region + attrs);
    if (ir::is_float(from.type)) clamp(*src);
    return;
  }
  const DType to = combined_type(from.type);
  if (!exact(to)) return;
  Tile* dst = tile_of(from.shape, to,
                      r_.pick({MemScope::fragment, MemScope::fragment, MemScope::shared, MemScope::local}));
  if (!dst || dst->name == from.name) return;
  line("cumsum " + from.name + region + " -> " + dst->name + attrs);
  dst->written = true;
  if (ir::is_float(to)) clamp(*dst);
}

// What needs no bound: the largest and smallest of any type, products of integers.
void Generator::scan(const Tile& from, const std::string& region, size_t axis) {
  std::vector<const char*> kinds = {"max", "min"};
  if (!ir::is_float(from.type)) kinds.push_back("product");
  std::string attrs = std::string("{kind=") + r_.pick(std::span<const char* const>(kinds)) +
                      ", axis=" + std::to_string(axis) + (r_.chance(3) ? ", reverse" : "");
  // The first of an exclusive scan is beyond every number.
  if (!ir::is_float(from.type) && r_.chance(2)) attrs += ", exclusive";
  Tile* dst =
      tile_of(from.shape, from.type, r_.pick({MemScope::fragment, MemScope::fragment, MemScope::shared}));
  if (!dst || dst->name == from.name) return;
  const bool carries = region.empty() && r_.chance(2);
  const std::string to = dst->name, carried = carries ? carry_of(from, axis, 1, {to}) : "";
  line("scan " + from.name + region + " -> " + to + carried + " " + attrs + "}");
  for (Tile& t : tiles_) t.written = t.written || t.name == to;
}

void Generator::reduce() {
  Tile* src = any_tile([](const Tile&) { return true; }, true);
  if (!src || !affordable(product(src->shape))) return;
  Tile from = view_as_operand(*src);
  const auto axis = static_cast<size_t>(r_.below(static_cast<int64_t>(from.shape.size())));
  const std::string region = r_.chance(3) ? part_of(from) : "";
  const int64_t length = from.shape[axis];
  std::vector<int64_t> shape = from.shape;
  if (shape.size() == 1 || r_.chance(2))
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  std::vector<const char*> kinds = {"max", "min"};
  if (!ir::is_bool(from.type)) kinds.insert(kinds.end(), {"sum", "sum"});
  if (ir::is_float(from.type) || ir::dtype_kind(from.type) == ir::DTypeKind::signed_int)
    kinds.insert(kinds.end(), {"absmax", "abssum"});
  if (ir::is_integer(from.type)) kinds.push_back("product");
  if (ir::is_integer(from.type) || ir::is_bool(from.type)) kinds.insert(kinds.end(), {"and", "or", "xor"});
  const std::string kind = r_.pick(std::span<const char* const>(kinds));
  const DType to = combined_type(from.type);
  if (ir::is_bool(from.type) && kind == "abssum") return;
  const bool adds = kind == "sum" || kind == "abssum";
  if (adds && ir::is_float(to) && static_cast<double>(length + 1) * tile_cap(to) > exact_limit(to)) return;
  // Onto a tile of these extents, or a view of one of as many elements.
  const bool seen = r_.chance(4);
  Tile* dst =
      tile_of(seen ? std::vector<int64_t>{product(shape)} : shape, to,
              seen ? MemScope::fragment
                   : r_.pick({MemScope::fragment, MemScope::fragment, MemScope::shared, MemScope::local}));
  if (!dst || dst->name == from.name || dst->name == src->name) return;
  const bool accumulate = r_.chance(3);
  if (accumulate) ensure_written(*dst);
  std::string attrs =
      "{kind=" + kind + ", axis=" + std::to_string(axis) + (accumulate ? ", accumulate}" : "}");
  line("reduce " + from.name + region + " -> " + (seen ? reshaped(*dst, shape) : dst->name) + " " + attrs);
  dst->written = true;
  if (adds && ir::is_float(to)) clamp(*dst);
}

// ---- control flow ----

// Cases of an integer that is the same for the block.
void Generator::switch_cases(int depth) {
  line("switch (" + index(2) + ") % 4 {");
  ++indent_;
  std::vector<bool> before;
  for (const Tile& t : tiles_) before.push_back(t.written);
  const std::vector<std::string> cases = {"case " + std::to_string(r_.below(3)), "case 3, -1", "else"};
  for (const std::string& head : cases) {
    if (head != cases[0] && r_.chance(4)) continue;
    line(head + " {");
    ++indent_;
    statements(static_cast<int>(r_.between(1, 2)), depth + 1);
    for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i].written = i < before.size() && before[i];
    --indent_;
    line("}");
  }
  --indent_;
  line("}");
}

void Generator::branch(int depth) {
  if (r_.chance(4)) return switch_cases(depth);
  line("if " + bool_expr(2).text + " {");
  ++indent_;
  std::vector<bool> before;
  for (const Tile& t : tiles_) before.push_back(t.written);
  const auto restore = [&] {
    for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i].written = i < before.size() && before[i];
  };
  statements(static_cast<int>(r_.between(1, 2)), depth + 1);
  restore();
  --indent_;
  if (r_.chance(2)) {
    line("} else {");
    ++indent_;
    statements(static_cast<int>(r_.between(1, 2)), depth + 1);
    restore();
    --indent_;
  }
  line("}");
}

void Generator::loop(int depth) {
  static const char* const kinds[] = {"serial", "serial", "unroll", "pipelined", "pipelined", "vectorized"};
  const std::string kind = kinds[r_.below(6)], v = fresh("v");
  const bool constant = kind == "unroll" || kind == "vectorized";
  std::string begin = r_.chance(3) ? r_.pick({"1", "-2", "3"}) : "0", range;
  int64_t trips = r_.between(0, 4), extent = begin == "0" ? trips : 0;
  if (constant || r_.chance(2)) {
    range = begin + " :+ " + std::to_string(trips);
  } else if (!dims_.empty() && r_.chance(2)) {
    const std::string d = r_.pick(std::span<const std::string>(dims_));
    const int64_t step = r_.pick<int64_t>({8, 16, 32});
    trips = (dim_values_[d] + step - 1) / step;
    extent = 0;
    range = begin + " :+ ceildiv(" + d + ", " + std::to_string(step) + ")";
  } else {
    trips = 3;
    extent = 0;
    range = begin + " :+ " + expr(DType::i64, 1).text + " % 4";
  }
  std::string step;
  if (kind != "vectorized" && r_.chance(5)) step = " step " + std::to_string(r_.between(1, 3));
  const int64_t outer = multiplier_;
  multiplier_ *= std::max<int64_t>(trips, 1);
  if (multiplier_ > options_.budget / 8) {
    multiplier_ = outer;
    return;
  }
  const int other = kind == "serial" ? 0 : 1;
  other_loops_ += other;
  line(kind + " " + v + " in " + range + step +
       (kind == "pipelined" && r_.chance(2) ? " stages " + std::to_string(r_.between(1, 4)) : "") + " {");
  ++indent_;
  vars_.push_back({v, extent});
  std::vector<bool> before;
  for (const Tile& t : tiles_) before.push_back(t.written);
  if (kind == "vectorized")
    uniform_store();
  else
    statements(static_cast<int>(r_.between(1, 3)), depth + 1);
  for (size_t i = 0; i < tiles_.size(); ++i) tiles_[i].written = i < before.size() && before[i];
  vars_.pop_back();
  --indent_;
  line("}");
  other_loops_ -= other;
  multiplier_ = outer;
}

void Generator::statements(int count, int depth) {
  for (int i = 0; i < count; ++i) {
    report();
    statement(depth);
  }
}

void Generator::statement(int depth) {
  if (r_.chance(7)) return chain();
  if (asserts_ && r_.chance(5)) assertion();
  if (depth == 0 && r_.chance(12)) {
    if (r_.chance(4)) return thread_ring();
    return r_.chance(3) ? thread_copies() : thread_block();
  }
  if (r_.chance(16)) return r_.chance(2) ? old_values() : packed_elements();
  const int64_t choice = r_.below(depth < 3 ? 22 : 17);
  if (choice < 3) return copy_in();
  if (choice < 5) return copy_out();
  if (choice < 6) return r_.chance(3) ? view_of_tile() : copy_tiles();
  if (choice < 7) return fill();
  if (choice < 9) return r_.chance(6) ? sparse_gemm() : gemm();
  if (choice < 10) return gemm_loop();
  if (choice < 12) return r_.chance(4) ? cumsum() : reduce();
  if (choice < 16) return parallel();
  if (choice < 17) return r_.chance(3) ? update_shared() : r_.chance(3) ? arg_reduce() : uniform_store();
  if (choice < 19) return branch(depth);
  return r_.chance(5) ? while_loop(depth) : loop(depth);
}

}  // namespace tilegen::differential
