// Elements that are taken for others of their tile: copies that do not move all by one distance, matrix
// instructions whose operands are not rows and columns.
#include "sim/element_check.h"

#include <algorithm>
#include <bit>

#include "sim/cluster_run.h"
#include "sim/run_findings.h"

namespace tilegen::sim {

using thread::MemoryId;
using thread::Space;

namespace {

LaneMask bit(int lane) { return LaneMask{1} << lane; }

std::string place_text(const TilePlaces& t, int64_t element) {
  std::string text;
  for (size_t d = t.shape.size(); d-- > 0; element /= t.shape[d])
    text = std::to_string(element % t.shape[d]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

// Elements of a tile are numbered by 32 bits, whose division is quick.
uint64_t weighted(const TilePlaces& t, int64_t element, const std::vector<uint64_t>& weights) {
  uint64_t sum = 0;
  auto rest = static_cast<uint32_t>(element);
  for (size_t d = t.shape.size(); d-- > 0;) {
    const auto extent = static_cast<uint32_t>(t.shape[d]);
    sum += rest % extent * weights[d];
    rest /= extent;
  }
  return sum;
}

uint64_t weighted(const std::vector<CopySide::Dimension>& dimensions, int64_t element) {
  uint64_t sum = 0;
  for (const CopySide::Dimension& d : dimensions) {
    int64_t quotient = 0;
    if ((static_cast<uint64_t>(element) | static_cast<uint64_t>(d.stride)) >> 32 == 0) {
      const auto whole = static_cast<uint32_t>(element), stride = static_cast<uint32_t>(d.stride);
      quotient = whole / stride;
      element = whole % stride;
    } else {
      quotient = element / d.stride;
      element %= d.stride;
    }
    sum += static_cast<uint64_t>(quotient) * d.weight;
  }
  return sum;
}

// `elements`: row-major, as origin_of names them. Accumulators may have elements of no tile.
MatrixPlaces matrix_places(const ElementPlaces& places, const std::vector<uint64_t>& elements, size_t rows,
                           size_t columns) {
  MatrixPlaces out;
  out.memory = static_cast<uint32_t>(elements[0] >> 32) - 1;
  for (uint64_t e : elements)
    if (e == 0 || (e >> 32) != (elements[0] >> 32)) return out;
  const TilePlaces& t = places.memories[out.memory];
  out.known = true;
  std::vector<uint32_t> rest(elements.begin(), elements.end()), at(elements.size());  // in dimension d
  int along_rows = 0, along_columns = 0;
  for (size_t d = t.shape.size(); d-- > 0;) {
    const auto extent = static_cast<uint32_t>(t.shape[d]);
    for (size_t i = 0; i < rest.size(); ++i) {
      at[i] = rest[i] % extent;
      rest[i] /= extent;
    }
    bool by_row = false, by_column = false;
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        by_row |= at[r * columns + c] != at[c];
        by_column |= at[r * columns + c] != at[r * columns];
        if (by_row && by_column && out.wrong.empty()) {
          const auto text = [&](size_t i) { return place_text(t, static_cast<uint32_t>(elements[i])); };
          out.wrong = "row " + std::to_string(r) + ", column " + std::to_string(c) +
                      " of the instruction's matrix is " + text(r * columns + c) + ", but row 0 has " +
                      text(c) + " in that column and column 0 has " + text(r * columns) + " in that row";
        }
      }
    if (by_row) ++along_rows, out.rows.clear();
    if (by_column) ++along_columns, out.columns.clear();
    for (size_t r = 0; by_row && r < rows; ++r) out.rows.push_back(at[r * columns]);
    for (size_t c = 0; by_column && c < columns; ++c) out.columns.push_back(at[c]);
  }
  if (along_rows > 1) out.rows.clear();
  if (along_columns > 1) out.columns.clear();
  return out;
}

// The distance between two sequences of coordinates; nothing where one is not known.
std::optional<int64_t> distance(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                                bool& constant) {
  if (from.empty() || to.empty() || from.size() != to.size()) return std::nullopt;
  for (size_t i = 1; i < from.size(); ++i) constant &= to[i] - from[i] == to[0] - from[0];
  return to[0] - from[0];
}

// False when it was another before.
bool keeps(std::optional<int64_t>& known, std::optional<int64_t> now) {
  if (!now) return true;
  if (!known) known = now;
  return *known == *now;
}

const MatrixPlaces& places_of(ClusterRun& run, const Warp& w, MemoryId id, int64_t index,
                              const std::vector<uint32_t>& table, size_t rows, size_t columns) {
  static const MatrixPlaces unknown;
  const MemoryView& m = run.memory(id);
  run.asked.table = &table;
  if (run.options.places->memories[id.value].known()) {
    run.asked.held = {id.value, static_cast<uint64_t>(w.index), static_cast<uint64_t>(index)};
  } else {
    if (index < 0 || index + static_cast<int64_t>(table.size() / run.width()) > m.elements) return unknown;
    const uint64_t* first = &w.origins[(m.first_register + static_cast<size_t>(index)) * run.width()];
    run.asked.held.assign(first, first + table.size());
  }
  if (const auto seen = run.matrix_places.find(run.asked); seen != run.matrix_places.end())
    return seen->second;
  std::vector<uint64_t> elements(rows * columns, 0);
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i] != kNothing)
      elements[table[i]] = origin_of(run, w, id, static_cast<int>(i % run.width()),
                                     index + static_cast<int64_t>(i / run.width()));
  return run.matrix_places.emplace(run.asked, matrix_places(*run.options.places, elements, rows, columns))
      .first->second;
}

void check_distances(ClusterRun& run, Warp& w, const Step& s, const MatrixPlaces& a, const MatrixPlaces& b,
                     const MatrixPlaces& c) {
  const auto wrong = [&](const MatrixPlaces& m, const std::string& text) {
    access_finding(run, FindingKind::wrong_element, &m == &a ? s.access_a : s.access_b, thread_of(w, 0), 0,
                   "elements of " + run.program.memory(MemoryId(size_t{m.memory})).name + ": " + text);
  };
  if (a.known && !a.wrong.empty()) return wrong(a, a.wrong);
  if (b.known && !b.wrong.empty()) return wrong(b, b.wrong);
  ProductPlaces& product = w.products[statement_places(run, s.stmt)->op];
  if (s.stmt <= product.last) product = {};
  product.last = s.stmt;
  bool constant = true;
  if (a.known && b.known && (!keeps(product.k, distance(a.columns, b.rows, constant)) || !constant))
    return wrong(b, "they do not run along k as the other side's do");
  if (a.known && c.known && (!keeps(product.row, distance(a.rows, c.rows, constant)) || !constant))
    return wrong(a, "they are not the rows that belong to these sums");
  if (b.known && c.known && (!keeps(product.column, distance(b.columns, c.columns, constant)) || !constant))
    return wrong(b, "they are not the columns that belong to these sums");
  auto& sum = product.sums[{run.code.accesses[s.access].memory.value, scalar(w, s.z)}];
  if (a.known && !a.rows.empty() && !keeps(sum[0], a.rows[0]))
    return wrong(a, "other rows went into these sums before");
  if (b.known && !b.columns.empty() && !keeps(sum[1], b.columns[0]))
    return wrong(b, "other columns went into these sums before");
}

// origin_of() for all lanes of a warp, of one index.
class HeldElements {
 public:
  HeldElements(const ClusterRun& run, const Warp& w, MemoryId id, int64_t index) {
    const TilePlaces& t = run.options.places->memories[id.value];
    const thread::Memory& m = run.program.memory(id);
    if (index < 0 || index >= m.elements) return;
    if (m.in_registers && !t.known()) {
      origins_ = &w.origins[(run.memory(id).first_register + static_cast<size_t>(index)) * run.width()];
      return;
    }
    if (!t.known()) return;
    tile_ = (uint64_t{id.value} + 1) << 32;
    step_ = m.in_registers ? 1 : 0;
    const int64_t first =
        m.in_registers ? index * t.threads + thread_in_block(w, 0) : index % (m.elements / m.slots);
    const int64_t left = static_cast<int64_t>(t.element.size()) - first;
    count_ = m.in_registers ? std::min(left, t.threads - thread_in_block(w, 0)) : left;
    if (count_ > 0) elements_ = t.element.data() + first;
  }
  uint64_t operator[](int lane) const {
    if (origins_ != nullptr) return origins_[lane];
    if (lane * step_ >= count_) return 0;
    const int32_t element = elements_[lane * step_];
    return element < 0 ? 0 : tile_ | static_cast<uint64_t>(element);
  }

