// Matrix products of a block of many threads: per warp a grid of atoms, unrolled. Operands in shared memory
// are loaded into registers one k step ahead of the instructions that use them, or as many as the plan says;
// eight rows of 16 bytes at a time where the atom's layout and the tile's allow it.
#include "lower/gpu/gemm.h"

#include <algorithm>

#include "ir/op_kinds.h"
#include "lower/gpu/gemm_state.h"
#include "lower/gpu/registers.h"
#include "lower/gpu/sparse_places.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "support/diag_codes.h"
#include "target/operand_matrices.h"

namespace tilegen::lower {

using target::MmaAtom;
using target::OperandMatrix;

class GemmLowering : GemmState {
 public:
  GemmLowering(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
               const ir::TileOp& tile_op, const MmaAtom& atom, thread::Block* out)
      : GemmState(k, op, plan, tile_op, atom, out) {}

  void run(int a, int b, int c, bool clear) {
    place_operands(a, b);
    if (k_.failed()) return;
    ahead_ = std::max<int64_t>(1, plan_.steps_ahead);
    begin_accumulators(c, clear);
    if (k_.failed()) return;
    instructions();
    finish_accumulators();
  }

  // ---- in stages

  void prepare() {
    const Current current(*this);
    place_operands(0, 1);
    if (k_.failed()) return;
    make_loaders();
  }
  void load_first(thread::Block& out) {
    out_ = &out;
    mean_current_slots();
    load_step(0);
  }
  void staged(thread::Block& out, WorkBeside beside, const std::function<void()>& next) {
    const Current current(*this);
    out_ = &out;
    beside_ = &beside;
    begin_accumulators(2, tile_op_.flag(ir::gemm_attr::clear));
    for (int64_t step = 0; step < steps_ && !k_.failed(); ++step) {
      mean_current_slots();
      if (step + 1 < steps_) {
        load_step(step + 1);
      } else {
        next();
        out_ = &out;
        beside_ = nullptr;
      }
      multiply(step);
    }
    finish_accumulators();
  }

 private:
  // Registers of one operand for two k steps, and how they are filled.
  struct Loader {
    const Side* side = nullptr;
    MemoryId registers;
    int64_t per_step = 0;
    // Matrix loads by what they take at once.
    std::map<std::vector<std::pair<int64_t, int64_t>>, OperandAddresses> patterns;
    std::vector<OperandMatrix> matrices;  // empty: element by element
    bool transpose = false;
    std::vector<OperandAddresses> elements;
    RegisterPlaces places;
  };

  void make_loaders() {
    a_ = make_loader(sides_[0]);
    b_ = make_loader(sides_[1]);
    if (!atom_.sparse()) return;
    const ValueId words = SparsePlaces::words_of(k_, tile_op_);
    if (!words.valid()) return;  // reported
    places_.emplace(k_, tile_op_, *atom_.places, words, sides_[0].warp_row, lane_);
    place_registers_ = add_registers(k_, "places", ir::DType::u32, std::min(steps_, ahead_ + 1) * tiles_m_);
  }

  void mean_current_slots() {
    GemmState::mean_current_slots();
    if (places_) places_->mean_current_slot();
  }

  ExprId places_register(int64_t tile, int64_t step) {
    return e_.const_int(step % (ahead_ + 1) * tiles_m_ + tile);
  }

  void load_step(int64_t step) {
    load_step(a_, step);
    load_step(b_, step);
    for (int64_t tile = 0; places_ && tile < tiles_m_; ++tile)
      store(place_registers_, places_register(tile, step), places_->word(tile * atom_.m, step * atom_.k));
  }

  Loader make_loader(const Side& s) {
    Loader l;
    l.side = &s;
    if (!s.shared) return l;
    const int64_t registers = s.atom->registers();
    l.per_step = s.tiles * registers;
    l.registers =
        add_registers(k_, s.index == 0 ? "a" : "b", s.type, std::min(steps_, ahead_ + 1) * l.per_step);
    choose_matrix_loads(l);
    if (l.matrices.empty()) {
      l.places = register_places(*s.atom);
      l.elements.push_back(lane_addresses(s));
    }
    return l;
  }

