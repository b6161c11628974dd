// Optional tensors of random programs, which launches pass or leave out by the seed. The numbers are of a
// series of their own: what else a seed makes is the same with and without.
#include "random_generator.h"

namespace tilegen::differential {

namespace {

constexpr int64_t kMostTimes = 64;  // that the statements run

}  // namespace

void Generator::begin_optionals(uint64_t seed) {
  of_optionals_ = Random(seed, "optionals");
  has_optionals_ = of_optionals_.chance(5);
}

// A tile gets what an optional tensor holds or something else, is changed element by element under a
// condition of the launch, and goes to a tensor that may be left out itself. Nothing else reads or writes
// them.
void Generator::use_optional() {
  if (!has_optionals_ || multiplier_ > kMostTimes || grid_.size() > 3) return;
  std::swap(r_, of_optionals_);
  if (r_.chance(4)) optional_statements();
  std::swap(r_, of_optionals_);
}

void Generator::optional_statements() {
  const DType type = r_.pick({DType::f32, DType::f32, DType::f16, DType::i32, DType::u8, DType::i64});
  const std::string q = fresh("q"), t = fresh("qt"), z = fresh("z"), name = ir::dtype_name(type);
  const int64_t a = r_.pick<int64_t>({1, 4, 8, 16, 17}), b = r_.pick<int64_t>({1, 3, 8, 16, 32, 33});
  const std::string extents = std::to_string(a) + ", " + std::to_string(b);
  std::string shape;
  for (int d = 0; d < 2; ++d) shape += (d ? ", " : "") + random_extent().text;
  declarations_ +=
      "tensor " + q + ": " + name + "[" + shape + "] " + r_.pick({"readonly ", ""}) + "optional\n";
  std::string places, extents_of_z;
  for (const GridVar& g : grid_) {
    extents_of_z += g.extent.text + ", ";
    places += g.name + " :+ 1, ";
  }
  declarations_ += "tensor " + z + ": " + name + "[" + extents_of_z + extents + "]" +
                   r_.pick({" optional", " optional", ""}) + "\n";
  const bool may_miss = declarations_.ends_with("optional\n");
  allocs_ += "  alloc " + t + ": " + r_.pick({"shared ", "fragment "}) + name + "[" + extents + "]\n";
  const std::string present = "present(" + q + ")", other = number_text(type, r_.between(0, 5));
  if (r_.chance(2)) {
    line("if " + present + " {");
    line("  copy " + q + "[" + offset(a) + " :+ " + std::to_string(a) + ", " + offset(b) + " :+ " +
         std::to_string(b) + "] -> " + t);
    line("} else {");
    line("  fill " + t + ", " + other);
    line("}");
  } else {
    line("fill " + t + ", " + other);
  }
  const std::string v = fresh("v"), w = fresh("v"), element = t + "[" + v + ", " + w + "]";
  line("parallel " + v + ", " + w + " in " + extents + " {");
  ++indent_;
  in_parallel_ = true;
  const std::string there = q + "[" + r_.pick({v + " + " + offset(a), v, std::to_string(r_.below(4))}) +
                            ", " + r_.pick({w, v}) + "]";
  switch (r_.below(4)) {
    case 0:
      line("if " + present + " { " + element + " = " + element + " + " + there + " }");
      break;
    case 1:
      line(element + " = select(" + present + ", " + there + ", " + element + ")");
      break;
    case 2:
      line("if " + present + " and " + there + " < " + number_text(type, 3) + " {");
      line("  " + element + " = " + there);
      line("} else {");
      line("  " + element + " = " + element + " + " + number_text(type, 1));
      line("}");
      break;
    default:
      line(element + " = select(not " + present + " or " + w + " % 2 == 1, " + element + ", select(" +
           present + ", " + there + ", " + other + "))");
  }
  in_parallel_ = false;
  --indent_;
  line("}");
  const std::string out = "copy " + t + " -> " + z + "[" + places + "0 :+ " + std::to_string(a) + ", 0 :+ " +
                          std::to_string(b) + "]";
  line(may_miss ? "if present(" + z + ") { " + out + " }" : out);
}

}  // namespace tilegen::differential
