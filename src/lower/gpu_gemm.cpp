// Matrix products of a block of many threads: per warp a grid of atoms, unrolled. Operands in shared memory are loaded
// into registers one k step ahead of the instructions that use them, eight rows of 16 bytes at a time where the atom's
// layout and the tile's allow it.
#include "lower/gpu_gemm.h"

#include <algorithm>
#include <utility>

#include "support/checked.h"

namespace tilegen::lower {

using ops::OperandMatrix;
using target::MmaAtom;

namespace {

// Multiply-adds that are written out before the loop over k stays a loop.
constexpr int64_t kUnrolledProducts = 4096;

// Where a fragment of an atom has what its registers hold in lane 0.
struct RegisterPlaces {
  std::vector<int64_t> first, second;  // coordinates, by register
};
RegisterPlaces register_places(const layout::Fragment& f) {
  RegisterPlaces places;
  places.first.assign(static_cast<size_t>(f.registers()), 0);
  places.second = places.first;
  for (int64_t i = 0; i < f.shape()[0]; ++i)
    for (int64_t j = 0; j < f.shape()[1]; ++j) {
      const std::vector<int64_t> index = {i, j}, at = f.map().eval(index);
      if (at[layout::kThread] != 0) continue;
      places.first[static_cast<size_t>(at[layout::kRegister])] = i;
      places.second[static_cast<size_t>(at[layout::kRegister])] = j;
    }
  return places;
}

}  // namespace

class GemmLowering {
 public:
  GemmLowering(KernelLowering& k, const infer::KernelOp& op, const plan::OpPlan& plan, const ir::TileOp& tile_op,
               const MmaAtom& atom, thread::Block* out)
      : k_(k), e_(k.out_.exprs), op_(op), plan_(plan), tile_op_(tile_op), atom_(atom), out_(out),
        shape_(ops::gemm_shape(k.p_, tile_op)) {}

  void run(int a, int b, int c, bool clear) {
    place_operands(a, b);
    if (k_.failed()) return;
    begin_accumulators(c, clear);
    if (k_.failed()) return;
    ops::is_multiply_add(atom_) ? multiply_adds() : instructions();
    finish_accumulators();
  }

  // ---- in stages

  bool prepare() {
    const Current current(*this);
    place_operands(0, 1);
    if (k_.failed() || ops::is_multiply_add(atom_) || !sides_[0].shared || !sides_[1].shared) return false;
    // The first step of the next iteration goes where the last one of this does not read.
    if (steps_ < 2 || steps_ % 2 != 0) return false;
    a_ = make_loader(sides_[0]);
    b_ = make_loader(sides_[1]);
    return true;
  }
  void load_first(thread::Block& out) {
    out_ = &out;
    mean_current_slots();
    load_step(a_, 0);
    load_step(b_, 0);
  }
  void staged(thread::Block& out, const std::function<void()>& next) {
    const Current current(*this);
    out_ = &out;
    begin_accumulators(2, tile_op_.flag(ir::gemm_attr::clear));
    for (int64_t step = 0; step < steps_ && !k_.failed(); ++step) {
      mean_current_slots();
      if (step + 1 < steps_) {
        load_step(a_, step + 1);
        load_step(b_, step + 1);
      } else {
        next();
        out_ = &out;
      }
      multiply(step);
    }
    finish_accumulators();
  }

 private:
  // The op is the one being lowered while this lives.
  struct Current {
    explicit Current(GemmLowering& g) : k(g.k_), before(std::exchange(g.k_.current_, &g.op_)) {}
    ~Current() { k.current_ = before; }
    KernelLowering& k;
    const infer::KernelOp* before;
  };

  // One of the two operands.
  struct Side {
    int operand = 0, index = 0;  // of the op; 0 = A, 1 = B
    ops::MatrixDims dims;
    ExprId row0, k0;  // where the region begins
    int64_t tiles = 1;
    ExprId warp_row;  // first row of the warp
    const layout::Fragment* atom = nullptr;
    ir::DType type = ir::DType::none;
    bool shared = false;
    // shared
    OperandAddresses::Place place;
    MemoryId memory;
    int value = -1;
    ExprId slot;  // first element
    // in registers
    Held held;
  };

  template <class Node>
  void emit(Node node) {
    out_->push_back(k_.out_.add(std::move(node), op_.path));
  }
  void store(MemoryId m, ExprId index, ExprId value) { emit(thread::Store{m, index, value, ExprId(), false, ExprId()}); }
  ExprId load(MemoryId m, ExprId index) {
    return e_.load(m, k_.out_.memory(m).type, std::vector<ExprId>{index});
  }

