// The copy engine alone: boxes of tensors to shared memory and back, byte for byte as the PTX ISA and the
// driver's description of tensor maps have them: clipped at every edge, swizzled in every way.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine_program.h"
#include "sim/memory_access.h"

namespace tilegen::gpu {
namespace {

constexpr int64_t kGuard = 1024;  // bytes on either side of a box in shared memory

struct Box {
  DType type = DType::f16;
  std::vector<int64_t> extents, box;  // elements, innermost first
  int swizzle = 0;
  int64_t padding = 16;  // bytes between rows

  int64_t bytes() const { return ir::dtype_bytes(type); }
  size_t rank() const { return box.size(); }
  std::vector<int64_t> strides() const {
    std::vector<int64_t> s;
    int64_t pitch = (extents[0] * bytes() + 15) / 16 * 16;
    for (size_t d = 1; d < rank(); ++d) {
      s.push_back(pitch + padding);
      pitch = s.back() * extents[d];
    }
    return s;
  }
  int64_t tensor_elements() const {
    const auto s = strides();
    return (s.empty() ? (extents[0] * bytes() + 15) / 16 * 16 : s.back() * extents.back()) / bytes();
  }
  int64_t box_elements() const {
    int64_t n = 1;
    for (int64_t b : box) n *= b;
    return n;
  }
  // f(byte of the box in shared memory, byte of the tensor; -1 outside) for each element of the box at `at`.
  void for_each(const std::vector<int64_t>& at, const std::function<void(int64_t, int64_t)>& f) const {
    const auto s = strides();
    for (int64_t e = 0; e < box_elements(); ++e) {
      int64_t rest = e, from = 0;
      bool inside = true;
      for (size_t d = 0; d < rank(); ++d) {
        const int64_t x = at[d] + rest % box[d];
        rest /= box[d];
        inside &= x >= 0 && x < extents[d];
        from += x * (d == 0 ? bytes() : s[d - 1]);
      }
      f(swizzled_byte(swizzle, e * bytes()), inside ? from : -1);
    }
  }
  std::string name() const {
    std::string text = std::string(ir::dtype_name(type)) + " swizzle " + std::to_string(swizzle) + " box";
    for (int64_t b : box) text += " " + std::to_string(b);
    return text;
  }
};

// Within, across and beyond each edge, by one dimension and by all; rows from a multiple of 16 bytes on.
// Stores do not begin before the tensor.
std::vector<std::vector<int64_t>> places(const Box& b, bool load) {
  std::vector<std::vector<int64_t>> list = {std::vector<int64_t>(b.rank(), 0)};
  const auto options = [&](size_t d) {
    std::vector<int64_t> all = {1,
                                -1,
                                -(b.box[d] + 1) / 2,
                                -b.box[d],
                                b.extents[d] - b.box[d],
                                b.extents[d] - 1,
                                b.extents[d],
                                b.extents[d] + 3 * b.box[d]};
    const int64_t unit = d == 0 ? std::max<int64_t>(1, 16 / b.bytes()) : 1;
    for (int64_t& x : all) {
      x = (x >= 0 ? x + unit - 1 : x - unit + 1) / unit * unit;
      if (!load) x = std::max<int64_t>(x, 0);
    }
    return all;
  };
  for (size_t d = 0; d < b.rank(); ++d)
    for (int64_t x : options(d)) {
      list.push_back(list[0]);
      list.back()[d] = x;
    }
  for (size_t o = 0; o < 8; ++o) {
    list.push_back({});
    for (size_t d = 0; d < b.rank(); ++d) list.back().push_back(options(d)[(o + d) % (o < 4 ? 4 : 8)]);
  }
  return list;
}

std::vector<std::byte> coordinates_of(const std::vector<std::vector<int64_t>>& places) {
  std::vector<int64_t> flat;
  for (const auto& at : places) flat.insert(flat.end(), at.begin(), at.end());
  std::vector<std::byte> bytes(flat.size() * sizeof(int64_t));
  std::memcpy(bytes.data(), flat.data(), bytes.size());
  return bytes;
}

// Coordinates of round r, from a tensor.
std::vector<ir::ExprId> coordinates(EngineProgram& g, MemoryId at, E r, size_t rank) {
  std::vector<ir::ExprId> list;
  for (size_t d = 0; d < rank; ++d)
    list.push_back(g.load(at, r * static_cast<int64_t>(rank) + static_cast<int64_t>(d)).id);
  return list;
}

// The bits of a NaN are not told.
std::vector<std::byte> numbers(DType type, int64_t count, uint64_t seed) {
  std::vector<std::byte> elements = random_elements(type, count, seed);
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(type));
  for (size_t i = 0; i < elements.size(); i += bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, &elements[i], bytes);
    if (!ir::is_float(type) || !std::isnan(ir::float_from_bits(type, bits))) continue;
    bits = ir::float_to_bits(type, 1);
    std::memcpy(&elements[i], &bits, bytes);
  }
  return elements;
}

