// The register-tiled micro-kernel. C lives in SSA values (mr rows of vectors) across the loop over k; each step loads
// every vector of B once and broadcasts every element of A once.
#include "codegen/llvm/mma_steps.h"

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using thread::HostMma;

namespace {

// Widest power of two that divides nr and fits one register.
int64_t lanes_for(int nr, int64_t register_lanes) {
  int64_t lanes = 1;
  while (lanes * 2 <= register_lanes && nr % (lanes * 2) == 0) lanes *= 2;
  return lanes;
}

// Steps per trip of the loop: enough to hide its own instructions, few enough to stay in the decoded cache.
int64_t unroll_for(int64_t steps, int64_t products) {
  int64_t u = products >= 16 ? 2 : products >= 8 ? 4 : 8;
  return std::min(u, steps);
}

}  // namespace

void KernelEmitter::emit_mma(const HostMma& m) {
  MmaTypes types{program_.memory(m.a).type, program_.memory(m.b).type, program_.memory(m.c).type};
  if (auto why = mma_refusal(types)) return refuse(*why);
  if (m.mr < 1 || m.nr < 1 || m.k < 1 || m.pack < 1 || m.k % m.pack != 0)
    return refuse("a matrix atom of mr=" + std::to_string(m.mr) + " nr=" + std::to_string(m.nr) +
                  " k=" + std::to_string(m.k) + " pack=" + std::to_string(m.pack));
  const int64_t lanes = lanes_for(m.nr, features_.vector_bits / (8 * std::max(4, ir::dtype_bytes(types.c))));
  const int64_t vectors = m.nr / lanes;
  const int64_t steps = m.k / m.pack;
  MmaSteps step(b_, features_, types, lanes, m.pack);

  Place a = place(m.a, m.a_index), b = place(m.b, m.b_index), c = place(m.c, m.c_index);
  llvm::Type* a_type = storage_type(context_, types.a);
  llvm::Type* b_type = storage_type(context_, types.b);
  llvm::Type* c_type = storage_type(context_, types.c);
  auto element_align = [](ir::DType t) { return llvm::Align(static_cast<uint64_t>(ir::dtype_bytes(t))); };
  auto c_place = [&](int64_t i, int64_t v) {
    int64_t offset = i * m.c_row + v * lanes;
    return Place{b_.CreateConstGEP1_64(c_type, c.pointer, static_cast<uint64_t>(offset)),
                 llvm::commonAlignment(c.align, static_cast<uint64_t>(offset * ir::dtype_bytes(types.c)))};
  };

  std::vector<Value*> acc(static_cast<size_t>(m.mr * vectors));
  for (int64_t i = 0; i < m.mr; ++i)
    for (int64_t v = 0; v < vectors; ++v) {
      Value*& r = acc[static_cast<size_t>(i * vectors + v)];
      r = m.clear ? step.zero() : from_storage(b_, types.c, load_contiguous(c_place(i, v), m.c, lanes, nullptr));
    }

  // One accumulation step at pointers a0, b0.
  auto run_step = [&](Value* a0, Value* b0, int64_t at) {
    std::vector<MmaSteps::Operand> columns;
    for (int64_t v = 0; v < vectors; ++v) {
      int64_t offset = at * m.b_k + v * lanes * m.pack;
      Place p{b_.CreateConstGEP1_64(b_type, b0, static_cast<uint64_t>(offset)), element_align(types.b)};
      columns.push_back(step.column(load_contiguous(p, m.b, lanes * m.pack, nullptr)));
    }
    step.next_columns(columns);
    for (int64_t i = 0; i < m.mr; ++i) {
      int64_t offset = i * m.a_row + at * m.a_k;
      Place p{b_.CreateConstGEP1_64(a_type, a0, static_cast<uint64_t>(offset)), element_align(types.a)};
      MmaSteps::Operand row = step.row(load_contiguous(p, m.a, m.pack, nullptr));
      for (int64_t v = 0; v < vectors; ++v) {
        Value*& r = acc[static_cast<size_t>(i * vectors + v)];
        r = step.multiply_add(row, columns[static_cast<size_t>(v)], r);
      }
    }
  };

  step.begin(static_cast<size_t>(vectors));
  const int64_t unroll = unroll_for(steps, m.mr * vectors);
  const int64_t trips = steps / unroll;
  if (trips > 1) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    CountedLoop loop = begin_counted_loop(b_.getInt64(static_cast<uint64_t>(trips)), "k");
    auto carried = [&](Value* first) {
      auto* phi = b_.CreatePHI(first->getType(), 2);
      phi->addIncoming(first, before);
      return phi;
    };
    llvm::PHINode* a_at = carried(a.pointer);
    llvm::PHINode* b_at = carried(b.pointer);
    std::vector<llvm::PHINode*> carried_values;
    auto each_value = [&](auto&& f) {
      for (Value*& r : acc) f(r);
      for (Value*& r : step.corrections()) f(r);
    };
    each_value([&](Value*& r) { carried_values.push_back(carried(r)), r = carried_values.back(); });
    for (int64_t u = 0; u < unroll; ++u) run_step(a_at, b_at, u);
    Value* a_next = b_.CreateConstGEP1_64(a_type, a_at, static_cast<uint64_t>(unroll * m.a_k));
    Value* b_next = b_.CreateConstGEP1_64(b_type, b_at, static_cast<uint64_t>(unroll * m.b_k));
    llvm::BasicBlock* latch = b_.GetInsertBlock();
    a_at->addIncoming(a_next, latch);
    b_at->addIncoming(b_next, latch);
    size_t n = 0;
    each_value([&](Value*& r) { carried_values[n++]->addIncoming(r, latch); });
    end_counted_loop(loop);
    a.pointer = a_next;
    b.pointer = b_next;
  } else {
    for (int64_t u = 0; u < unroll; ++u) run_step(a.pointer, b.pointer, u);
    if (steps > unroll) {
      a.pointer = b_.CreateConstGEP1_64(a_type, a.pointer, static_cast<uint64_t>(unroll * m.a_k));
      b.pointer = b_.CreateConstGEP1_64(b_type, b.pointer, static_cast<uint64_t>(unroll * m.b_k));
    }
  }
  for (int64_t u = 0; u < steps - trips * unroll; ++u) run_step(a.pointer, b.pointer, u);

  for (int64_t i = 0; i < m.mr; ++i)
    for (int64_t v = 0; v < vectors; ++v) {
      Value* r = step.finish(acc[static_cast<size_t>(i * vectors + v)], static_cast<size_t>(v));
      store_contiguous(c_place(i, v), m.c, to_storage(b_, types.c, round_held(b_, types.c, r)), nullptr, false);
    }
}

}  // namespace tilegen::codegen