  void choose_matrix_loads(Loader& l) {
    const Side& s = *l.side;
    const int bytes = ir::dtype_bytes(s.type);
    if (bytes > 4) return;
    const int64_t chunk = target::kMatrixRowBytes / bytes;
    std::vector<OperandMatrix> matrices = target::operand_matrices(atom_, s.index);
    if (matrices.empty()) return;
    const layout::Layout& layout = *s.place.layout;
    const int k_dim = s.index == 0 ? s.dims.col : s.dims.row,
              row_dim = s.index == 0 ? s.dims.row : s.dims.col;
    if (layout.contiguous_run(k_dim) % chunk == 0)
      l.transpose = false;
    else if (bytes == 2 && layout.contiguous_run(row_dim) % chunk == 0)
      l.transpose = true;
    else
      return;
    // Every row of every matrix must begin at a multiple of 16 bytes.
    OperandAddresses rows = matrix_rows(s, {{0, 0}}, l.transpose);
    for (int64_t step = 0; step < steps_; ++step)
      for (int64_t tile = 0; tile < s.tiles; ++tile)
        for (const OperandMatrix& m : matrices)
          if (!rows.aligned(tile * atom_rows(s) + m.row, step * atom_k(s) + m.k, chunk)) return;
    l.matrices = std::move(matrices);
  }

  // The rows that the lanes address: matrix i of a load lies `relative[i]` after the first.
  OperandAddresses matrix_rows(const Side& s, const std::vector<std::pair<int64_t, int64_t>>& relative,
                               bool transpose) {
    ExprId row = s.warp_row, k = e_.const_int(0);
    const ExprId in_matrix = e_.floormod(lane_, e_.const_int(8));
    (transpose ? k : row) = e_.add(transpose ? k : row, in_matrix);
    for (size_t bit = 1; bit < relative.size(); bit *= 2) {
      const ExprId digit =
          e_.floormod(e_.floordiv(lane_, e_.const_int(static_cast<int64_t>(8 * bit))), e_.const_int(2));
      row = e_.add(row, e_.mul(digit, relative[bit].first));
      k = e_.add(k, e_.mul(digit, relative[bit].second));
    }
    OperandAddresses::Place place = s.place;
    if (transpose) place.together = target::kMatrixRowBytes / ir::dtype_bytes(s.type);
    return {k_, place, k_.simplified(row), k_.simplified(k)};
  }

  void load_step(Loader& l, int64_t step) {
    const Side& s = *l.side;
    if (!s.shared) return;
    const int64_t half = step % (ahead_ + 1) * l.per_step;
    if (l.matrices.empty()) return load_elements(l, step, half);
    const int64_t e = 4 / ir::dtype_bytes(s.type);
    std::vector<OperandMatrix> all;
    for (int64_t tile = 0; tile < s.tiles; ++tile)
      for (const OperandMatrix& m : l.matrices)
        all.push_back({tile * atom_rows(s) + m.row, step * atom_k(s) + m.k});
    for (size_t i = 0; i < all.size();) {
      size_t count = std::min<size_t>(4, all.size() - i);
      if (count == 3) count = 2;
      std::vector<std::pair<int64_t, int64_t>> relative;
      for (size_t m = 0; m < count; ++m)
        relative.push_back({all[i + m].row - all[i].row, all[i + m].k - all[i].k});
      if (count == 4 && (relative[3].first != relative[1].first + relative[2].first ||
                         relative[3].second != relative[1].second + relative[2].second)) {
        count = 2;
        relative.resize(2);
      }
      auto it = l.patterns.find(relative);
      if (it == l.patterns.end())
        it = l.patterns.emplace(relative, matrix_rows(s, relative, l.transpose)).first;
      const ExprId index = e_.add(it->second.at(all[i].row, all[i].k), s.slot);
      emit(thread::LoadMatrix{l.registers, e_.const_int(half + static_cast<int64_t>(i) * e), s.memory, index,
                              static_cast<int>(count), l.transpose});
      i += count;
    }
  }

