// Products of a warpgroup from operands in every form, laid out here as the PTX ISA draws them.
#include "specialised_gemm.h"

namespace tilegen::sim::test {
namespace {

constexpr int64_t kN = 32, kK = 32;  // two k steps of 16

// Where element (row, k) of an operand of `rows` rows lies, in elements of 2 bytes.
int64_t place(int swizzle, bool k_major, int64_t rows, int64_t row, int64_t k) {
  const int64_t fast = k_major ? k : row, slow = k_major ? row : k, fast_extent = k_major ? kK : rows;
  const int64_t slow_extent = k_major ? rows : kK;
  if (swizzle == 0)  // core matrices of 8 x 8, one along the fast dimension after the other
    return (slow / 8 * (fast_extent / 8) + fast / 8) * 64 + slow % 8 * 8 + fast % 8;
  // Columns of `width` elements, each all rows deep; units of 8 are XORed by the 128-byte line they lie in.
  const int64_t width = swizzle / 2, e = fast / width * (slow_extent * width) + slow * width + fast % width;
  return (e / 8 ^ (e / 64) % (swizzle / 16)) * 8 + e % 8;
}

thread::MatrixForm form(int swizzle, bool k_major, int64_t rows) {
  const int64_t fast = k_major ? kK : rows;
  if (swizzle == 0 && k_major) return {0, true, 128, fast / 8 * 128};
  if (swizzle == 0) return {0, false, fast / 8 * 128, 128};  // the fields change their parts
  return {swizzle, k_major, (k_major ? rows : kK) * swizzle, int64_t{8} * swizzle};
}

// The steps lie where the first element of each does, the swizzle left out.
std::vector<int64_t> steps(int swizzle, bool k_major, int64_t rows) {
  if (swizzle == 0) return {0, place(0, k_major, rows, 0, 16)};
  if (!k_major) return {0, 16 * swizzle / 2};
  return {0, 16 / (swizzle / 2) * (rows * swizzle / 2) + 16 % (swizzle / 2)};
}

float a_value(int64_t i, int64_t k) { return static_cast<float>((i * 3 + k * 7 + i / 9) % 11) - 5; }
float b_value(int64_t k, int64_t j) { return static_cast<float>((j * 5 + k * 2 + k / 7) % 9) - 4; }

struct ProductProgram : GpuProgram {
  MemoryId as, bs, acc, ar;
  thread::StmtId fence, product, wait;