  void place_operands(int a, int b) {
    const ExprId tid = k_.out_.thread_var.valid() ? e_.var(k_.out_.thread_var) : e_.const_int(0);
    lane_ = k_.simplified(e_.floormod(tid, e_.const_int(k_.target_.warp)));
    const ExprId warp = e_.floordiv(tid, e_.const_int(k_.target_.warp));
    tiles_m_ = ceil_div(shape_.m, plan_.warps_m * atom_.m);
    tiles_n_ = ceil_div(shape_.n, plan_.warps_n * atom_.n);
    steps_ = shape_.k / atom_.k;
    const ExprId warp_m = e_.floormod(e_.floordiv(warp, e_.const_int(plan_.warps_n)), e_.const_int(plan_.warps_m));
    const ExprId warp_n = e_.floormod(warp, e_.const_int(plan_.warps_n));
    sides_[0] = side(a, 0, tiles_m_, k_.simplified(e_.mul(warp_m, tiles_m_ * atom_.m)));
    sides_[1] = side(b, 1, tiles_n_, k_.simplified(e_.mul(warp_n, tiles_n_ * atom_.n)));
  }
  void mean_current_slots() {
    for (Side& s : sides_) s.slot = k_.in_slot(s.value, e_.const_int(0));
  }

  Side side(int operand, int index, int64_t tiles, ExprId warp_row) {
    const ir::Region& r = tile_op_.operands[static_cast<size_t>(operand)];
    Side s;
    s.operand = operand;
    s.index = index;
    s.dims = ops::matrix_dims(k_.p_, r, tile_op_.flag(index == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b));
    const int row_dim = index == 0 ? s.dims.row : s.dims.col, k_dim = index == 0 ? s.dims.col : s.dims.row;
    s.row0 = k_.simplified(k_.lower_expr(r.offsets[static_cast<size_t>(row_dim)]));
    s.k0 = k_.simplified(k_.lower_expr(r.offsets[static_cast<size_t>(k_dim)]));
    s.tiles = tiles;
    s.warp_row = warp_row;
    s.atom = index == 0 ? &atom_.a_layout : &atom_.b_layout;
    s.type = k_.p_.buffer(r.buffer).type;
    const int value = k_.value_of(r.buffer);
    if (value < 0) return s;  // reported
    const plan::ValuePlan& plan = k_.schedule_.values[static_cast<size_t>(value)];
    s.shared = plan.memory.has_value();
    if (s.shared) {
      s.place = {&*plan.memory, s.dims, index, s.row0, s.k0, index == 0 ? shape_.m : shape_.n};
      s.memory = k_.values_[static_cast<size_t>(value)];
      s.value = value;
      s.slot = k_.in_slot(value, e_.const_int(0));
    } else {
      s.held = k_.held(value);
    }
    return s;
  }

  // ---- registers of fragments

  // Register of the fragment that holds the warp's element (row, col) of a region that begins at (row0, col0).
  ExprId register_at(const Held& held, const ops::MatrixDims& dims, ExprId row0, ExprId col0, int64_t row, int64_t col) {
    const std::vector<ExprId> at =
        dims.at<ExprId>(k_.simplified(e_.add(row0, row)), k_.simplified(e_.add(col0, col)), e_.const_int(0));
    const ExprId index = k_.layout_index(held.fragment->map(), layout::kRegister, at);
    if (!k_.fixed_index(index))
      k_.fail(DiagCode::target_unsupported, op_.path,
              "which part of fragment '" + k_.out_.memory(held.memory).name + "' the product works on is known at run time only",
              "unroll the loop, or keep each part in a buffer of its own");
    return index;
  }
  ExprId register_of(const Side& s, int64_t row, int64_t k) {
    return s.index == 0 ? register_at(s.held, s.dims, s.row0, s.k0, row, k)
                        : register_at(s.held, s.dims, s.k0, s.row0, k, row);
  }

  // ---- accumulators