  void load_elements(Loader& l, int64_t step, int64_t half) {
    const Side& s = *l.side;
    const int64_t registers = s.atom->registers();
    const auto &rows = s.index == 0 ? l.places.first : l.places.second,
               &ks = s.index == 0 ? l.places.second : l.places.first;
    const bool along_k = s.place.layout->contiguous_run(s.index == 0 ? s.dims.col : s.dims.row) > 1;
    // Neighbouring k in neighbouring registers and in memory, as many as stand together.
    auto together = [&](size_t reg, int64_t row, int64_t k) {
      int64_t width = 1;
      while (along_k && reg + static_cast<size_t>(width) < rows.size() &&
             width < k_.in.target.vector_bytes / ir::dtype_bytes(s.type) &&
             rows[reg + static_cast<size_t>(width)] == rows[reg] &&
             ks[reg + static_cast<size_t>(width)] == ks[reg] + width)
        ++width;
      while (width > 1 &&
             ((width & (width - 1)) != 0 || !l.elements[0].aligned(row, k, width) ||
              s.place.layout->contiguous_run(s.index == 0 ? s.dims.col : s.dims.row) % width != 0))
        --width;
      return width;
    };
    for (int64_t tile = 0; tile < s.tiles; ++tile)
      for (int64_t r = 0; r < registers;) {
        const size_t reg = static_cast<size_t>(r);
        const int64_t row = rows[reg] + tile * atom_rows(s), k = ks[reg] + step * atom_k(s);
        const int64_t width = together(reg, row, k);
        load_wide(l.registers, half + tile * registers + r, s.memory,
                  e_.add(l.elements[0].at(row, k), s.slot), width);
        r += width;
      }
  }

  ExprId operand_register(const Loader& l, int64_t tile, int64_t step) {
    const Side& s = *l.side;
    if (s.shared) return e_.const_int(step % (ahead_ + 1) * l.per_step + tile * s.atom->registers());
    return register_of(s, tile * atom_rows(s), step * atom_k(s));
  }

  void instructions() {
    make_loaders();
    for (int64_t step = 0; step < std::min(steps_, ahead_); ++step) load_step(step);
    for (int64_t step = 0; step < steps_ && !k_.failed(); ++step) {
      if (step + ahead_ < steps_) load_step(step + ahead_);
      multiply(step);
    }
  }

  void multiply(int64_t step) {
    for (int64_t m = 0; m < tiles_m_; ++m)
      for (int64_t i = 0; i < tiles_n_; ++i) {
        const int64_t n = m % 2 == 0 ? i : tiles_n_ - 1 - i;  // the operand used last is used again
        thread::WarpMma mma;
        mma.atom = atom_.name;
        mma.a = sides_[0].shared ? a_.registers : sides_[0].held.memory;
        mma.b = sides_[1].shared ? b_.registers : sides_[1].held.memory;
        mma.c = sum_;
        mma.a_index = operand_register(a_, m, step);
        mma.b_index = operand_register(b_, n, step);
        mma.c_index = sum_tile(m, n);
        mma.a_registers = static_cast<int>(atom_.a_layout.registers());
        mma.b_registers = static_cast<int>(atom_.b_layout.registers());
        mma.c_registers = static_cast<int>(c_registers_);
        if (places_) {
          mma.places = place_registers_;
          mma.places_index = places_register(m, step);
        }
        emit(std::move(mma));
        if (beside_) beside_->deal((steps_ - 1) * tiles_m_ * tiles_n_, *out_);
      }
    if (promotes_after(step)) add_to_accumulators();
  }

  Loader a_, b_;
  std::optional<SparsePlaces> places_;  // of a sparse product
  MemoryId place_registers_;
  int64_t ahead_ = 1;             // k steps
  WorkBeside* beside_ = nullptr;  // of the step that is being lowered
};

StagedGemm::StagedGemm(LoweringContext& lowering, const analysis::KernelOp& op, const ir::TileOp& tile_op) {
  const plan::OpPlan& plan = *plan::find_op(lowering.in.schedule, op.path);
  if (const MmaAtom* atom = target::find_mma_atom(lowering.in.target, plan.atom))
    gemm_ = std::make_unique<GemmLowering>(lowering, op, plan, tile_op, *atom, nullptr);
  gemm_->prepare();
}
StagedGemm::~StagedGemm() = default;

void StagedGemm::first_step(thread::Block& out) { gemm_->load_first(out); }

void StagedGemm::steps(thread::Block& out, WorkBeside beside, const std::function<void()>& next) {
  gemm_->staged(out, std::move(beside), next);
}

void OpLowering::contract_warp_mma(int a, int b, int c, bool clear) {
  const MmaAtom* atom = target::find_mma_atom(k_.in.target, plan_.atom);
  if (atom && atom->sparse() == (tile_op_->kind == ir::OpKind::gemm_sparse)) {
    if (target::is_multiply_add(*atom)) return lower_multiply_adds(k_, op_, plan_, *tile_op_, *atom, out_);
    return GemmLowering(k_, op_, plan_, *tile_op_, *atom, &out_).run(a, b, c, clear);
  }
  k_.fail(DiagCode::schedule_illegal, op_.path,
          "atom '" + plan_.atom + "' is not one of " + k_.in.target.name, "plan the program for this target");
}

}  // namespace tilegen::lower
