// Boxes that some warps of random programs copy together while the others add up what has come: rings with
// transaction barriers, and groups. The numbers are of a series of their own.
#include "random_generator.h"

namespace tilegen::differential {

void Generator::begin_boxes(uint64_t seed) {
  of_boxes_ = Random(seed, "boxes");
  has_boxes_ = of_boxes_.chance(6);
}

// Where blocks of threads may stand.
void Generator::use_box() {
  if (!has_boxes_ || !states_threads_ || indent_ > 1 || grid_.size() > 2) return;
  std::swap(r_, of_boxes_);
  if (r_.chance(3)) r_.chance(4) ? grouped_boxes() : ring_of_boxes();
  std::swap(r_, of_boxes_);
}

// A tensor to copy of, whose rows are of whole words, and one for what the threads come to.
Generator::Boxes Generator::declare_boxes() {
  Boxes b;
  b.type = r_.pick({DType::f32, DType::f16, DType::i32, DType::i64, DType::u8, DType::i16});
  const int64_t in_word = std::max<int64_t>(32 / ir::dtype_bits(b.type), 1);
  b.rows = r_.pick<int64_t>({1, 2, 4, 5});
  b.columns = r_.pick<int64_t>({32, 64, 128, 36}) * (in_word > 2 ? 1 : r_.pick<int64_t>({1, 1, 2}));
  const int64_t width = b.columns * r_.between(1, 3) + in_word * r_.pick<int64_t>({0, 0, 0, 4, 1});
  b.source = fresh("x"), b.result = fresh("o"), b.slots = fresh("t");
  const std::string name = ir::dtype_name(b.type);
  std::string shape;
  for (const GridVar& g : grid_) {
    shape += g.extent.text + ", ";
    b.place += g.name + ", ";
  }
  declarations_ += "tensor " + b.source + ": " + name + "[" +
                   (dims_.empty() || r_.chance(3) ? std::to_string(r_.between(1, 20))
                                                  : r_.pick(std::span<const std::string>(dims_))) +
                   ", " + std::to_string(width) + "] readonly\n" + "tensor " + b.result + ": " + name + "[" +
                   shape + "128]\n";
  b.column = r_.pick<std::string>(
      {"0", grid_[0].name + " * " + std::to_string(b.columns), std::to_string(in_word * r_.between(-3, 5))});
  return b;
}

// Of the box's elements in a slot what a thread, whose number is `thread`, adds up.
std::string Generator::added(const Boxes& b, const std::string& slot, const std::string& thread) {
  const std::string columns = std::to_string(b.columns);
  const std::string at = r_.pick<std::string>(
      {"(" + thread + ") % " + columns, std::to_string(b.columns - 1) + " - (" + thread + ") % " + columns,
       "((" + thread + ") * 3 + " + std::to_string(r_.below(9)) + ") % " + columns});
  return b.slots + "[" + slot + ", " +
         r_.pick<std::string>(
             {std::to_string(r_.below(b.rows)), "(" + thread + ") % " + std::to_string(b.rows)}) +
         ", " + at + "]";
}

std::string Generator::joined(const Boxes& b, const std::string& sum, const std::string& element) {
  if (ir::is_float(b.type)) return r_.pick({"max(", "min("}) + sum + ", " + element + ")";
  return sum + r_.pick({" + ", " ^ ", " * 3 + "}) + element;
}

void Generator::ring_of_boxes() {
  const int64_t slots = r_.between(1, 4), bring = r_.between(1, 2), trips = r_.between(0, 7);
  if (!affordable(128 * (trips + 1) * 2)) return;
  const Boxes b = declare_boxes();
  if (slots * b.rows * b.columns * ir::dtype_bits(b.type) > 8 * 16384) return;
  const std::string n = std::to_string(slots), r = std::to_string(b.rows), c = std::to_string(b.columns);
  const std::string full = fresh("f"), empty = fresh("e"), sum = fresh("s"), k = fresh("v");
  const bool by_lanes = r_.chance(2);
  allocs_ += "  alloc " + b.slots + ": shared " + ir::dtype_name(b.type) + "[" + n + ", " + r + ", " + c +
             "]\n  alloc " + full + ": shared u64[" + n + "] {arrivals = " + std::to_string(32 * bring) +
             "}\n  alloc " + empty + ": shared u64[" + n +
             "] {arrivals = " + std::to_string((by_lanes ? 1 : 32) * (4 - bring)) + "}\n";
  const size_t outer_vars = vars_.size();
  const std::string thread = begin_threads({4, 32}), warp = vars_[outer_vars].name,
                    lane = vars_[outer_vars + 1].name;
  line("var " + sum + " = " + number_text(b.type, r_.between(0, 5)));
  line("serial " + k + " in 0 .. " + std::to_string(trips) + " {");
  line("  if " + warp + " < " + std::to_string(bring) + " {");
  line("    mbarrier_wait " + empty + "[" + k + " % " + n + "], (" + k + " // " + n + " + 1) % 2");
  line("    copy_bulk " + b.source + "[" + k + " * " + r + " :+ " + r + ", " + b.column + " :+ " + c +
       "] -> " + b.slots + "[" + k + " % " + n + ", 0 :+ " + r + ", 0 :+ " + c + "]");
  line("    mbarrier_arrive " + full + "[" + k + " % " + n + "] {copies}");
  line("  } else {");
  line("    mbarrier_wait " + full + "[" + k + " % " + n + "], " + k + " // " + n + " % 2");
  for (int64_t times = r_.between(1, 2); times > 0; --times)
    line("    " + sum + " = " + joined(b, sum, added(b, k + " % " + n, thread)));
  const std::string arrive = "mbarrier_arrive " + empty + "[" + k + " % " + n + "]";
  line("    " + (!by_lanes ? arrive
                 : r_.chance(2)
                     ? arrive + " {elected}"
                     : "if " + lane + " == " + std::to_string(r_.below(32)) + " { " + arrive + " }"));
  line("  }");
  line("}");
  line("if " + warp + " >= " + std::to_string(bring) + " { " + b.result + "[" + b.place + thread +
       "] = " + sum + " }");
  end_threads(outer_vars);
}

void Generator::grouped_boxes() {
  const int64_t trips = r_.between(0, 5);
  if (!affordable(128 * (trips + 2) * 2)) return;
  const Boxes b = declare_boxes();
  if (2 * b.rows * b.columns * ir::dtype_bits(b.type) > 8 * 16384) return;
  const std::string r = std::to_string(b.rows), c = std::to_string(b.columns), sum = fresh("s"),
                    k = fresh("v");
  allocs_ += "  alloc " + b.slots + ": shared " + ir::dtype_name(b.type) + "[2, " + r + ", " + c + "]\n";
  const size_t outer_vars = vars_.size();
  const std::string thread = begin_threads({128});
  const auto copy = [&](const std::string& row, const std::string& slot) {
    return "copy_bulk " + b.source + "[" + row + " :+ " + r + ", " + b.column + " :+ " + c + "] -> " +
           b.slots + "[" + slot + ", 0 :+ " + r + ", 0 :+ " + c + "]";
  };
  line("var " + sum + " = " + number_text(b.type, 1));
  line(copy("0", "0"));
  line("commit_group");
  line("serial " + k + " in 0 .. " + std::to_string(trips) + " {");
  line("  wait_group 0");
  line("  " + copy("(" + k + " + 1) * " + r, "(" + k + " + 1) % 2"));
  line("  commit_group");
  line("  " + sum + " = " + joined(b, sum, added(b, k + " % 2", thread)));
  line("}");
  line("wait_group 0");
  line(b.result + "[" + b.place + thread + "] = " + sum);
  end_threads(outer_vars);
}

}  // namespace tilegen::differential