uint64_t mark_bits(DType t) { return ir::is_float(t) ? ir::float_to_bits(t, 2) : 2; }

// One box after the other into a tile between guards, all of it as it lies.
void load_boxes(const Box& b) {
  SCOPED_TRACE(b.name());
  const auto at = places(b, true);
  const auto rounds = static_cast<int64_t>(at.size());
  const int64_t guard = kGuard / b.bytes(), tile_elements = b.box_elements() + 2 * guard;
  EngineProgram g(64);
  const MemoryId where = g.tensor("At", DType::i64, rounds * static_cast<int64_t>(b.rank()));
  const MemoryId in = g.tensor("In", b.type, b.tensor_elements());
  const MemoryId raw = g.tensor("Raw", b.type, rounds * tile_elements);
  const MemoryId tile = g.tile("tile", b.type, tile_elements);
  const int full = g.barriers("full", 1, 1), map = g.map(in, b.extents, b.strides(), b.box, b.swizzle);
  g.spread(tile_elements, [&](E j, E inside) { g.store_if(tile, j, g.num(2, b.type), inside); });
  g.proxy_fence();
  g.barrier();
  g.loop(g.i(rounds), LoopForm::serial, [&](E r) {
    g.first_thread([&] {
      g.arrive(full, g.i(0), b.box_elements() * b.bytes());
      g.add(thread::TensorLoad{map, coordinates(g, where, r, b.rank()), tile, g.i(guard).id, full, g.i(0).id},
            "load");
    });
    g.wait_for(full, g.i(0), r % 2);
    g.spread(tile_elements, [&](E j, E inside) {
      g.store_if(raw, r * tile_elements + j, g.load_if(tile, j, inside), inside);
    });
    g.proxy_fence();  // what is read is read before the next box comes
    g.barrier();
  });
  Tensors start = {coordinates_of(at), numbers(b.type, b.tensor_elements(), 11),
                   same_bytes(rounds * tile_elements * b.bytes(), std::byte{0x11})};
  Tensors expected = start;
  const uint64_t mark = mark_bits(b.type);
  for (int64_t r = 0; r < rounds; ++r) {
    std::byte* image = expected[2].data() + r * tile_elements * b.bytes();
    for (int64_t e = 0; e < tile_elements; ++e)
      std::memcpy(image + e * b.bytes(), &mark, static_cast<size_t>(b.bytes()));
    b.for_each(at[static_cast<size_t>(r)], [&](int64_t to, int64_t from) {
      std::byte* element = image + kGuard + to;
      std::memset(element, 0, static_cast<size_t>(b.bytes()));
      if (from >= 0) std::memcpy(element, start[1].data() + from, static_cast<size_t>(b.bytes()));
    });
  }
  EngineRun(g, b.rank() == 2).expect_exactly(start, expected);
}

