// Matrix products as plain multiply-adds: for types without an instruction and tiles that none divides. A
// thread holds a small block of C and reads strips of both operands, vectors where they are aligned.
#include <algorithm>

#include "ir/op_kinds.h"
#include "lower/gpu/gemm_state.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "target/multiply_adds.h"

namespace tilegen::lower {

namespace {

class MultiplyAdds : GemmState {
 public:
  MultiplyAdds(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
               const ir::TileOp& tile_op, const target::MmaAtom& atom, thread::Block& out)
      : GemmState(k, op, plan, tile_op, atom, &out) {}

  void run() {
    place_operands(0, 1);
    if (k_.failed()) return;
    begin_accumulators(2, tile_op_.flag(ir::gemm_attr::clear));
    if (k_.failed()) return;
    multiply_adds();
    finish_accumulators();
  }

 private:
  // Elements of one operand for `depth` steps along k: register (row r of the atom, tile, k) at
  // place(tile, r, k).
  struct Strip {
    const Side* side = nullptr;
    MemoryId registers;
    std::vector<OperandAddresses> addresses;
    RegisterPlaces places;
    int64_t depth = 1;
    bool along_k = false;  // neighbouring k are neighbours in memory and in registers

    int64_t place(int64_t tile, int64_t r, int64_t k) const {
      const int64_t rows = side->atom->registers();
      return along_k ? (tile * rows + r) * depth + k : (k * side->tiles + tile) * rows + r;
    }
  };

  Strip make_strip(const Side& s, int64_t depth) {
    Strip t;
    t.side = &s;
    t.depth = depth;
    t.places = register_places(*s.atom);
    if (!s.shared) return t;
    t.addresses.push_back(lane_addresses(s));
    t.registers = add_registers(k_, s.index == 0 ? "a" : "b", s.type, s.tiles * s.atom->registers() * depth);
    t.along_k = s.place.layout->contiguous_run(s.index == 0 ? s.dims.col : s.dims.row) > 1;
    return t;
  }

  void load_strip(Strip& t, int64_t k, ExprId loop) {
    const Side& s = *t.side;
    if (!s.shared) return;
    const int64_t rows = s.atom->registers();
    auto row_of = [&](int64_t tile, int64_t r) {
      return (s.index == 0 ? t.places.first : t.places.second)[static_cast<size_t>(r)] + tile * atom_rows(s);
    };
    // `run` elements beside each other, or one by one.
    auto fetch = [&](int64_t tile, int64_t r, int64_t dk, int64_t run) {
      OperandAddresses& at = t.addresses[0];
      const int64_t widest = k_.in.target.vector_bytes / ir::dtype_bytes(s.type);
      for (int64_t done = 0; done < run;) {
        int64_t width = std::min(widest, run - done);
        auto first_row = [&] { return row_of(tile, t.along_k ? r : r + done); };
        auto first_k = [&] { return k + (t.along_k ? dk + done : dk); };
        while (width > 1 && ((run - done) % width != 0 || !vector_fits(t, first_row(), first_k(), width)))
          width /= 2;
        const ExprId index = e_.add(at.at(first_row(), first_k(), loop, t.depth), s.slot);
        const int64_t place = t.along_k ? t.place(tile, r, dk + done) : t.place(tile, r + done, dk);
        load_wide(t.registers, place, s.memory, index, width);
        done += width;
      }
    };
    for (int64_t tile = 0; tile < s.tiles; ++tile) {
      if (t.along_k)
        for (int64_t r = 0; r < rows; ++r) fetch(tile, r, 0, t.depth);
      else
        for (int64_t dk = 0; dk < t.depth; ++dk) fetch(tile, 0, dk, rows);
    }
  }

  bool vector_fits(Strip& t, int64_t row, int64_t k, int64_t width) {
    const Side& s = *t.side;
    const int dim = t.along_k == (s.index == 0) ? s.dims.col : s.dims.row;
    if (s.place.layout->contiguous_run(dim) % width != 0) return false;
    const int64_t overhang = s.tiles * atom_rows(s) * (s.index == 0 ? plan_.warps_m : plan_.warps_n);
    if (!t.along_k && overhang > s.place.rows) return false;  // the last rows repeat one address
    return t.addresses[0].aligned(row, k, width);
  }

  void multiply_adds() {
    const bool shared = sides_[0].shared || sides_[1].shared;
    int64_t depth = shared ? 4 : 1;
    while (steps_ % depth != 0) depth /= 2;
    Strip a = make_strip(sides_[0], depth), b = make_strip(sides_[1], depth);
    const bool registers = !sides_[0].shared || !sides_[1].shared;  // their indices must be constants
    if (registers || !target::is_loop_over_k(atom_, tiles_m_, tiles_n_, steps_) || steps_ == depth) {
      for (int64_t k = 0; k < steps_ && !k_.failed(); k += depth) products_at(a, b, k, ExprId());
      return;
    }
    const VarId var = k_.out.add_var("k" + std::to_string(k_.out.vars.size()), ir::VarKind::loop);
    auto mark = k_.ctx.mark();
    k_.ctx.bind(var, 0, steps_ / depth - 1);
    thread::Block body;
    thread::Block* const around = std::exchange(out_, &body);
    products_at(a, b, 0, e_.var(var));
    out_ = around;
    k_.ctx.rollback(mark);
    emit(thread::Loop{var, e_.const_int(steps_ / depth), thread::LoopForm::serial, std::move(body)});
  }

  void products_at(Strip& a, Strip& b, int64_t k, ExprId loop) {
    load_strip(a, k, loop);
    load_strip(b, k, loop);
    auto element = [&](Strip& t, int64_t tile, int64_t r, int64_t dk) {
      const Side& s = *t.side;
      const int64_t row = (s.index == 0 ? t.places.first : t.places.second)[static_cast<size_t>(r)];
      const ExprId index =
          s.shared ? e_.const_int(t.place(tile, r, dk)) : register_of(s, tile * atom_rows(s) + row, k + dk);
      return e_.cast(atom_.c, load(s.shared ? t.registers : s.held.memory, index));
    };
    for (int64_t dk = 0; dk < a.depth; ++dk)
      for (int64_t m = 0; m < tiles_m_; ++m)
        for (int64_t n = 0; n < tiles_n_; ++n)
          for (int64_t i = 0; i < atom_.a_layout.registers(); ++i)
            for (int64_t j = 0; j < atom_.b_layout.registers() && !k_.failed(); ++j) {
              const std::vector<int64_t> at = {a.places.first[static_cast<size_t>(i)],
                                               b.places.second[static_cast<size_t>(j)]};
              const ExprId sum = e_.add(sum_tile(m, n), atom_.c_layout.map().eval(at)[layout::kRegister]);
              const ExprId product = e_.binary(ir::ExprOp::mul, element(a, m, i, dk), element(b, n, j, dk));
              store(sum_, sum, e_.binary(ir::ExprOp::add, load(sum_, sum), product));
            }
  }
};

}  // namespace

void lower_multiply_adds(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
                         const ir::TileOp& tile_op, const target::MmaAtom& atom, thread::Block& out) {
  MultiplyAdds(k, op, plan, tile_op, atom, out).run();
}

}  // namespace tilegen::lower