  void begin_accumulators(int c, bool clear) {
    const ir::Region& r = tile_op_.operands[static_cast<size_t>(c)];
    const int value = k_.value_of(r.buffer);
    if (value < 0) return;
    c_held_ = k_.held(value);
    c_dims_ = ops::matrix_dims(k_.p_, r, false);
    c_row0_ = k_.simplified(k_.lower_expr(r.offsets[static_cast<size_t>(c_dims_.row)]));
    c_col0_ = k_.simplified(k_.lower_expr(r.offsets[static_cast<size_t>(c_dims_.col)]));
    c_registers_ = atom_.c_layout.registers();
    rounds_ = shape_.c != atom_.c;
    sum_ = rounds_ ? k_.add_registers("sum", atom_.c, tiles_m_ * tiles_n_ * c_registers_) : c_held_.memory;
    for_accumulators([&](ExprId sum, ExprId own) {
      if (clear)
        store(sum_, sum, e_.const_number(0, atom_.c));
      else if (rounds_)
        store(sum_, sum, e_.cast(atom_.c, load(c_held_.memory, own)));
    });
  }
  void finish_accumulators() {
    if (!rounds_) return;
    for_accumulators([&](ExprId sum, ExprId own) { store(c_held_.memory, own, e_.cast(shape_.c, load(sum_, sum))); });
  }
  template <class Visit>
  void for_accumulators(Visit&& visit) {
    for (int64_t m = 0; m < tiles_m_; ++m)
      for (int64_t n = 0; n < tiles_n_; ++n)
        for (int64_t i = 0; i < c_registers_ && !k_.failed(); ++i)
          visit(e_.add(sum_tile(m, n), i), e_.add(c_tile(m, n), i));
  }
  ExprId c_tile(int64_t m, int64_t n) {
    return register_at(c_held_, c_dims_, c_row0_, c_col0_, m * atom_.m, n * atom_.n);
  }
  ExprId sum_tile(int64_t m, int64_t n) {
    return rounds_ ? e_.const_int((m * tiles_n_ + n) * c_registers_) : c_tile(m, n);
  }

  // ---- matrix instructions

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

  Loader make_loader(const Side& s) {
    Loader l;
    l.side = &s;
    if (!s.shared) return l;
    const int64_t registers = s.atom->registers();
    l.per_step = s.tiles * registers;
    l.registers = k_.add_registers(s.index == 0 ? "a" : "b", s.type, std::min<int64_t>(steps_, 2) * l.per_step);
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
    const int64_t chunk = 16 / bytes;
    std::vector<OperandMatrix> matrices = ops::operand_matrices(atom_, s.index);
    if (matrices.empty()) return;
    const layout::Layout& layout = *s.place.layout;
    const int k_dim = s.index == 0 ? s.dims.col : s.dims.row, row_dim = s.index == 0 ? s.dims.row : s.dims.col;
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
          if (!rows.aligned(tile * atom_rows(s) + m.row, step * atom_.k + m.k, chunk)) return;
    l.matrices = std::move(matrices);
  }

  int64_t atom_rows(const Side& s) const { return s.index == 0 ? atom_.m : atom_.n; }

  // The rows that the lanes address: matrix i of a load lies `relative[i]` behind the first.
  OperandAddresses matrix_rows(const Side& s, const std::vector<std::pair<int64_t, int64_t>>& relative, bool transpose) {
    ExprId row = s.warp_row, k = e_.const_int(0);
    const ExprId in_matrix = e_.floormod(lane_, e_.const_int(8));
    (transpose ? k : row) = e_.add(transpose ? k : row, in_matrix);
    for (size_t bit = 1; bit < relative.size(); bit *= 2) {
      const ExprId digit = e_.floormod(e_.floordiv(lane_, e_.const_int(static_cast<int64_t>(8 * bit))), e_.const_int(2));
      row = e_.add(row, e_.mul(digit, relative[bit].first));
      k = e_.add(k, e_.mul(digit, relative[bit].second));
    }
    return {k_, s.place, k_.simplified(row), k_.simplified(k)};
  }

  // Where the lanes of the atom's layout stand.
  OperandAddresses lane_addresses(const Side& s) {
    ExprId at[2] = {e_.const_int(0), e_.const_int(0)};
    for (const layout::Digit& d : s.atom->map().digits()) {
      if (d.output != layout::kThread || d.dim == layout::kReplica) continue;
      const ExprId digit = e_.floormod(e_.floordiv(lane_, e_.const_int(d.stride)), e_.const_int(d.extent));
      at[d.dim] = e_.add(at[d.dim], e_.mul(digit, d.weight));
    }
    const ExprId row = e_.add(s.warp_row, at[s.index]), k = at[1 - s.index];
    return {k_, s.place, k_.simplified(row), k_.simplified(k)};
  }

