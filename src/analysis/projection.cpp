#include "analysis/projection.h"

#include <algorithm>
#include <numeric>

#include "analysis/index_links.h"
#include "layout/coverage.h"

namespace tilegen::analysis {

using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kReplica;
using layout::kThread;
using layout::Layout;

std::optional<Fragment> compacted(std::vector<int64_t> shape, std::vector<Digit> digits, int64_t threads) {
  std::vector<Digit*> registers;
  for (Digit& d : digits)
    if (d.output == kRegister) registers.push_back(&d);
  std::stable_sort(registers.begin(), registers.end(),
                   [](const Digit* a, const Digit* b) { return a->stride < b->stride; });
  int64_t stride = 1;
  for (Digit* d : registers) {
    d->stride = stride;
    stride *= d->extent;
  }
  // Replica digits in thread order, so that equal fragments are written equally.
  std::vector<Digit*> replicas;
  for (Digit& d : digits)
    if (d.dim == kReplica) replicas.push_back(&d);
  std::stable_sort(replicas.begin(), replicas.end(),
                   [](const Digit* a, const Digit* b) { return a->stride < b->stride; });
  int64_t weight = 1;
  for (Digit* d : replicas) {
    d->weight = weight;
    weight *= d->extent;
  }
  auto map = Layout::make(std::move(shape), std::move(digits), 2);
  if (!map) return std::nullopt;
  auto f = Fragment::make(*map, threads);
  if (!f) return std::nullopt;
  return f->canonical();
}

namespace {

// A digit of one side, cut where links and what lies between them begin: the part that it has of each.
struct Portion {
  const IndexLink* link = nullptr;  // null: between them
  Digit digit;                      // of the same side
};

// False where the digit crosses a cut without ending there. Padding belongs to the last link.
bool portions_of(const Digit& digit, const std::vector<IndexLink>& list, int IndexLink::*side,
                 int64_t IndexLink::*at, int64_t extent, std::vector<Portion>& out) {
  std::vector<const IndexLink*> own;
  for (const IndexLink& l : list)
    if (l.*side == digit.dim) own.push_back(&l);
  if (own.size() == 1 && own[0]->*at == 1 && own[0]->extent == extent && !own[0]->permuted) {
    out.push_back({own[0], digit});
    return true;
  }
  std::sort(own.begin(), own.end(), [&](const IndexLink* a, const IndexLink* b) { return a->*at < b->*at; });
  if (digit.weight * digit.extent > extent) return false;
  int64_t from = digit.weight;
  const int64_t end = digit.weight * digit.extent;
  const auto take = [&](const IndexLink* link, int64_t to) {
    to = std::min(to, end);
    if (from >= to) return true;
    if (to % from != 0 || (link && from % (link->*at) != 0)) return false;
    Digit d = digit;
    d.extent = to / from;
    d.weight = from;
    d.stride = digit.stride * (from / digit.weight);
    out.push_back({link, d});
    from = to;
    return true;
  };
  for (const IndexLink* l : own)
    if (!take(nullptr, l->*at) || !take(l, l->*at * l->extent)) return false;
  return take(nullptr, extent);
}

bool on_threads(const Digit& d) { return d.output == kThread && d.stride > 0 && d.extent > 1; }

// Registers begin further apart: `count` of them lie between.
void make_room(std::vector<Digit>& digits, int64_t count) {
  for (Digit& d : digits)
    if (d.output == kRegister) d.stride *= count;
}

// Digits that are walked by registers: those of neighbours in a row innermost, the others outermost.
void add_registers(std::vector<Digit>& digits, std::vector<Digit> inner, const std::vector<Digit>& outer) {
  int64_t count = 1;
  for (Digit& d : inner) {
    d.output = kRegister;
    d.stride = count;
    count *= d.extent;
  }
  make_room(digits, count);
  int64_t stride = count;
  for (const Digit& d : digits)
    if (d.output == kRegister) stride += (d.extent - 1) * d.stride;
  for (Digit d : outer) {
    d.output = kRegister;
    d.stride = stride;
    stride *= d.extent;
    digits.push_back(d);
  }
  digits.insert(digits.end(), inner.begin(), inner.end());
}

}  // namespace

std::optional<Fragment> project(const Fragment& iteration, const ops::ElementAccess& access,
                                std::span<const int64_t> shape, Reach reach) {
  const auto links = index_links(access, iteration.shape(), shape);
  if (!links) return std::nullopt;
  std::vector<Digit> digits;
  for (Digit d : iteration.map().digits()) {
    std::vector<Portion> parts;
    if (d.dim == kReplica || !links->walks(d.dim))
      parts.push_back({nullptr, d});
    else if (!portions_of(d, links->list, &IndexLink::iteration, &IndexLink::divisor,
                          iteration.shape()[static_cast<size_t>(d.dim)], parts))
      return std::nullopt;
    for (Portion& p : parts) {
      if (p.link) {
        if (p.link->permuted && on_threads(p.digit) && !reach.has(p.digit)) return std::nullopt;
        p.digit.dim = p.link->buffer;
        p.digit.weight = p.digit.weight / p.link->divisor * p.link->weight;
      } else if (p.digit.dim != kReplica && p.digit.output == kRegister) {
        continue;
      } else {
        p.digit.dim = kReplica;
      }
      digits.push_back(p.digit);
    }
  }
  std::vector<Digit> inner, outer;
  for (const IndexLinks::Gap& g : links->gaps)
    (g.weight == 1 && g.buffer + 1 == static_cast<int>(shape.size()) && links->walks_buffer(g.buffer) ? inner
                                                                                                      : outer)
        .push_back({.dim = g.buffer, .extent = g.extent, .weight = g.weight});
  if (!links->gaps.empty()) add_registers(digits, std::move(inner), outer);
  return compacted({shape.begin(), shape.end()}, std::move(digits), iteration.threads());
}

std::optional<Fragment> pull_back(const Fragment& held, const ops::ElementAccess& access,
                                  std::span<const int64_t> extents, Reach reach) {
  const auto links = index_links(access, extents, held.shape());
  if (!links) return std::nullopt;
  std::vector<Digit> digits;
  for (const Digit& d : held.map().digits()) {
    std::vector<Portion> parts;
    const int64_t extent = d.dim == kReplica ? 1 : held.shape()[static_cast<size_t>(d.dim)];
    const bool gone = d.dim == kReplica || (extent == 1 && !links->walks_buffer(d.dim));
    if (gone)
      parts.push_back({nullptr, d});
    else if (!portions_of(d, links->list, &IndexLink::buffer, &IndexLink::weight, extent, parts))
      return std::nullopt;
    for (Portion& p : parts) {
      if (p.link) {
        if (p.link->permuted && on_threads(p.digit) && !reach.has(p.digit)) return std::nullopt;
        p.digit.dim = p.link->iteration;
        p.digit.weight = p.digit.weight / p.link->weight * p.link->divisor;
      } else if (!gone) {  // a gap: others do not hold its value
        if (!on_threads(p.digit)) continue;
        if (!reach.has(p.digit)) return std::nullopt;
        p.digit.dim = kReplica;
      } else {
        p.digit.dim = kReplica;  // as it is, or of one element
      }
      digits.push_back(p.digit);
    }
  }
  std::vector<Digit> inner, outer;
  for (const IndexLinks::Idle& i : links->idle)
    (i.divisor == 1 && i.iteration + 1 == static_cast<int>(extents.size()) ? inner : outer)
        .push_back({.dim = i.iteration, .extent = i.extent, .weight = i.divisor});
  for (size_t k = extents.size(); k-- > 0;)
    if (extents[k] > 1 && !links->walks(static_cast<int>(k)))
      outer.push_back({.dim = static_cast<int>(k), .extent = extents[k], .weight = 1});
  add_registers(digits, std::move(inner), outer);
  return compacted({extents.begin(), extents.end()}, std::move(digits), held.threads());
}

namespace {

// What each index of each iteration dimension adds to the thread that holds the element; of the first
// dimension also where the others begin. Nothing where these do not add up.
std::optional<std::vector<std::vector<int64_t>>> holders_by_dim(const Fragment& held,
                                                                const Fragment& iteration,
                                                                const ops::ElementAccess& access) {
  const auto links = index_links(access, iteration.shape(), held.shape());
  if (!links || iteration.rank() == 0) return std::nullopt;
  const auto divides = [](int64_t a, int64_t b) { return a % b == 0 || b % a == 0; };
  for (const Digit& d : held.map().digits()) {
    if (d.dim == kReplica || d.output != kThread) continue;
    for (const IndexLink& l : links->list)
      for (int64_t cut : {l.weight, l.weight * l.extent})
        if (l.buffer == d.dim && (!divides(d.weight, cut) || !divides(d.weight * d.extent, cut)))
          return std::nullopt;
  }
  std::vector<int64_t> element(held.shape().size());
  const auto holder = [&](const std::vector<int64_t>& point) {
    for (size_t d = 0; d < element.size(); ++d) {
      const bool one = access.dim_of[d] == ops::kUniformIndex && held.shape()[d] == 1;
      element[d] = one ? 0 : access.offset[d] + access.index_at(d, point);
    }
    int64_t thread = 0;
    for (const Digit& d : held.map().digits())
      if (d.dim != kReplica && d.output == kThread)
        thread += element[static_cast<size_t>(d.dim)] / d.weight % d.extent * d.stride;
    return thread;
  };
  std::vector<int64_t> point(iteration.shape().size(), 0);
  const int64_t first = holder(point);
  std::vector<std::vector<int64_t>> tables;
  for (size_t k = 0; k < point.size(); ++k) {
    std::vector<int64_t> table;
    for (int64_t i = 0; i < iteration.shape()[k]; ++i) {
      point[k] = i;
      table.push_back(holder(point) - (k == 0 ? 0 : first));
    }
    point[k] = 0;
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace

bool covers(const Fragment& held, const Fragment& iteration, const ops::ElementAccess& access) {
  bool plain = access.terms.empty();
  for (size_t d = 0; d < access.dim_of.size(); ++d)
    plain = plain && (access.dim_of[d] >= 0 ? access.offset[d] == 0 : held.shape()[d] == 1);
  if (plain) {
    std::vector<int> map;
    for (int k : access.dim_of) map.push_back(k < 0 ? layout::kBroadcast : k);
    return held.covers(iteration, map);
  }
  if (const auto tables = holders_by_dim(held, iteration, access))
    return layout::covers(held, iteration, *tables);
  const auto needed = project(iteration, access, held.shape());
  std::vector<int> same(static_cast<size_t>(held.rank()));
  std::iota(same.begin(), same.end(), 0);
  return needed && held.covers(*needed, same);
}

int part_of_fragment(const ir::Program& p, const KernelOp& op,
                     const std::function<bool(ValueId value)>& in_registers) {
  const auto* tile_op = p.as<ir::TileOp>(op.stmt);
  if (!tile_op || op.form != OpForm::element) return -1;
  int part = -1;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    if (!op.accesses[i].value.valid() || !in_registers(op.accesses[i].value)) continue;
    if (part >= 0) return -1;
    part = static_cast<int>(i);
  }
  if (part < 0) return -1;
  const ops::ElementAccess& a = op.view.accesses[static_cast<size_t>(part)];
  const std::vector<int64_t> shape = p.tile_shape(a.buffer);
  bool whole = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (a.dim_of[d] == ops::kIrregularIndex) return -1;
    const int64_t extent = a.dim_of[d] < 0 ? 1 : op.view.extents[static_cast<size_t>(a.dim_of[d])];
    whole = whole && extent == shape[d];
  }
  return whole ? -1 : part;
}

const Digit* vector_digit(const Fragment& iteration) {
  for (const Digit& d : iteration.map().digits())
    if (d.dim != kReplica && d.output == kRegister && d.stride == 1 && d.weight == 1) return &d;
  return nullptr;
}

int vector_dim(const Fragment& iteration) {
  const Digit* d = vector_digit(iteration);
  return d ? d->dim : -1;
}

}  // namespace tilegen::analysis
