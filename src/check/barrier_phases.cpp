#include "check/barrier_phases.h"

namespace tilegen::check {

BarrierPhases::BarrierPhases(const Shape& shape)
    : completed_(shape.arrivals.size(), Completed::none),
      arrived_(shape.arrivals.size(), 0),
      waiting_(shape.arrivals.size() * shape.threads.size(), false) {
  const size_t barriers = shape.arrivals.size();
  const auto knowing = [&](bool phases) {
    return Knowledge{std::vector<bool>(barriers, phases), std::vector<bool>(barriers, phases),
                     std::vector<bool>(waiting_.size(), true)};
  };
  parties_.assign(shape.threads.size(), knowing(true));
  open_.assign(barriers, knowing(false));
  brought_.assign(barriers, knowing(false));
}

void BarrierPhases::join(Knowledge& to, const Knowledge& from) {
  const auto either = [](std::vector<bool>& a, const std::vector<bool>& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
  };
  either(to.newest, from.newest);
  either(to.before, from.before);
  either(to.waits, from.waits);
}

std::vector<BarrierPhases::Knowledge*> BarrierPhases::all() {
  std::vector<Knowledge*> found;
  for (auto* list : {&parties_, &open_, &brought_})
    for (Knowledge& k : *list) found.push_back(&k);
  return found;
}

std::optional<PhaseFault> BarrierPhases::arrive(const Shape& shape, size_t barrier, Parties who,
                                                size_t* party) {
  for (size_t p = who.begin; p < who.end; ++p) {
    *party = p;
    if (!parties_[p].newest[barrier]) return PhaseFault::phase_unknown;
    if (arrived_[barrier] + shape.threads[p] > shape.arrivals[barrier]) return PhaseFault::too_many_arrivals;
    arrived_[barrier] += shape.threads[p];
    join(open_[barrier], parties_[p]);
    if (arrived_[barrier] == shape.arrivals[barrier])
      if (const auto fault = complete(shape, barrier, party)) return fault;
  }
  return std::nullopt;
}

std::optional<PhaseFault> BarrierPhases::complete(const Shape& shape, size_t barrier, size_t* party) {
  const size_t parties = shape.threads.size(), first = barrier * parties;
  for (size_t p = 0; p < parties; ++p)
    if (waiting_[first + p] && !open_[barrier].waits[first + p]) {
      *party = p;
      return PhaseFault::wait_overtaken;
    }
  join(brought_[barrier], open_[barrier]);
  for (Knowledge* k : all()) {
    k->before[barrier] = k->newest[barrier];
    k->newest[barrier] = false;
    for (size_t p = 0; p < parties; ++p) k->waits[first + p] = true;  // nobody has waited for this one
  }
  for (size_t p = 0; p < parties; ++p) waiting_[first + p] = false;
  brought_[barrier].newest[barrier] = brought_[barrier].before[barrier] = true;
  Knowledge& open = open_[barrier];
  open.newest.assign(open.newest.size(), false);
  open.before.assign(open.before.size(), false);
  for (size_t i = 0; i < open.waits.size(); ++i) open.waits[i] = !waiting_[i];
  completed_[barrier] = completed_[barrier] == Completed::even ? Completed::odd : Completed::even;
  arrived_[barrier] = 0;
  return std::nullopt;
}

std::optional<PhaseFault> BarrierPhases::wait(const Shape& shape, size_t barrier, int64_t parity, Parties who,
                                              size_t* party) {
  // In front of the first phase counts as one of parity 1.
  const bool odd = completed_[barrier] != Completed::even;
  *party = who.begin;
  if ((parity != 0) != odd) return PhaseFault::never_complete;
  if (arrived_[barrier] > 0) return PhaseFault::phase_begun;
  for (size_t p = who.begin; p < who.end; ++p) {
    *party = p;
    if (!parties_[p].before[barrier]) return PhaseFault::wait_too_early;
    if (completed_[barrier] != Completed::none) join(parties_[p], brought_[barrier]);
    const size_t at = barrier * shape.threads.size() + p;
    waiting_[at] = true;
    for (Knowledge* k : all()) k->waits[at] = k == &parties_[p];
  }
  return std::nullopt;
}

}  // namespace tilegen::check