  void load_step(Loader& l, int64_t step) {
    const Side& s = *l.side;
    if (!s.shared) return;
    const int64_t half = step % 2 * l.per_step;
    if (l.matrices.empty()) return load_elements(l, step, half);
    const int64_t e = 4 / ir::dtype_bytes(s.type);
    std::vector<OperandMatrix> all;
    for (int64_t tile = 0; tile < s.tiles; ++tile)
      for (const OperandMatrix& m : l.matrices)
        all.push_back({tile * atom_rows(s) + m.row, step * atom_.k + m.k});
    for (size_t i = 0; i < all.size();) {
      size_t count = std::min<size_t>(4, all.size() - i);
      if (count == 3) count = 2;
      std::vector<std::pair<int64_t, int64_t>> relative;
      for (size_t m = 0; m < count; ++m) relative.push_back({all[i + m].row - all[i].row, all[i + m].k - all[i].k});
      if (count == 4 && (relative[3].first != relative[1].first + relative[2].first ||
                         relative[3].second != relative[1].second + relative[2].second)) {
        count = 2;
        relative.resize(2);
      }
      auto it = l.patterns.find(relative);
      if (it == l.patterns.end()) it = l.patterns.emplace(relative, matrix_rows(s, relative, l.transpose)).first;
      const ExprId index = e_.add(it->second.at(all[i].row, all[i].k), s.slot);
      emit(thread::LoadMatrix{l.registers, e_.const_int(half + static_cast<int64_t>(i) * e), s.memory, index,
                              static_cast<int>(count), l.transpose});
      i += count;
    }
  }

  void load_elements(Loader& l, int64_t step, int64_t half) {
    const Side& s = *l.side;
    const int64_t registers = s.atom->registers();
    for (int64_t tile = 0; tile < s.tiles; ++tile)
      for (int64_t r = 0; r < registers; ++r) {
        const size_t reg = static_cast<size_t>(r);
        const int64_t row = (s.index == 0 ? l.places.first : l.places.second)[reg] + tile * atom_rows(s);
        const int64_t k = (s.index == 0 ? l.places.second : l.places.first)[reg] + step * atom_.k;
        store(l.registers, e_.const_int(half + tile * registers + r), load(s.memory, e_.add(l.elements[0].at(row, k), s.slot)));
      }
  }

  ExprId operand_register(const Loader& l, int64_t tile, int64_t step) {
    const Side& s = *l.side;
    if (s.shared) return e_.const_int(step % 2 * l.per_step + tile * s.atom->registers());
    return register_of(s, tile * atom_rows(s), step * atom_.k);
  }

  void instructions() {
    a_ = make_loader(sides_[0]);
    b_ = make_loader(sides_[1]);
    load_step(a_, 0);
    load_step(b_, 0);
    for (int64_t step = 0; step < steps_ && !k_.failed(); ++step) {
      if (step + 1 < steps_) {
        load_step(a_, step + 1);
        load_step(b_, step + 1);
      }
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
        emit(std::move(mma));
      }
  }

