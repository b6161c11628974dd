#include "one_product.h"

#include <array>
#include <cmath>
#include <cstring>

namespace tilegen::gpu {

double used_share = 0;

namespace {

struct ProductProgram : EngineProgram {
  OperandImage a_image, b_image;

  explicit ProductProgram(const Product& x)
      : EngineProgram(kThreads),
        a_image(x.a, x.atom->a, kRows, x.a_k(), x.atom->a_k()),
        b_image(x.b, x.atom->b, x.n, x.k(), x.atom->k) {
    const int64_t own = x.n / 2;  // elements of C
    const MemoryId a = tensor("A", x.atom->a, a_image.elements()),
                   b = tensor("B", x.atom->b, b_image.elements());
    const MemoryId c = tensor("C", x.atom->c, kThreads * own);
    thread::WarpgroupMma m;
    m.atom = target::warpgroup_instruction_name(*x.atom, x.n);
    m.a = x.a.in_registers ? registers("a", x.atom->a, a_image.elements() / kThreads)
                           : tile("As", x.atom->a, a_image.elements());
    m.b = tile("Bs", x.atom->b, b_image.elements());
    m.c = registers("acc", x.atom->c, own);
    if (x.atom->sparse()) {
      const MemoryId words = tensor("P", DType::u32, kThreads * x.steps);
      m.places = registers("places", DType::u32, x.steps);
      m.places_index = i(0).id;
      take(m.places, words, x.steps);
    }
    if (x.a.in_registers)
      take(m.a, a, a_image.elements() / kThreads);
    else
      spread(a_image.elements(), [&](E j, E in) { store_if(m.a, j, load_if(a, j, in), in); });
    spread(b_image.elements(), [&](E j, E in) { store_if(m.b, j, load_if(b, j, in), in); });
    take(m.c, c, own);
    proxy_fence();
    barrier();
    m.a_index = m.b_index = m.c_index = i(0).id;
    m.a_steps = a_image.steps(), m.b_steps = b_image.steps();
    m.a_form = a_image.matrix_form(), m.b_form = b_image.matrix_form();
    if (x.start == Start::overwrite) m.accumulate = (i(0) == 1).id;
    if (x.start == Start::loop)
      loop(i(2), LoopForm::serial, [&](E round) {
        m.accumulate = (i(0) < round).id;
        multiply(m);
      });
    else
      multiply(m);
    loop(i(own), LoopForm::unrolled, [&](E r) { store(c, thread() * own + r, load(m.c, r)); });
  }

 private:
  void take(MemoryId to, MemoryId from, int64_t each) {
    loop(i(each), LoopForm::unrolled, [&](E r) { store(to, r, load(from, thread() * each + r)); });
  }
  void multiply(const thread::WarpgroupMma& m) {
    add(thread::WarpgroupFence{}, "product");
    add(m, "product");
    add(thread::WarpgroupCommit{}, "product");
    add(thread::WarpgroupWait{0, {m.c}}, "product");
  }
};

// The largest of what is added up, and the sum.
struct Sum {
  double value = 0, largest = 0;
  void add(double x) {
    value += x;
    largest = std::max({largest, std::fabs(x), std::fabs(value)});
  }
};

// What the instruction takes: of 32-bit floats the bits that tf32 has.
double operand(const Matrix& m, int64_t row, int64_t k) {
  constexpr uint64_t kBelowTf32 = 0x1fff;
  return m.type == DType::f32 ? ir::float_from_bits(DType::f32, m.at(row, k) & ~kBelowTf32) : m.value(row, k);
}

Sum expected_sum(const Product& x, const Operands& o, double c, int64_t i, int64_t j) {
  Sum s;
  s.add(x.start == Start::accumulate ? c : 0.0);
  for (int round = 0; round < x.rounds(); ++round)
    for (int64_t k = 0; k < x.a_k(); ++k) s.add(operand(o.a, i, k) * operand(o.b, j, o.k_of(x, i, k)));
  return s;
}

double bound_of(const Product& x, const Sum& s, bool device) {
  const bool bytes = ir::dtype_bytes(x.atom->a) == 1;
  const double bits = !device ? 0x1p-24 : bytes ? 0x1p-13 : 0x1p-23;
  double each = static_cast<double>(x.atom->k + 2) * bits;
  if (x.atom->c == DType::f16) each += 0x1p-10;
  return each * static_cast<double>(x.steps * x.rounds()) * s.largest;
}

double in_type(DType t, double v) {
  return ir::is_float(t) ? ir::float_from_bits(t, ir::float_to_bits(t, v))
                         : static_cast<double>(ir::wrap_to(t, static_cast<int64_t>(v)));
}

std::vector<std::byte> accumulators(const Product& x, const Matrix& c) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(c.type));
  std::vector<std::byte> out(static_cast<size_t>(kRows * x.n) * bytes);
  for (int64_t t = 0; t < kThreads; ++t)
    for (int64_t r = 0; r < x.n / 2; ++r) {
      const Place p = accumulator_place(t, r);
      std::memcpy(&out[static_cast<size_t>(t * (x.n / 2) + r) * bytes],
                  &c.bits[static_cast<size_t>(p.row * x.n + p.column)], bytes);
    }
  return out;
}

