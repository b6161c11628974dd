// Two sides of random programs that meet at barriers with names, or have a ring, each in a loop of its own:
// the one in front of the other. The numbers are of a series of their own.
#include "random_generator.h"

namespace tilegen::differential {

void Generator::begin_meetings(uint64_t seed) {
  of_meetings_ = Random(seed, "meetings");
  has_meetings_ = of_meetings_.chance(6);
}

// Where blocks of threads may stand.
void Generator::use_meeting() {
  if (!has_meetings_ || !states_threads_ || indent_ > 1 || grid_.size() > 2) return;
  std::swap(r_, of_meetings_);
  if (r_.chance(3)) two_sides(r_.chance(3));
  std::swap(r_, of_meetings_);
}

void Generator::two_sides(bool ring) {
  const int64_t bring = r_.between(1, 3), trips = r_.between(0, 6), slots = ring ? r_.between(1, 4) : 1;
  if (!affordable(128 * (trips + 2) * 2)) return;
  const Boxes b = declare_boxes();
  const int64_t width = 32 * bring;
  const std::string n = std::to_string(slots), rounds = std::to_string(trips), c = std::to_string(b.columns);
  const std::string full = fresh("f"), empty = fresh("e"), sum = fresh("s"), k = fresh("v"), i = fresh("v");
  const auto barriers = [&](const std::string& of, int64_t count, const std::string& what) {
    allocs_ += "  alloc " + of + ": shared u64[" + n + "] {" + what + " = " + std::to_string(count) + "}\n";
  };
  allocs_ += "  alloc " + b.slots + ": shared " + ir::dtype_name(b.type) + "[" + n + ", " +
             std::to_string(width) + "]\n";
  barriers(full, ring ? width : 128, ring ? "arrivals" : "participants");
  barriers(empty, ring ? 128 - width : 128, ring ? "arrivals" : "participants");
  const size_t outer_vars = vars_.size();
  const std::string thread = begin_threads({4, 32}), warp = vars_[outer_vars].name;
  const auto slot = [&](const std::string& of, const std::string& use) {
    return of + "[" + use + " % " + n + "]";
  };
  const auto brings = [&] {
    line("  serial " + i + " in 0 .. " + rounds + " {");
    line(ring ? "    mbarrier_wait " + slot(empty, i) + ", (" + i + " // " + n + " + 1) % 2"
              : "    barrier_sync " + empty);
    line("    " + b.slots + "[" + i + " % " + n + ", " + thread + "] = " + b.source + "[" + i + ", (" +
         thread + " + " + std::to_string(r_.below(9)) + ") % " + c + "]");
    line(ring ? "    mbarrier_arrive " + slot(full, i) : "    barrier_arrive " + full);
    line("  }");
  };
  const auto takes = [&] {
    line("  var " + sum + " = " + number_text(b.type, r_.between(0, 5)));
    line("  serial " + k + " in 0 .. " + rounds + " {");
    if (!ring) line("    barrier_arrive " + empty);
    line(ring ? "    mbarrier_wait " + slot(full, k) + ", " + k + " // " + n + " % 2"
              : "    barrier_sync " + full);
    line("    " + sum + " = " +
         joined(b, sum,
                b.slots + "[" + k + " % " + n + ", ((" + thread + ") * 3 + " + std::to_string(r_.below(9)) +
                    ") % " + std::to_string(width) + "]"));
    if (ring) line("    mbarrier_arrive " + slot(empty, k));
    line("  }");
    line("  " + b.result + "[" + b.place + thread + "] = " + sum);
  };
  const bool first = r_.chance(2);
  line("if " + warp + (first ? " < " : " >= ") + std::to_string(bring) + " {");
  first ? brings() : takes();
  line("} else {");
  first ? takes() : brings();
  line("}");
  end_threads(outer_vars);
}

}  // namespace tilegen::differential