  // a_swizzle < 0: A in registers.
  ProductProgram(int a_swizzle, bool a_k, int b_swizzle, bool b_k, bool proxy_fence = true)
      : GpuProgram(128) {
    const MemoryId a = tensor("A", DType::f16), b = tensor("B", DType::f16), c = tensor("C", DType::f32);
    as = shared("As", DType::f16, 64 * kK, 1, 0), bs = shared("Bs", DType::f16, kN * kK, 1, 4096);
    acc = registers("acc", DType::f32, kN / 2), ar = registers("ar", DType::f16, 16);
    const auto fill = [&](MemoryId to, MemoryId from, int64_t elements) {
      loop(i(elements / 128), LoopForm::serial,
           [&](E j) { store(to, j * 128 + thread(), load(from, j * 128 + thread()), "fill#0"); });
    };
    if (a_swizzle >= 0) fill(as, a, 64 * kK);
    fill(bs, b, kN * kK);
    if (a_swizzle < 0)
      loop(i(16), LoopForm::unrolled, [&](E r) {
        // Two elements along k a register of 32 bits; then the row 8 below, then 8 further along k.
        const E row = warp() * 16 + lane() / 4 + r / 2 % 2 * 8, k = r / 4 * 8 + lane() % 4 * 2 + r % 2;
        store(ar, r, load(a, row * kK + k), "fill#1");
      });
    if (proxy_fence) add(thread::ProxyFence{}, "fill#0");
    barrier();
    fence = add(thread::WarpgroupFence{}, "gemm#0");
    thread::WarpgroupMma m;
    m.atom = "wgmma.m64n32k16.f32.f16.f16";
    m.a = a_swizzle < 0 ? ar : as, m.b = bs, m.c = acc;
    m.a_index = m.b_index = m.c_index = i(0).id;
    m.a_steps = a_swizzle < 0 ? std::vector<int64_t>{0, 8} : steps(a_swizzle, a_k, 64);
    m.b_steps = steps(b_swizzle, b_k, kN);
    m.a_form = form(std::max(a_swizzle, 0), a_k, 64), m.b_form = form(b_swizzle, b_k, kN);
    m.accumulate = (i(0) == 1).id;
    product = add(m, "gemm#0");
    add(thread::WarpgroupCommit{}, "gemm#0");
    wait = add(thread::WarpgroupWait{0, {acc}}, "gemm#0");
    loop(i(kN / 2), LoopForm::unrolled, [&](E r) {
      const E row = warp() * 16 + lane() / 4 + r / 2 % 2 * 8, column = r / 4 * 8 + lane() % 4 * 2 + r % 2;
      store(c, row * kN + column, load(acc, r), "copy#0");
    });
  }
};

struct ProductData {
  std::vector<uint16_t> a, b;
  std::vector<float> c, expected;
  ProductData(int a_swizzle, bool a_k, int b_swizzle, bool b_k)
      : a(64 * kK), b(kN * kK), c(64 * kN, -1), expected(64 * kN) {
    for (int64_t k = 0; k < kK; ++k) {
      for (int64_t i = 0; i < 64; ++i)
        a[a_swizzle < 0 ? i * kK + k : place(a_swizzle, a_k, 64, i, k)] = f16_bits(a_value(i, k));
      for (int64_t j = 0; j < kN; ++j) b[place(b_swizzle, b_k, kN, j, k)] = f16_bits(b_value(k, j));
      for (int64_t i = 0; i < 64; ++i)
        for (int64_t j = 0; j < kN; ++j) expected[i * kN + j] += a_value(i, k) * b_value(k, j);
    }
  }
  Arguments arguments() { return Arguments().tensor(a).tensor(b).tensor(c); }
};

// `verified`: the verifier has nothing against it.
SimResult run_product(const ProductProgram& g, ProductData& data, const SimOptions& options = {},
                      bool verified = true) {
  EXPECT_EQ(g.problems().empty(), verified);
  const Arguments a = data.arguments();
  auto result = simulate(g.p, sm90a(), a.slots, a.extents, options);
  EXPECT_TRUE(static_cast<bool>(result)) << (result ? "" : result.error().to_text());
  return result ? *result : SimResult{};
}

TEST(SimWarpgroupProduct, OperandsOfEveryForm) {
  struct Form {
    int swizzle;
    bool k_major;
  };
  // The tiles are 64 and 32 rows, and 32 k, wide: wider swizzles have no whole row along them.
  const std::vector<Form> a_forms = {{-1, true}, {64, true},  {32, true},  {0, true},
                                     {0, false}, {32, false}, {64, false}, {128, false}};
  const std::vector<Form> b_forms = {{64, true}, {32, true}, {0, true}, {0, false}, {32, false}, {64, false}};
  for (const Form& a : a_forms)
    for (const Form& b : b_forms) {
      const ProductProgram g(a.swizzle, a.k_major, b.swizzle, b.k_major);
      ProductData data(a.swizzle, a.k_major, b.swizzle, b.k_major);
      EXPECT_EQ(texts(run_product(g, data)), "") << a.swizzle << a.k_major << " " << b.swizzle << b.k_major;
      EXPECT_EQ(data.c, data.expected) << a.swizzle << a.k_major << " " << b.swizzle << b.k_major;
    }
}

// Every finding is of that kind; or some, where others follow from it.
void expect_product(FindingKind kind, bool a_in_registers, const std::function<void(ProductProgram&)>& change,
                    bool proxy_fence = true, bool alone = true) {
  for_each_schedule([&](const SimOptions& options) {
    const int a = a_in_registers ? -1 : 64;
    ProductProgram g(a, true, 64, true, proxy_fence);
    change(g);
    ProductData data(a, true, 64, true);
    const Arguments arguments = data.arguments();
    const auto r = simulate(g.p, sm90a(), arguments.slots, arguments.extents, options);
    bool found = false;
    for (const Finding& f : r->findings) {
      found |= f.kind == kind;
      EXPECT_TRUE(f.kind == kind || !alone) << order_name(options) << f.to_text();
    }
    EXPECT_TRUE(found) << order_name(options) << texts(*r);
  });
}

TEST(SimWarpgroupProduct, OperandsWrittenByThreadsNeedAProxyFence) {
  expect_product(
      FindingKind::proxy_not_fenced, false, [](ProductProgram&) {}, false);
}

TEST(SimWarpgroupProduct, ReadsTheValuesThatAWrongFormGives) {
  // Along rows of the wrong order: every element is read, of other rows.
  ProductProgram g(0, true, 64, true);
  auto& m = std::get<thread::WarpgroupMma>(g.p.stmts[g.product.value].node);
  std::swap(m.a_form.leading_bytes, m.a_form.stride_bytes);
  ProductData data(0, true, 64, true);
  const SimResult r = run_product(g, data);
  EXPECT_NE(data.c, data.expected);
}

TEST(SimWarpgroupProduct, RegistersOfAAreTakenUntilTheWait) {
  const auto insert_behind = [](ProductProgram& g, thread::StmtId behind, thread::StmtNode node) {
    auto& body = g.p.body;
    body.insert(std::find(body.begin(), body.end(), behind) + 1, g.p.add(std::move(node), "fill#2"));
  };
  expect_product(FindingKind::register_in_flight, true, [&](ProductProgram& g) {
    insert_behind(g, g.product, thread::Store{g.ar, g.i(3).id, g.num(0, DType::f16).id, {}});
  });
  expect_product(FindingKind::product_not_fenced, true, [&](ProductProgram& g) {
    insert_behind(g, g.fence, thread::Store{g.ar, g.i(3).id, g.num(0, DType::f16).id, {}});
  });
  // After the wait they are free.
  ProductProgram g(-1, true, 64, true);
  insert_behind(g, g.wait, thread::Store{g.ar, g.i(3).id, g.num(0, DType::f16).id, {}});
  ProductData data(-1, true, 64, true);
  EXPECT_EQ(texts(run_product(g, data)), "");
  EXPECT_EQ(data.c, data.expected);
}

TEST(SimWarpgroupProduct, OperandsMayBeWrittenBehindTheWaitAndABarrier) {
  for (int removed : {0, 1, 2})
    for_each_schedule([&](const SimOptions& options) {
      ProductProgram g(64, true, 64, true);
      g.open = {&g.p.body};
      if (removed != 1) g.barrier();
      g.store(g.bs, g.thread(), g.num(7, DType::f16), "fill#3");
      if (removed == 2) g.p.stmts[g.wait.value].node = thread::WarpgroupWait{1, {g.acc}};
      ProductData data(64, true, 64, true);
      const SimResult r = run_product(g, data, options, removed != 2);
      if (removed == 0) {
        EXPECT_EQ(texts(r), "");
        EXPECT_EQ(data.c, data.expected);
      }
      // Each warp waits for the products of the whole warpgroup.
      if (removed == 1) {
        EXPECT_EQ(texts(r), "");
      }
      if (removed == 2) {
        ASSERT_EQ(r.findings.size(), 2u) << texts(r);
        EXPECT_EQ(r.findings[0].kind, FindingKind::register_in_flight) << texts(r);
        EXPECT_EQ(r.findings[1].kind, FindingKind::operand_in_flight) << texts(r);
      }
    });
}

TEST(SimWarpgroupProduct, WarpsThatDoNotMeet) {
  expect_product(
      FindingKind::deadlock, false,
      [](ProductProgram& g) {
        auto& body = g.p.body;
        const auto at = std::find(body.begin(), body.end(), g.product);
        thread::Branch branch{(g.warp() < 3).id, {*at}, {}};
        *at = g.p.add(std::move(branch), "if");
      },
      true, false);
}

}  // namespace
}  // namespace tilegen::sim::test