// The tile filled by threads, one box after the other out of it.
// Rows end at a multiple of 16 bytes. `kind`: elements of the tensor are combined with the box's.
void store_boxes(Box b, std::optional<ir::AtomicKind> kind = std::nullopt) {
  b.extents[0] = (b.extents[0] * b.bytes() + 15) / 16 * 16 / b.bytes();
  SCOPED_TRACE(b.name());
  const auto at = places(b, false);
  const auto rounds = static_cast<int64_t>(at.size());
  EngineProgram g(64);
  const MemoryId where = g.tensor("At", DType::i64, rounds * static_cast<int64_t>(b.rank()));
  const MemoryId in = g.tensor("In", b.type, rounds * b.box_elements());
  const MemoryId out = g.tensor("Out", b.type, b.tensor_elements());
  const MemoryId tile = g.tile("tile", b.type, b.box_elements());
  const int map = g.map(out, b.extents, b.strides(), b.box, b.swizzle);
  g.loop(g.i(rounds), LoopForm::serial, [&](E r) {
    g.spread(b.box_elements(), [&](E j, E inside) {
      g.store_if(tile, j, g.load_if(in, r * b.box_elements() + j, inside), inside);
    });
    g.proxy_fence();
    g.barrier();
    g.first_thread([&] {
      g.add(thread::TensorStore{map, coordinates(g, where, r, b.rank()), tile, g.i(0).id, kind}, "store");
      g.add(thread::BulkCommit{}, "store");
      g.add(thread::BulkWait{0, false}, "store");
    });
    g.barrier();
  });
  const int64_t box_bytes = b.box_elements() * b.bytes();
  Tensors start = {coordinates_of(at), numbers(b.type, rounds * b.box_elements(), 12),
                   kind ? numbers(b.type, b.tensor_elements(), 13)
                        : same_bytes(b.tensor_elements() * b.bytes(), std::byte{0x11})};
  Tensors expected = start;
  for (int64_t r = 0; r < rounds; ++r)
    b.for_each(at[static_cast<size_t>(r)], [&](int64_t from, int64_t to) {
      const std::byte* element = start[1].data() + r * box_bytes + from;
      if (to < 0) return;
      if (kind)
        sim::combine_one(b.type, *kind, sim::decode_one(b.type, element), expected[2].data() + to);
      else
        std::memcpy(expected[2].data() + to, element, static_cast<size_t>(b.bytes()));
    });
  EngineRun(g, b.rank() == 2).expect_exactly(start, expected);
}

// Boxes of a rank, as wide as the swizzle, of odd extents; without a swizzle also rows that are no power of
// two.
Box box_of(size_t rank, DType type, int swizzle) {
  const int64_t bytes = ir::dtype_bytes(type), outer[] = {11, 3, 2, 3};
  Box b;
  b.type = type, b.swizzle = swizzle;
  b.box = {(swizzle == 0 ? 48 : swizzle) / bytes};
  for (size_t d = 1; d < rank; ++d) b.box.push_back(rank == 2 ? 21 : outer[d - 1]);
  for (int64_t x : b.box) b.extents.push_back(x + x / 2 + 1);
  b.extents[0] |= 1;
  return b;
}

const std::vector<int> kSwizzles = {0, 32, 64, 128};
const std::vector<DType> kTypes = {DType::u8, DType::f16, DType::f32, DType::f64};  // 1, 2, 4, 8 bytes

TEST(TensorCopies, LoadsOfEveryRankSwizzleAndElement) {
  for (size_t rank = 1; rank <= 5; ++rank)
    for (int swizzle : kSwizzles)
      for (DType type : kTypes) {
        load_boxes(box_of(rank, type, swizzle));
        if (enough_failures()) return;
      }
}

TEST(TensorCopies, StoresOfEveryRankSwizzleAndElement) {
  for (size_t rank = 1; rank <= 5; ++rank)
    for (int swizzle : kSwizzles)
      for (DType type : kTypes) {
        store_boxes(box_of(rank, type, swizzle));
        if (enough_failures()) return;
      }
}

// Of one kind and type, those that planning has the engine do (analysis/tensor_copy.h).
class TensorReductions : public ::testing::TestWithParam<std::tuple<ir::AtomicKind, DType>> {};

TEST_P(TensorReductions, CombineElements) {
  const auto [kind, type] = GetParam();
  for (size_t rank : {1, 2, 3})
    for (int swizzle : {0, 32, 128})
      if (!enough_failures()) store_boxes(box_of(rank, type, swizzle), kind);
}

std::string reduction_name(const ::testing::TestParamInfo<TensorReductions::ParamType>& info) {
  const auto [kind, type] = info.param;
  return std::string(ir::atomic_text(kind)) + "_" + ir::dtype_name(type);
}

using ir::AtomicKind;
INSTANTIATE_TEST_SUITE_P(Sums, TensorReductions,
                         ::testing::Combine(::testing::Values(AtomicKind::add),
                                            ::testing::Values(DType::f16, DType::bf16, DType::f32,
                                                              DType::i32)),
                         reduction_name);
