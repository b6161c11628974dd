// Products of 8-bit floats in random programs. Their elements are whole numbers of at most 4, so that every
// sum is exact however many bits an instruction keeps. The numbers are of a series of their own.
#include <algorithm>

#include "random_generator.h"

namespace tilegen::differential {

void Generator::begin_narrow_products(uint64_t seed) {
  of_products_ = Random(seed, "narrow products");
  has_products_ = of_products_.chance(8);
}

void Generator::use_narrow_product() {
  if (!has_products_) return;
  std::swap(r_, of_products_);
  if (r_.chance(4)) narrow_product();
  std::swap(r_, of_products_);
}

// Fills the tile with numbers from -4 to 4, of a tile that is there or of the indices.
void Generator::narrow_elements(const std::string& tile, DType type, const std::vector<int64_t>& shape) {
  const size_t outer_vars = vars_.size();
  const auto v = begin_points(shape);
  std::string mode;
  if (r_.chance(2)) mode = r_.pick({", nearest", ", saturate", ", overflow", ", nearest, overflow"});
  std::string value;
  if (r_.chance(3)) {
    const DType from = r_.pick({DType::f32, DType::f16});
    value = "min(max(" + leaf(from).text + ", " + number_text(from, -4) + "), " + number_text(from, 4) + ")";
  } else {
    value = "cast(f32, (" + v[0] + " * " + std::to_string(r_.between(1, 7)) + " + " + v[1] + " * " +
            std::to_string(r_.between(1, 7)) + ") % 9) - 4.0f32";
  }
  line(tile + "[" + v[0] + ", " + v[1] + "] = cast(" + ir::dtype_name(type) + ", " + value + mode + ")");
  end_points(outer_vars);
}

void Generator::narrow_product() {
  const bool fnuz = r_.chance(4);
  const auto type = [&] {
    return fnuz ? r_.pick({DType::e4m3fnuz, DType::e5m2fnuz}) : r_.pick({DType::e4m3, DType::e5m2});
  };
  const int64_t m = r_.pick<int64_t>({16, 32, 64}), n = r_.pick<int64_t>({8, 16, 32}),
                k = r_.pick<int64_t>({32, 32, 64, 160});
  if (!affordable(m * n * k / 4)) return;
  Tile* sum = tile_of({m, n}, DType::f32, MemScope::fragment);
  if (!sum) return;
  const std::string c = sum->name;
  const bool clear = !sum->written || r_.chance(3), ta = r_.chance(3), tb = r_.chance(2);
  const DType types[] = {type(), type()};
  const std::vector<int64_t> shapes[] = {ta ? std::vector{k, m} : std::vector{m, k},
                                         tb ? std::vector{n, k} : std::vector{k, n}};
  std::string names[2];
  for (size_t i = 0; i < 2; ++i) {
    names[i] = fresh("t");
    allocs_ += "  alloc " + names[i] + ": " + r_.pick({"shared ", "shared ", "fragment "}) +
               ir::dtype_name(types[i]) + "[" + std::to_string(shapes[i][0]) + ", " +
               std::to_string(shapes[i][1]) + "]\n";
    narrow_elements(names[i], types[i], shapes[i]);
  }
  std::string attrs;
  for (const auto& [set, word] :
       {std::pair{ta, "transpose_a"}, {tb, "transpose_b"}, {clear, "clear"}, {r_.chance(2), "promote"}})
    if (set) attrs += (attrs.empty() ? " {" : ", ") + std::string(word);
  line("gemm " + names[0] + ", " + names[1] + " -> " + c + attrs + (attrs.empty() ? "" : "}"));
  const auto made = std::find_if(tiles_.begin(), tiles_.end(), [&](const Tile& t) { return t.name == c; });
  made->written = true;
  clamp(*made);
}

}  // namespace tilegen::differential
