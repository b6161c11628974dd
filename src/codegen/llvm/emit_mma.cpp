// The register-tiled micro-kernel. C lives in SSA values (mr rows of vectors) across the loop over k; each
// step loads every vector of B once and broadcasts every element of A once.
#include "codegen/llvm/host_emitter.h"
#include "codegen/llvm/mma_steps.h"
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

// Steps per trip of the loop: enough to hide the loop's own instructions, few enough to stay small.
int64_t unroll_for(int64_t steps, int64_t products) {
  int64_t u = products >= 16 ? 2 : products >= 8 ? 4 : 8;
  return std::min(u, steps);
}

int64_t lanes_of_atom(const HostMma& m, const MmaTypes& t, const MachineFeatures& f) {
  return lanes_for(m.nr, f.vector_bits / (8 * std::max(4, ir::dtype_bytes(t.c))));
}

class MmaEmitter {
 public:
  MmaEmitter(HostEmitter& k, Builder& b, const MachineFeatures& features, const HostMma& m, MmaTypes t)
      : k_(k),
        b_(b),
        features_(features),
        m_(m),
        types_(t),
        lanes_(lanes_of_atom(m, t, features)),
        vectors_(m.nr / lanes_),
        step_(b, features, t, lanes_, m.pack) {}

  void emit() {
    a_ = k_.place(m_.a, m_.a_index);
    panel_ = k_.place(m_.b, m_.b_index);
    c_ = k_.place(m_.c, m_.c_index);
    load_tile();
    if (step_.biased()) take_off_bias();
    const int64_t steps = m_.k / m_.pack;
    run({steps, unroll_for(steps, m_.mr * vectors_), m_.a_k, m_.b_k}, acc_,
        [&](Value* a, Value* b, int64_t at) { multiply(a, b, at); });
    store_tile();
  }

 private:
  using Place = HostEmitter::Place;
  using Values = std::vector<Value*>;

  llvm::Type* storage(ir::DType t) { return storage_type(b_.getContext(), t); }
  Value* offset(ir::DType t, Value* p, int64_t elements) {
    return elements ? b_.CreateConstGEP1_64(storage(t), p, static_cast<uint64_t>(elements)) : p;
  }
  Value*& acc(int64_t i, int64_t v) { return acc_[static_cast<size_t>(i * vectors_ + v)]; }

  Place c_place(int64_t i, int64_t v) {
    int64_t at = i * m_.c_row + v * lanes_;
    return {offset(types_.c, c_.pointer, at),
            llvm::commonAlignment(c_.align, static_cast<uint64_t>(at * ir::dtype_bytes(types_.c)))};
  }
  void load_tile() {
    acc_.resize(static_cast<size_t>(m_.mr * vectors_));
    for (int64_t i = 0; i < m_.mr; ++i)
      for (int64_t v = 0; v < vectors_; ++v)
        acc(i, v) =
            m_.clear ? step_.zero()
                     : from_storage(b_, types_.c, k_.load_contiguous(c_place(i, v), m_.c, lanes_, nullptr));
  }
  void store_tile() {
    for (int64_t i = 0; i < m_.mr; ++i)
      for (int64_t v = 0; v < vectors_; ++v) {
        Value* r = to_storage(b_, types_.c, round_held(b_, features_, types_.c, acc(i, v)));
        k_.store_contiguous(c_place(i, v), m_.c, r, nullptr, false);
      }
  }