std::string compare(const Product& x, const Operands& o, const std::vector<std::byte>& actual, bool device) {
  const auto bytes = static_cast<size_t>(ir::dtype_bytes(x.atom->c));
  for (int64_t t = 0; t < kThreads; ++t)
    for (int64_t r = 0; r < x.n / 2; ++r) {
      const Place p = accumulator_place(t, r);
      uint64_t bits = 0;
      std::memcpy(&bits, &actual[static_cast<size_t>(t * (x.n / 2) + r) * bytes], bytes);
      Matrix one(x.atom->c, 1, 1);
      one.bits[0] = bits;
      const Sum s = expected_sum(x, o, o.c.value(p.row, p.column), p.row, p.column);
      const double got = one.value(0, 0), exact = in_type(x.atom->c, s.value);
      if (got == exact || (std::isnan(got) && std::isnan(exact))) continue;
      const double bound = o.exact ? 0 : bound_of(x, s, device);
      const double off = std::fabs(got - s.value);
      if (std::isfinite(got) && off <= bound) {
        if (device) used_share = std::max(used_share, off / bound);
        continue;
      }
      std::array<char, 160> text;
      std::snprintf(text.data(), text.size(), "element [%d, %d] is %.9g, expected %.9g within %.3g",
                    static_cast<int>(p.row), static_cast<int>(p.column), got, exact, bound);
      return text.data();
    }
  return {};
}

}  // namespace

std::vector<uint32_t> Operands::any_places(const Product& x) {
  std::vector<uint32_t> words(x.atom->sparse() ? static_cast<size_t>(kThreads * x.steps) : 0);
  differential::Random random(static_cast<uint64_t>(x.n + x.steps));
  for (uint32_t& word : words)
    for (int bit = 0; bit < 32; bit += 4) {
      const auto first = static_cast<uint32_t>(random.below(4)),
                 second = (first + 1 + static_cast<uint32_t>(random.below(3))) % 4;
      word |= (first | second << 2) << bit;
    }
  return words;
}

int64_t Operands::k_of(const Product& x, int64_t row, int64_t k) const {
  if (!x.atom->sparse()) return k;
  const int64_t step = k / x.atom->a_k(), own = k % x.atom->a_k();
  const std::vector<int64_t> group = {row, own / 2};
  const uint32_t word = places[static_cast<size_t>(x.atom->places->holders(group)[0] * x.steps + step)];
  const int64_t place = word >> (x.atom->places->register_of(group) * 4 + own % 2 * 2) & 3;
  return step * x.atom->k + own / 2 * 4 + place;
}

bool expect_product(const Product& x, const std::vector<Operands>& all) {
  SCOPED_TRACE(x.name());
  const ProductProgram g(x);
  EngineRun run(g, false);
  bool well = true;
  for (const Operands& o : all) {
    SCOPED_TRACE(o.name);
    Tensors start = {g.a_image.make(o.a), g.b_image.make(o.b), accumulators(x, o.c)};
    if (x.atom->sparse()) {
      const auto* words = reinterpret_cast<const std::byte*>(o.places.data());
      start.emplace_back(words, words + o.places.size() * sizeof o.places[0]);
    }
    well &= run.expect(start,
                       [&](const Executor& by, const Tensors& t) { return compare(x, o, t[2], by.device); });
  }
  return well;
}

}  // namespace tilegen::gpu
