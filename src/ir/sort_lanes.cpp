#include "ir/sort_lanes.h"

#include "ir/sort_keys.h"

namespace tilegen::ir {
namespace {

// The least warp of all targets: steps within as many lanes are shuffles on each of them.
constexpr int64_t kLanes = 32;
constexpr int64_t kDefaultThreads = 128;  // of a kernel that states none
constexpr int64_t kMaxKeys = 32;          // of a thread
constexpr int64_t kNeighbours = 4;        // that a thread has, where it has as many keys
constexpr int64_t kMaxRun = 8;            // that stays in a thread while a tile is halved
constexpr int64_t kMaxHalved = 64;        // longer runs stay where they are
constexpr int64_t kPart = 4;              // of a longer one

bool power_of_two(int64_t v) { return std::has_single_bit(static_cast<uint64_t>(v)); }

int64_t threads_of(const Program& p) {
  const int64_t stated = p.kernels.back().threads;
  return stated > 0 ? stated : kDefaultThreads;
}

class LaneSorter : SortStatements {
 public:
  LaneSorter(Program& p, const Sort& what, const SourceLocation& location, Block& block)
      : SortStatements(p, what, location, block), threads_(threads_of(p)) {
    for (size_t d = 0; d < what.src.extents.size(); ++d)
      if (d != axis_) rows_ *= what.src.extents[d];
  }

  void run() {
    extent_ = padded_extent();
    keys_now_ = take_keys(extent_ == extent() ? MemScope::fragment : MemScope::shared);
    if (extent_ != extent()) {
      shared_ = keys_now_;
      keys_now_ = tiles("keys", MemScope::fragment, extent_);
      const Exprs point = loops_.begin(with_axis(extent_));
      loops_.store(keys_now_, point, loops_.load(shared_, point));
    }
    next_ = tiles("next_keys", MemScope::fragment, extent_);
    const int64_t wanted = what_.dst.extents[axis_], run = std::min(extent_, round_up(wanted));
    halves_ = run < extent_ && run <= kMaxHalved;
    for (int64_t block = 2; block <= run; block *= 2) {
      order(block / 2, block / 2);
      merge(block / 2);
    }
    const int64_t kept = run <= kMaxRun ? run : kPart;
    while (halves_ && extent_ > run && rows_ * extent_ >= 2 * threads_ * kept) {
      halve(run);
      merge(run);
    }
    for (int64_t distance = run; distance < extent_; distance *= 2) {
      lower(distance, run);
      merge(run);
    }
    give(wanted);
  }

 private:
  // A point of a loop over all keys, whose index and the other's are made of digits: loops over rows of them
  // are vectors where a target has these.
  struct Step {
    Exprs own, other;
    ExprId front;  // own is the one in front
    Tiles from;    // that holds the other
  };

  // Keys of neighbouring lanes.
  int64_t within_warp() const { return kLanes * std::max<int64_t>(1, rows_ * extent_ / threads_); }

  // What is left of the order of bitonic runs.
  void merge(int64_t run) {
    for (int64_t distance = run / 2; distance >= 1; distance /= 2) order(distance, 1);
  }
  Step begin_step(int64_t distance, int64_t mirrored);
  void order(int64_t distance, int64_t mirrored);
  void order_pairs(int64_t distance, int64_t mirrored);
  void lower(int64_t distance, int64_t mirrored);
  void halve(int64_t run);
  void give(int64_t wanted);
  Exprs begin_digits(const Extents& extents, Exprs& digits);
  const Tiles& share();