  llvm::Align element_align(ir::DType t) { return llvm::Align(static_cast<uint64_t>(ir::dtype_bytes(t))); }
  MmaSteps::Operand column(Value* b, int64_t at, int64_t v) {
    Place p{offset(types_.b, b, at * m_.b_k + v * lanes_ * m_.pack), element_align(types_.b)};
    return step_.column(k_.load_contiguous(p, m_.b, lanes_ * m_.pack, nullptr));
  }
  void multiply(Value* a, Value* b, int64_t at) {
    std::vector<MmaSteps::Operand> columns;
    for (int64_t v = 0; v < vectors_; ++v) columns.push_back(column(b, at, v));
    for (int64_t i = 0; i < m_.mr; ++i) {
      Place p{offset(types_.a, a, i * m_.a_row + at * m_.a_k), element_align(types_.a)};
      MmaSteps::Operand row = step_.row(k_.load_contiguous(p, m_.a, m_.pack, nullptr));
      for (int64_t v = 0; v < vectors_; ++v)
        acc(i, v) = step_.multiply_add(row, columns[static_cast<size_t>(v)], acc(i, v));
    }
  }
  // Words of a row of A that lie together and are read at once.
  int64_t words_together() const {
    const int64_t steps = m_.k / m_.pack;
    int64_t words = m_.a_k == m_.pack ? features_.vector_bits / 32 : 1;
    while (words > 1 && steps % words != 0) words /= 2;
    return words >= 4 ? words : 1;
  }
  void take_off_bias() {
    const int64_t words = words_together();
    Values sums(static_cast<size_t>(m_.mr), step_.no_bias(std::max<int64_t>(words, 4)));
    run({m_.k / m_.pack / words, 1, m_.a_k * words, 0}, sums, [&](Value* a, Value*, int64_t at) {
      for (int64_t i = 0; i < m_.mr; ++i) {
        Place p{offset(types_.a, a, i * m_.a_row + at * m_.a_k * words), element_align(types_.a)};
        Value*& s = sums[static_cast<size_t>(i)];
        s = step_.add_bias(s, k_.load_contiguous(p, m_.a, words * m_.pack, nullptr));
      }
    });
    for (int64_t i = 0; i < m_.mr; ++i) {
      Value* bias = step_.bias(sums[static_cast<size_t>(i)]);
      for (int64_t v = 0; v < vectors_; ++v) acc(i, v) = b_.CreateAdd(acc(i, v), bias);
    }
  }

  // Elements of A and B from one step to the next.
  struct Walk {
    int64_t steps, unroll, a_step, b_step;
  };
  // body(a, b, n) for every step, a and b pointing `n` steps before the panels' elements; `carried` lives in
  // registers across the loop.
  template <class Body>
  void run(const Walk& walk, Values& carried, Body body) {
    const int64_t steps = walk.steps, unroll = walk.unroll, trips = steps / unroll;
    Value *a = a_.pointer, *b = panel_.pointer;
    if (trips > 1) {
      llvm::BasicBlock* before = b_.GetInsertBlock();
      HostEmitter::CountedLoop loop = k_.begin_counted_loop(b_.getInt64(static_cast<uint64_t>(trips)), "k");
      auto phi = [&](Value* first) {
        auto* p = b_.CreatePHI(first->getType(), 2);
        p->addIncoming(first, before);
        return p;
      };
      llvm::PHINode* a_at = phi(a);
      llvm::PHINode* b_at = phi(b);
      std::vector<llvm::PHINode*> phis;
      for (Value*& v : carried) phis.push_back(phi(v)), v = phis.back();
      for (int64_t u = 0; u < unroll; ++u) body(a_at, b_at, u);
      a = offset(types_.a, a_at, unroll * walk.a_step);
      b = offset(types_.b, b_at, unroll * walk.b_step);
      llvm::BasicBlock* latch = b_.GetInsertBlock();
      a_at->addIncoming(a, latch);
      b_at->addIncoming(b, latch);
      for (size_t n = 0; n < phis.size(); ++n) phis[n]->addIncoming(carried[n], latch);
      k_.end_counted_loop(loop);
    }
    const int64_t left = trips > 1 ? steps - trips * unroll : steps;
    for (int64_t u = 0; u < left; ++u) body(a, b, u);
  }

  HostEmitter& k_;
  Builder& b_;
  const MachineFeatures& features_;
  const HostMma& m_;
  MmaTypes types_;
  int64_t lanes_, vectors_;
  MmaSteps step_;
  Place a_, panel_, c_;
  Values acc_;
};

}  // namespace

void HostEmitter::emit_mma(const HostMma& m) {
  MmaTypes types{program_.memory(m.a).type, program_.memory(m.b).type, program_.memory(m.c).type};
  if (auto why = mma_refusal(types)) return refuse(*why);
  if (m.mr < 1 || m.nr < 1 || m.k < 1 || m.pack < 1 || m.k % m.pack != 0)
    return refuse("a matrix atom of mr=" + std::to_string(m.mr) + " nr=" + std::to_string(m.nr) +
                  " k=" + std::to_string(m.k) + " pack=" + std::to_string(m.pack));
  if (m.tile.k > 0) return emit_matrix_registers(m);
  MmaEmitter(*this, b_, features_, m, types).emit();
}

}  // namespace tilegen::codegen