 private:
  const uint64_t* origins_ = nullptr;
  const int32_t* elements_ = nullptr;
  uint64_t tile_ = 0;
  int64_t step_ = 0, count_ = 0;
};

// Places of one side of a copy as numbers, for all lanes of a warp.
class CopyPlaces {
 public:
  CopyPlaces(const ClusterRun& run, const Warp& w, MemoryId id, const CopySide& side)
      : side_(side), memory_(run.program.memory(id)), tile_(run.options.places->memories[id.value]) {
    known_ = (memory_.space == Space::global) == side.tensor &&
             (side.tensor || (tile_.known() && tile_.shape.size() == side.weights.size()));
    thread_ = thread_in_block(w, 0);
    slot_ = memory_.elements / memory_.slots;
  }
  bool known() const { return known_; }
  // False where the lane's element is not known.
  bool find(int lane, int64_t index, uint64_t* at) const {
    if (side_.tensor) return *at = weighted(side_.dimensions, index), true;
    if (index < 0 || index >= memory_.elements) return false;
    if (memory_.in_registers) {
      if (thread_ + lane >= tile_.threads) return false;
      index = index * tile_.threads + thread_ + lane;
    } else if (index >= slot_) {
      index %= slot_;
    }
    if (index >= static_cast<int64_t>(tile_.element.size())) return false;
    const int32_t element = tile_.element[static_cast<size_t>(index)];
    if (element < 0) return false;
    *at = weighted(tile_, element, side_.weights);
    return true;
  }

