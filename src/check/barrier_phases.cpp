#include "check/barrier_phases.h"

namespace tilegen::check {

BarrierPhases::BarrierPhases(const Shape& shape)
    : barriers_(shape.arrivals.size()),
      parties_(shape.threads.size()),
      rows_(barriers_ * (1 + parties_)),
      width_(barriers_ * (2 + parties_)),
      arrived_(barriers_, 0),
      facts_(rows_ + rows() * width_, 0) {
  for (size_t row = 0; row < rows(); ++row)
    for (size_t b = 0; b < barriers_; ++b) {
      if (row < parties_) newest(row, b) = before(row, b) = 1;
      for (size_t p = 0; p < parties_; ++p) over(row, b, p) = 1;
    }
}

void BarrierPhases::join(size_t to, size_t from) {
  for (size_t i = 0; i < width_; ++i)
    if (newest(from, i) != 0) newest(to, i) = 1;
}

std::optional<PhaseFault> BarrierPhases::arrive(const Shape& shape, size_t barrier, Parties who, int64_t each,
                                                size_t* party) {
  for (size_t p = who.begin; p < who.end; ++p) {
    *party = p;
    if (newest(p, barrier) == 0) return PhaseFault::phase_unknown;
    const int64_t arrivals = shape.threads[p] / each;
    if (arrived_[barrier] + arrivals > shape.arrivals[barrier]) return PhaseFault::too_many_arrivals;
    arrived_[barrier] += arrivals;
    join(open(barrier), p);
    if (arrived_[barrier] == shape.arrivals[barrier])
      if (const auto fault = complete(shape, barrier, party)) return fault;
  }
  return std::nullopt;
}

std::optional<PhaseFault> BarrierPhases::complete(const Shape& shape, size_t barrier, size_t* party) {
  for (size_t p = 0; p < parties_ && !shape.is_named(barrier); ++p)
    if (waited(barrier, p) != 0 && over(open(barrier), barrier, p) == 0) {
      *party = p;
      return PhaseFault::wait_overtaken;
    }
  join(brought(barrier), open(barrier));
  for (size_t row = 0; row < rows(); ++row) {
    before(row, barrier) = newest(row, barrier);
    newest(row, barrier) = 0;
    for (size_t p = 0; p < parties_; ++p) over(row, barrier, p) = 1;  // nobody has waited for this one
  }
  for (size_t p = 0; p < parties_; ++p) waited(barrier, p) = 0;
  newest(brought(barrier), barrier) = before(brought(barrier), barrier) = 1;
  for (size_t b = 0; b < barriers_; ++b) {
    newest(open(barrier), b) = before(open(barrier), b) = 0;
    for (size_t p = 0; p < parties_; ++p) over(open(barrier), b, p) = waited(b, p) == 0;
  }
  completed(barrier) = completed(barrier) == kEven ? kOdd : kEven;
  arrived_[barrier] = 0;
  return std::nullopt;
}

std::optional<PhaseFault> BarrierPhases::sync(const Shape& shape, size_t barrier, Parties who,
                                              size_t* party) {
  if (const auto fault = arrive(shape, barrier, who, 1, party)) return fault;
  *party = who.begin;
  if (arrived_[barrier] > 0) return PhaseFault::meets_too_few;
  for (size_t p = who.begin; p < who.end; ++p) join(p, brought(barrier));
  return std::nullopt;
}

std::optional<PhaseFault> BarrierPhases::wait(size_t barrier, int64_t parity, Parties who, size_t* party) {
  // In front of the first phase counts as one of parity 1.
  const bool odd = completed(barrier) != kEven;
  *party = who.begin;
  if ((parity != 0) != odd) return PhaseFault::never_complete;
  if (arrived_[barrier] > 0) return PhaseFault::phase_begun;
  for (size_t p = who.begin; p < who.end; ++p) {
    *party = p;
    if (before(p, barrier) == 0) return PhaseFault::wait_too_early;
    if (completed(barrier) != kNone) join(p, brought(barrier));
    waited(barrier, p) = 1;
    for (size_t row = 0; row < rows(); ++row) over(row, barrier, p) = row == p;
  }
  return std::nullopt;
}

}  // namespace tilegen::check