INSTANTIATE_TEST_SUITE_P(Others, TensorReductions,
                         ::testing::Combine(::testing::Values(AtomicKind::min, AtomicKind::max,
                                                              AtomicKind::bit_and, AtomicKind::bit_or,
                                                              AtomicKind::bit_xor),
                                            ::testing::Values(DType::i32)),
                         reduction_name);

TEST(TensorCopies, EveryTypeKeepsItsBits) {
  for (DType type : {DType::bf16, DType::i8, DType::i32, DType::i64, DType::e4m3, DType::e5m2}) {
    load_boxes(box_of(2, type, 64));
    store_boxes(box_of(2, type, 128));
    if (enough_failures()) return;
  }
}

TEST(TensorCopies, BoxesOfTheGreatestWidth) {
  for (DType type : kTypes) {
    load_boxes({type, {301, 5}, {256, 3}, 0, 0});
    store_boxes({type, {301, 5}, {256, 3}, 0, 32});
    load_boxes({type, {128 / ir::dtype_bytes(type), 300}, {128 / ir::dtype_bytes(type), 256}, 128, 0});
    if (enough_failures()) return;
  }
}

// Two groups under way, each of two boxes, whose tiles are used again once they were read; and what was
// written is there after the wait for whole groups.
TEST(TensorCopies, BulkGroupsInARing) {
  constexpr int64_t kRounds = 7, kRows = 8, kColumns = 64, kBox = kRows * kColumns;
  EngineProgram g(64);
  const MemoryId in = g.tensor("In", DType::f16, kRounds * 2 * kBox),
                 out = g.tensor("Out", DType::f16, kRounds * 2 * kBox);
  const MemoryId seen = g.tensor("Seen", DType::f16, kRounds * 2 * kBox / 64);
  const MemoryId tile = g.tile("tile", DType::f16, 4 * kBox);
  const int map = g.map(out, {2 * kColumns, kRounds * kRows}, {4 * kColumns}, {kColumns, kRows}, 128);
  g.loop(g.i(kRounds), LoopForm::serial, [&](E r) {
    g.first_thread([&] { g.add(thread::BulkWait{1, true}, "store"); });
    g.barrier();
    g.spread(2 * kBox,
             [&](E j, E) { g.store(tile, r % 2 * (2 * kBox) + j, g.load(in, r * (2 * kBox) + j)); });
    g.proxy_fence();
    g.barrier();
    g.first_thread([&] {
      for (int64_t half : {0, 1})
        g.add(
            thread::TensorStore{
                map, {g.i(half * kColumns).id, (r * kRows).id}, tile, (r % 2 * (2 * kBox) + half * kBox).id},
            "store");
      g.add(thread::BulkCommit{}, "store");
    });
  });
  g.first_thread([&] {
    g.add(thread::BulkWait{0, false}, "store");
    g.loop(g.i(kRounds * 2 * kBox / 64), LoopForm::serial,
           [&](E j) { g.store(seen, j, g.load(out, j * 64)); });
  });
  Tensors start = {random_elements(DType::f16, kRounds * 2 * kBox, 5),
                   same_bytes(kRounds * 4 * kBox, std::byte{0x11}),
                   same_bytes(kRounds * 4 * kBox / 64, std::byte{0x11})};
  Tensors expected = start;
  for (int64_t r = 0; r < kRounds; ++r)
    for (int64_t half : {0, 1})
      for (int64_t y = 0; y < kRows; ++y)
        for (int64_t x = 0; x < kColumns; ++x) {
          const int64_t from = (r * 2 + half) * kBox * 2 + swizzled_byte(128, (y * kColumns + x) * 2);
          const int64_t to = ((r * kRows + y) * 2 * kColumns + half * kColumns + x) * 2;
          std::memcpy(&expected[1][static_cast<size_t>(to)], &start[0][static_cast<size_t>(from)], 2);
        }
  for (size_t j = 0; j < expected[2].size() / 2; ++j)
    std::memcpy(&expected[2][j * 2], &expected[1][j * 128], 2);
  EngineRun(g).expect_exactly(start, expected);
}

}  // namespace
}  // namespace tilegen::gpu