 private:
  const CopySide& side_;
  const thread::Memory& memory_;
  const TilePlaces& tile_;
  bool known_ = false;
  int thread_ = 0;
  int64_t slot_ = 0;
};

// The coordinate of elements in one dimension of their tile, which is mostly the same tile.
class Coordinate {
 public:
  Coordinate(const ElementPlaces& places, int dimension) : places_(places), dimension_(dimension) {}
  int64_t operator()(uint64_t origin) {
    if (const auto tile = static_cast<uint32_t>(origin >> 32); tile != tile_) {
      const std::vector<int64_t>& shape = places_.memories[(tile_ = tile) - 1].shape;
      extent_ = static_cast<uint32_t>(shape[static_cast<size_t>(dimension_)]);
      divisor_ = 1;
      for (size_t d = shape.size(); --d > static_cast<size_t>(dimension_);)
        divisor_ *= static_cast<uint32_t>(shape[d]);
    }
    return static_cast<uint32_t>(origin) / divisor_ % extent_;
  }

 private:
  const ElementPlaces& places_;
  const int dimension_;
  uint32_t tile_ = 0, divisor_ = 1, extent_ = 1;
};

}  // namespace

const StatementPlaces* statement_places(const ClusterRun& run, uint32_t stmt) {
  if (run.options.places == nullptr || stmt >= run.options.places->statements.size()) return nullptr;
  return &run.options.places->statements[stmt];
}

int64_t tile_element(const ClusterRun& run, MemoryId id, int thread, int64_t index) {
  const TilePlaces& t = run.options.places->memories[id.value];
  const thread::Memory& m = run.program.memory(id);
  if (!t.known() || index < 0 || index >= m.elements) return -1;
  if (m.in_registers) {
    if (thread >= t.threads) return -1;
    index = index * t.threads + thread;
  } else {
    index %= m.elements / m.slots;
  }
  return index < static_cast<int64_t>(t.element.size()) ? t.element[static_cast<size_t>(index)] : -1;
}

uint64_t origin_of(const ClusterRun& run, const Warp& w, MemoryId id, int lane, int64_t index) {
  if (run.program.memory(id).in_registers && !run.options.places->memories[id.value].known()) {
    const MemoryView& m = run.memory(id);
    if (index < 0 || index >= m.elements) return 0;
    return w
        .origins[(m.first_register + static_cast<size_t>(index)) * run.width() + static_cast<size_t>(lane)];
  }
  const int64_t element = tile_element(run, id, thread_in_block(w, lane), index);
  return element < 0 ? 0 : (uint64_t{id.value} + 1) << 32 | static_cast<uint64_t>(element);
}

void check_copy(ClusterRun& run, Warp& w, uint32_t access, const StatementPlaces& s, LaneMask lanes,
                MemoryId from, const std::array<int64_t, kMaxLanes>& from_index, MemoryId to,
                const std::array<int64_t, kMaxLanes>& to_index) {
  const CopyPlaces of_from(run, w, from, s.from), of_to(run, w, to, s.to);
  if (!of_from.known() || !of_to.known()) return;
  bool first = true;
  uint64_t distance = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const auto i = static_cast<size_t>(l);
    uint64_t a = 0, b = 0;
    if (!of_from.find(l, from_index[i], &a) || !of_to.find(l, to_index[i], &b)) continue;
    if (first) distance = b - a;
    first = false;
    if (b - a == distance) continue;
    const bool named = !s.to.tensor;
    const MemoryId tile = named ? to : from;
    return access_finding(
        run, FindingKind::wrong_element, access, thread_of(w, l), to_index[i],
        "element " +
            place_text(run.options.places->memories[tile.value],
                       tile_element(run, tile, thread_in_block(w, l), named ? to_index[i] : from_index[i])) +
            " of " + run.program.memory(tile).name +
            " is not the one that belongs to the other side of the copy");
  }
}

