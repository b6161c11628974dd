#include "analysis/projection.h"

#include <algorithm>
#include <numeric>

#include "support/checked.h"

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

// point[iteration] // divisor % extent, times weight, is a part of the buffer's index.
struct Link {
  int iteration = 0, buffer = 0;
  int64_t divisor = 1, extent = 1, weight = 1;
};

// The runs [step, step * extent) follow each other from 1 to `all`.
template <class Step>
bool covers_all(std::vector<const Link*> links, int64_t all, Step step) {
  std::sort(links.begin(), links.end(), [&](const Link* a, const Link* b) { return step(*a) < step(*b); });
  int64_t next = 1;
  for (const Link* l : links) {
    if (step(*l) != next) return false;
    next *= l->extent;
  }
  return next == all;
}

int64_t divisor_of(const Link& l) { return l.divisor; }
int64_t weight_of(const Link& l) { return l.weight; }

// How iterations name elements; nothing where they do not name each once, but for the iteration dimensions on
// which no index depends.
std::optional<std::vector<Link>> links_of(const ops::ElementAccess& access, std::span<const int64_t> extents,
                                          std::span<const int64_t> shape) {
  std::vector<Link> links;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int k = access.dim_of[d];
    if (k == ops::kUniformIndex ? shape[d] != 1 : access.is_unknown(d) || access.offset[d] != 0)
      return std::nullopt;
    const int dim = static_cast<int>(d);
    if (k >= 0) links.push_back({k, dim, 1, extents[static_cast<size_t>(k)], 1});
    if (k != ops::kIrregularIndex) continue;
    for (const ops::IndexTerm& t : access.terms[d]) {
      const int64_t left = ceil_div(extents[static_cast<size_t>(t.dim)], t.divisor);
      links.push_back({t.dim, dim, t.divisor, t.modulus > 0 ? std::min(t.modulus, left) : left, t.weight});
    }
  }
  const auto all = [&](int Link::*side, int at) {
    std::vector<const Link*> list;
    for (const Link& l : links)
      if (l.*side == at) list.push_back(&l);
    return list;
  };
  for (size_t d = 0; d < shape.size(); ++d)
    if (access.dim_of[d] != ops::kUniformIndex &&
        !covers_all(all(&Link::buffer, static_cast<int>(d)), shape[d], weight_of))
      return std::nullopt;
  for (size_t k = 0; k < extents.size(); ++k)
    if (const auto own = all(&Link::iteration, static_cast<int>(k));
        !own.empty() && !covers_all(own, extents[k], divisor_of))
      return std::nullopt;
  return links;
}

// The digit of one side's dimension as digits of the other's. False where it crosses from one link to the
// next without ending there.
template <class From, class To>
bool add_digits(const Digit& digit, const std::vector<Link>& links, int Link::*side, int Link::*other,
                From from, To to, std::vector<Digit>& out) {
  std::vector<const Link*> own;
  for (const Link& l : links)
    if (l.*side == digit.dim) own.push_back(&l);
  Digit d = digit;
  if (own.size() == 1) {
    d.dim = own[0]->*other;
    d.weight *= to(*own[0]);
    out.push_back(d);
    return true;
  }
  int64_t covered = 1;
  for (const Link* l : own) {
    const int64_t low = std::max(digit.weight, from(*l)),
                  high = std::min(digit.weight * digit.extent, from(*l) * l->extent);
    if (low >= high) continue;
    if (low % from(*l) != 0 || low % digit.weight != 0 || high % low != 0) return false;
    d.dim = l->*other;
    d.extent = high / low;
    d.weight = low / from(*l) * to(*l);
    d.stride = digit.stride * (low / digit.weight);
    covered *= d.extent;
    out.push_back(d);
  }
  return covered == digit.extent;
}

}  // namespace

std::optional<Fragment> project(const Fragment& iteration, const ops::ElementAccess& access,
                                std::span<const int64_t> shape) {
  const auto links = links_of(access, iteration.shape(), shape);
  if (!links) return std::nullopt;
  std::vector<Digit> digits;
  for (Digit d : iteration.map().digits()) {
    const bool walks = d.dim != kReplica && std::any_of(links->begin(), links->end(),
                                                        [&](const Link& l) { return l.iteration == d.dim; });
    if (walks) {
      if (!add_digits(d, *links, &Link::iteration, &Link::buffer, divisor_of, weight_of, digits))
        return std::nullopt;
      continue;
    }
    if (d.dim != kReplica && d.output == kRegister) continue;
    d.dim = kReplica;
    digits.push_back(d);
  }
  return compacted({shape.begin(), shape.end()}, std::move(digits), iteration.threads());
}

std::optional<Fragment> pull_back(const Fragment& held, const ops::ElementAccess& access,
                                  std::span<const int64_t> extents) {
  const auto links = links_of(access, extents, held.shape());
  if (!links) return std::nullopt;
  std::vector<Digit> digits;
  for (const Digit& d : held.map().digits()) {
    const bool walked = d.dim != kReplica && std::any_of(links->begin(), links->end(),
                                                         [&](const Link& l) { return l.buffer == d.dim; });
    if (walked) {
      if (!add_digits(d, *links, &Link::buffer, &Link::iteration, weight_of, divisor_of, digits))
        return std::nullopt;
      continue;
    }
    digits.push_back(d);
    digits.back().dim = kReplica;  // as it is, or of one element
  }
  int64_t stride = held.registers();
  for (size_t k = extents.size(); k-- > 0;) {
    if (extents[k] == 1 || std::any_of(links->begin(), links->end(),
                                       [&](const Link& l) { return l.iteration == static_cast<int>(k); }))
      continue;
    digits.push_back({static_cast<int>(k), extents[k], 1, kRegister, stride});
    stride *= extents[k];
  }
  return compacted({extents.begin(), extents.end()}, std::move(digits), held.threads());
}

bool covers(const Fragment& held, const Fragment& iteration, const ops::ElementAccess& access) {
  if (access.terms.empty()) {
    std::vector<int> map;
    for (int k : access.dim_of) map.push_back(k < 0 ? layout::kBroadcast : k);
    return held.covers(iteration, map);
  }
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