  // ---- multiply-adds

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
    t.registers = k_.add_registers(s.index == 0 ? "a" : "b", s.type, s.tiles * s.atom->registers() * depth);
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
      const int64_t widest = 16 / ir::dtype_bytes(s.type);
      for (int64_t done = 0; done < run;) {
        int64_t width = std::min(widest, run - done);
        auto first_row = [&] { return row_of(tile, t.along_k ? r : r + done); };
        auto first_k = [&] { return k + (t.along_k ? dk + done : dk); };
        while (width > 1 && ((run - done) % width != 0 || !vector_fits(t, first_row(), first_k(), width))) width /= 2;
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

  void load_wide(MemoryId to, int64_t place, MemoryId from, ExprId index, int64_t width) {
    if (width == 1) return store(to, e_.const_int(place), load(from, index));
    const VarId lane = k_.out_.add_var("lane" + std::to_string(k_.out_.vars.size()), ir::VarKind::loop);
    k_.fixed_vars_.insert(lane);
    const thread::StmtId element = k_.out_.add(
        thread::Store{to, e_.add(e_.var(lane), place), load(from, e_.add(index, e_.var(lane))), ExprId(), false, ExprId()},
        op_.path);
    emit(thread::Loop{lane, e_.const_int(width), thread::LoopForm::vectorized, {element}});
  }

  void multiply_adds() {
    const bool shared = sides_[0].shared || sides_[1].shared;
    int64_t depth = shared ? 4 : 1;
    while (steps_ % depth != 0) depth /= 2;
    Strip a = make_strip(sides_[0], depth), b = make_strip(sides_[1], depth);
    const int64_t products = tiles_m_ * tiles_n_ * c_registers_;
    const bool registers = !sides_[0].shared || !sides_[1].shared;  // their indices must be constants
    if (registers || products * steps_ <= kUnrolledProducts || steps_ == depth) {
      for (int64_t k = 0; k < steps_ && !k_.failed(); k += depth) products_at(a, b, k, ExprId());
      return;
    }
    const VarId var = k_.out_.add_var("k" + std::to_string(k_.out_.vars.size()), ir::VarKind::loop);
    auto mark = k_.ctx_.mark();
    k_.ctx_.bind(var, 0, steps_ / depth - 1);
    thread::Block body;
    thread::Block* const around = std::exchange(out_, &body);
    products_at(a, b, 0, e_.var(var));
    out_ = around;
    k_.ctx_.rollback(mark);
    emit(thread::Loop{var, e_.const_int(steps_ / depth), thread::LoopForm::serial, std::move(body)});
  }

  void products_at(Strip& a, Strip& b, int64_t k, ExprId loop) {
    load_strip(a, k, loop);
    load_strip(b, k, loop);
    auto element = [&](Strip& t, int64_t tile, int64_t r, int64_t dk) {
      const Side& s = *t.side;
      const int64_t row = (s.index == 0 ? t.places.first : t.places.second)[static_cast<size_t>(r)];
      const ExprId index = s.shared ? e_.const_int(t.place(tile, r, dk)) : register_of(s, tile * atom_rows(s) + row, k + dk);
      return e_.cast(atom_.c, load(s.shared ? t.registers : s.held.memory, index));
    };
    for (int64_t dk = 0; dk < a.depth; ++dk)
      for (int64_t m = 0; m < tiles_m_; ++m)
        for (int64_t n = 0; n < tiles_n_; ++n)
          for (int64_t i = 0; i < atom_.a_layout.registers(); ++i)
            for (int64_t j = 0; j < atom_.b_layout.registers() && !k_.failed(); ++j) {
              const std::vector<int64_t> at = {a.places.first[static_cast<size_t>(i)], b.places.second[static_cast<size_t>(j)]};
              const ExprId sum = e_.add(sum_tile(m, n), atom_.c_layout.map().eval(at)[layout::kRegister]);
              const ExprId product = e_.binary(ir::ExprOp::mul, element(a, m, i, dk), element(b, n, j, dk));
              store(sum_, sum, e_.binary(ir::ExprOp::add, load(sum_, sum), product));
            }
  }

  KernelLowering& k_;
  ir::ExprPool& e_;
  const infer::KernelOp& op_;
  const plan::OpPlan& plan_;
  const ir::TileOp& tile_op_;
  const MmaAtom& atom_;
  thread::Block* out_;
  const ops::GemmShape shape_;
  ExprId lane_;
  int64_t tiles_m_ = 1, tiles_n_ = 1, steps_ = 1;  // atoms of a warp
  Side sides_[2];
  Loader a_, b_;
  Held c_held_;
  ops::MatrixDims c_dims_;
  ExprId c_row0_, c_col0_;
  int64_t c_registers_ = 1;
  MemoryId sum_;         // where sums are kept: C's registers, or wider ones
  bool rounds_ = false;  // ... which C gets at the end
};

StagedGemm::StagedGemm(KernelLowering& lowering, const infer::KernelOp& op, const ir::TileOp& tile_op) {
  const plan::OpPlan* plan = plan::find_op(lowering.schedule_, op.path);
  const bool moved = std::any_of(lowering.schedule_.conversions.begin(), lowering.schedule_.conversions.end(),
                                 [&](const plan::ConversionPlan& c) { return c.producer == op.path || c.consumer == op.path; });
  if (!plan || plan->engine != plan::Engine::mma || moved) return;
  for (const MmaAtom& atom : lowering.target_.mma) {
    if (atom.name != plan->atom) continue;
    gemm_ = std::make_unique<GemmLowering>(lowering, op, *plan, tile_op, atom, nullptr);
    possible_ = gemm_->prepare();
  }
}
StagedGemm::~StagedGemm() = default;

void StagedGemm::first_step(thread::Block& out) { gemm_->load_first(out); }

void StagedGemm::steps(thread::Block& out, const std::function<void()>& next) { gemm_->staged(out, next); }

void OpLowering::contract_warp_mma(int a, int b, int c, bool clear) {
  for (const MmaAtom& atom : k_.target_.mma)
    if (atom.name == plan_.atom) return GemmLowering(k_, op_, plan_, *tile_op_, atom, &out_).run(a, b, c, clear);
  k_.fail(DiagCode::schedule_illegal, op_.path, "atom '" + plan_.atom + "' is not one of " + k_.target_.name,
          "plan the program for this target");
}

}  // namespace tilegen::lower