void note_move(ClusterRun& run, Warp& w, const Step& s, LaneMask lanes, Operand index, Origins& origins) {
  origins.fill(0);
  const StatementPlaces* places = statement_places(run, s.stmt);
  if (places == nullptr || s.moved_from == kNothing || s.times != kNothing ||
      (!places->copy && !places->product))
    return;
  if (s.moved_if) lanes = true_lanes(w, s.moved_if, lanes);
  const MemoryId to = run.code.accesses[s.access].memory, from(size_t{s.moved_from});
  const Operand source = w.values.operand(s.moved);
  if (places->product) {
    for (int l = 0; l < run.lanes; ++l)
      if (lanes & bit(l)) origins[static_cast<size_t>(l)] = origin_of(run, w, from, l, source[l].i);
    return;
  }
  std::array<int64_t, kMaxLanes> from_index{}, to_index{};
  for (int l = 0; l < run.lanes; ++l) {
    from_index[static_cast<size_t>(l)] = source[l].i;
    to_index[static_cast<size_t>(l)] = index[l].i;
  }
  check_copy(run, w, s.access, *places, lanes, from, from_index, to, to_index);
}

void set_origins(ClusterRun& run, Warp& w, LaneMask lanes, MemoryId id, int64_t index,
                 const Origins& origins) {
  const MemoryView& m = run.memory(id);
  if (!m.in_registers || index < 0 || index >= m.elements) return;
  for (int l = 0; l < run.lanes; ++l)
    if (lanes & bit(l))
      w.origins[(m.first_register + static_cast<size_t>(index)) * run.width() + static_cast<size_t>(l)] =
          origins[static_cast<size_t>(l)];
}

void check_product(ClusterRun& run, Warp& w, const Step& s) {
  const auto& n = run.node<thread::WarpMma>(s);
  const AtomTables& tables = run.code.atoms[s.atom];
  const auto extent = [](int e) { return static_cast<size_t>(e); };
  // Of a sparse product's A, data says which k an element has.
  if (tables.atom->sparse()) return;
  const size_t rows = extent(tables.atom->m), columns = extent(tables.atom->n), k = extent(tables.atom->k);
  check_distances(run, w, s, places_of(run, w, n.a, scalar(w, s.x), tables.a, rows, k),
                  places_of(run, w, n.b, scalar(w, s.y), tables.b, k, columns),
                  places_of(run, w, n.c, scalar(w, s.z), tables.c, rows, columns));
}

void check_order(ClusterRun& run, uint32_t access, int thread, const std::vector<uint64_t>& elements,
                 size_t rows, size_t columns) {
  const MatrixPlaces m = matrix_places(*run.options.places, elements, rows, columns);
  if (!m.known) return;
  const auto in_order = [](const std::vector<int64_t>& at) {
    for (size_t i = 0; i < at.size(); ++i)
      if (at[i] != at[0] + static_cast<int64_t>(i)) return false;
    return true;
  };
  std::string text = m.wrong;
  if (text.empty() && !in_order(m.rows)) text = "rows of the operand do not follow each other in the tile";
  if (text.empty() && !in_order(m.columns)) text = "k of the operand do not follow each other in the tile";
  if (!text.empty())
    access_finding(run, FindingKind::wrong_element, access, thread, 0,
                   "elements of " + run.program.memory(MemoryId(size_t{m.memory})).name + ": " + text);
}

void check_multiply_add(ClusterRun& run, Warp& w, const Step& s, LaneMask lanes, Operand index) {
  const StatementPlaces* places = statement_places(run, s.stmt);
  if (places == nullptr || !places->product) return;
  ProductPlaces& product = w.products[places->op];
  if (s.stmt <= product.last) product = {};
  product.last = s.stmt;
  const int64_t at = index[0].i;
  const HeldElements a(run, w, MemoryId(size_t{s.moved_from}), scalar(w, s.moved)),
      b(run, w, MemoryId(size_t{s.times}), scalar(w, s.times_at)),
      sum(run, w, run.code.accesses[s.access].memory, at);
  const ElementPlaces& all = *run.options.places;
  Coordinate a_k(all, places->a_k), a_row(all, places->a_row), b_k(all, places->b_k),
      b_column(all, places->b_column), c_row(all, places->c_row), c_column(all, places->c_column);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    const uint64_t of_a = a[l], of_b = b[l], of_sum = sum[l];
    const auto wrong = [&](uint64_t origin, const char* text) {
      access_finding(run, FindingKind::wrong_element, s.access, thread_of(w, l), at,
                     "the element of " + run.program.memory(MemoryId((origin >> 32) - 1)).name +
                         " that is multiplied " + text);
    };
    if (of_a != 0 && of_b != 0 && !keeps(product.k, b_k(of_b) - a_k(of_a)))
      return wrong(of_b, "has another k than the other side's");
    if (of_a != 0 && of_sum != 0 && !keeps(product.row, c_row(of_sum) - a_row(of_a)))
      return wrong(of_a, "is not of the row that belongs to this sum");
    if (of_b != 0 && of_sum != 0 && !keeps(product.column, c_column(of_sum) - b_column(of_b)))
      return wrong(of_b, "is not of the column that belongs to this sum");
  }
}

}  // namespace tilegen::sim