  const int64_t threads_;
  int64_t rows_ = 1, extent_ = 0;
  bool halves_ = false;
  Tiles keys_now_, next_, shared_;
};

// Into a shared tile, whole.
const Tiles& LaneSorter::share() {
  if (shared_.empty()) shared_ = tiles("shared_keys", MemScope::shared, extent_);
  const Exprs point = loops_.begin(with_axis(extent_));
  loops_.store(shared_, point, loops_.load(keys_now_, point));
  return shared_;
}

// The axis walked by digits of these extents, the greatest first. The point has no index along it yet.
Exprs LaneSorter::begin_digits(const Extents& extents, Exprs& digits) {
  const auto axis = static_cast<std::ptrdiff_t>(axis_);
  Extents all = what_.src.extents;
  all.erase(all.begin() + axis);
  Extents walked;
  for (int64_t extent : extents)
    if (extent > 1) walked.push_back(extent);
  all.insert(all.begin() + axis, walked.begin(), walked.end());
  const Exprs vars = loops_.begin(all);
  Exprs point(vars.begin(), vars.begin() + axis);
  auto var = vars.begin() + axis;
  for (int64_t extent : extents) digits.push_back(extent > 1 ? *var++ : number(0));
  point.push_back(number(0));
  point.insert(point.end(), var, vars.end());
  return point;
}

// The other key is `distance` away, and of each `mirrored` neighbours the last ones' are the first ones'.
LaneSorter::Step LaneSorter::begin_step(int64_t distance, int64_t mirrored) {
  Step step;
  step.from = distance >= within_warp() ? share() : keys_now_;
  Exprs digits;
  const Exprs point = begin_digits({extent_ / 2 / distance, 2, distance / mirrored, mirrored}, digits);
  const auto index = [&](ExprId half, ExprId last) {
    const ExprId run = e_.add(e_.mul(e_.add(e_.mul(digits[0], 2), half), distance / mirrored), digits[2]);
    return at(point, e_.add(e_.mul(run, mirrored), last));
  };
  step.own = index(digits[1], digits[3]);
  step.other = index(e_.sub(number(1), digits[1]), e_.sub(number(mirrored - 1), digits[3]));
  step.front = e_.binary(ExprOp::eq, digits[1], number(0));
  return step;
}

// Both keys of a point.
void LaneSorter::order_pairs(int64_t distance, int64_t mirrored) {
  Exprs digits;
  const Exprs point = begin_digits({extent_ / 2 / distance, distance / mirrored, mirrored}, digits);
  const auto index = [&](int64_t half, ExprId last) {
    const ExprId run = e_.add(e_.mul(e_.add(e_.mul(digits[0], 2), half), distance / mirrored), digits[1]);
    return at(point, e_.add(e_.mul(run, mirrored), last));
  };
  const Exprs front = index(0, digits[2]), behind = index(1, e_.sub(number(mirrored - 1), digits[2]));
  const ExprId a = loops_.load(keys_now_, front)[0], b = loops_.load(keys_now_, behind)[0];
  loops_.store(next_, front, {e_.binary(ExprOp::min, a, b)});
  loops_.store(next_, behind, {e_.binary(ExprOp::max, a, b)});
  std::swap(keys_now_, next_);
}

void LaneSorter::order(int64_t distance, int64_t mirrored) {
  // Threads that halve a tile need keys that are far apart, too.
  if (distance < kNeighbours && !halves_ && rows_ * extent_ >= kNeighbours * threads_)
    return order_pairs(distance, mirrored);
  const Step step = begin_step(distance, mirrored);
  const ExprId own = loops_.load(keys_now_, step.own)[0], other = loops_.load(step.from, step.other)[0];
  const ExprId taken = e_.binary(ExprOp::eq, e_.lt(other, own), step.front);
  loops_.store(next_, step.own, {e_.select(taken, other, own)});
  std::swap(keys_now_, next_);
}

void LaneSorter::lower(int64_t distance, int64_t mirrored) {
  const Step step = begin_step(distance, mirrored);
  const ExprId own = loops_.load(keys_now_, step.own)[0], other = loops_.load(step.from, step.other)[0];
  loops_.store(next_, step.own, {e_.binary(ExprOp::min, own, other)});
  std::swap(keys_now_, next_);
}

// Runs of the first half of the tile with those of the second one.
void LaneSorter::halve(int64_t run) {
  extent_ /= 2;
  next_ = tiles("next_keys", MemScope::fragment, extent_);
  Exprs digits;
  const Exprs point = begin_digits({extent_ / run, run}, digits);
  const ExprId begin = e_.mul(digits[0], run);
  const ExprId last = e_.sub(number(run - 1), digits[1]);
  const Exprs own = at(point, e_.add(begin, digits[1]));
  const ExprId first = loops_.load(keys_now_, own)[0];
  const ExprId second = loops_.load(keys_now_, at(point, e_.add(e_.add(begin, last), extent_)))[0];
  loops_.store(next_, own, {e_.binary(ExprOp::min, first, second)});
  keys_now_ = next_;
  next_ = tiles("keys", MemScope::fragment, extent_);
  shared_.clear();
}

// Parts of a fragment pass through memory.
void LaneSorter::give(int64_t wanted) { put_results(wanted == extent_ ? keys_now_ : share()); }

}  // namespace

bool lanes_hold_keys(const Program& p, const Sort& what) {
  const auto axis = static_cast<size_t>(what.axis);
  const int64_t threads = threads_of(p);
  if (dtype_bits(p.buffer(what.src.buffer).type) == 64 && what.index) return false;
  if (!power_of_two(threads) || threads < kLanes) return false;
  int64_t keys = 2;
  while (keys < what.src.extents[axis]) keys *= 2;
  for (size_t d = 0; d < what.src.extents.size(); ++d) {
    if (d == axis) continue;
    if (!power_of_two(what.src.extents[d])) return false;
    keys *= what.src.extents[d];
  }
  return keys <= kMaxKeys * threads;
}

void sort_in_lanes(Program& p, const Sort& what, const SourceLocation& location, Block& block) {
  LaneSorter(p, what, location, block).run();
}

}  // namespace tilegen::ir
