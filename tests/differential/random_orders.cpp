// What blocks of random programs leave for each other in one launch, by ordered atomic operations: counters
// whose last block adds up, flags that the next block waits for, and orders that change no result. The
// numbers are of a series of their own.
#include "random_generator.h"

namespace tilegen::differential {

void Generator::begin_orders(uint64_t seed) {
  of_orders_ = Random(seed, "orders");
  has_orders_ = of_orders_.chance(6);
}

void Generator::use_order() {
  if (!has_orders_ || other_loops_ > 0) return;
  std::swap(r_, of_orders_);
  if (r_.chance(6)) ordered_update();
  std::swap(r_, of_orders_);
}

// All blocks meet in the elements of a tensor of its own, in any order.
void Generator::ordered_update() {
  const DType type = r_.pick({DType::i32, DType::u32, DType::i64, DType::u64});
  const int64_t points = r_.pick<int64_t>({1, 4, 31, 32, 64}), elements = r_.between(1, points);
  if (!affordable(6 * points)) return;
  const std::string z = fresh("z"), n = std::to_string(elements);
  declarations_ += "tensor " + z + ": " + std::string(ir::dtype_name(type)) + "[" + n + "]\n";
  const size_t outer_vars = vars_.size();
  const auto v = begin_points({points});
  const bool some = r_.chance(3);
  if (some) line("if " + bool_expr(1).text + " {");
  line("atomic_" + std::string(r_.pick({"add", "min", "max", "and", "or", "xor"})) + "(" + z + "[" + v[0] +
       (elements < points ? " % " + n : "") + "], " + expr(type, 1).text +
       ") {order = " + r_.pick({"acquire", "release", "acq_rel"}) + "}");
  if (some) line("}");
  end_points(outer_vars);
}

// Kernels behind the others, of tensors of their own.
void Generator::ordered_kernels() {
  if (!has_orders_) return;
  std::swap(r_, of_orders_);
  if (r_.chance(2)) r_.chance(2) ? last_block() : chained_blocks();
  std::swap(r_, of_orders_);
}

// A number of blocks, and the rows that each has.
std::string Generator::some_blocks(int64_t rows) {
  if (dims_.empty() || r_.chance(3)) return std::to_string(r_.between(1, 6));
  return "ceildiv(" + r_.pick(std::span<const std::string>(dims_)) + ", " + std::to_string(rows) + ")";
}

// Each block leaves a part; the one that counts last combines all of them.
void Generator::last_block() {
  const std::string type = ir::dtype_name(r_.pick({DType::i32, DType::u32, DType::i64}));
  const std::string counter = ir::dtype_name(r_.pick({DType::i32, DType::u32, DType::i64}));
  const std::string width = std::to_string(r_.pick<int64_t>({1, 8, 32, 33, 64})), blocks = some_blocks(16);
  const std::string part = fresh("w"), count = fresh("w"), y = fresh("o"), x = fresh("t"), all = fresh("t"),
                    before = fresh("t"), j = fresh("v"), k = fresh("v"), b = fresh("g");
  declarations_ += "tensor " + part + ": " + type + "[" + blocks + ", " + width + "] workspace\n" +
                   "tensor " + count + ": " + counter + "[1] workspace\n" +  //
                   "tensor " + y + ": " + type + "[" + width + "]\n";
  const std::string threads = r_.pick({"", " threads 64", " threads 128"});
  const std::string made = "cast(" + type + ", (" + b + " * " + std::to_string(r_.between(1, 9)) + " + " + j +
                           ") % " + std::to_string(r_.between(2, 40)) + ")";
  kernels_ += "\nkernel begin_" + part + " grid (" + b + ": 1) {\n  parallel " + j + " in 1 { " + count +
              "[" + j + "] = 0 }\n}\n";
  kernels_ += "\nkernel last_" + part + " grid (" + b + ": " + blocks + ")" + threads + " {\n";
  kernels_ += "  alloc " + x + ": " + r_.pick({"shared ", "fragment "}) + type + "[" + width + "]\n";
  kernels_ += "  alloc " + all + ": fragment " + type + "[" + width + "]\n";
  kernels_ += "  alloc " + before + ": shared " + counter + "[1]\n";
  kernels_ += "  parallel " + j + " in " + width + " { " + x + "[" + j + "] = " + made + " }\n";
  kernels_ += r_.chance(2) ? "  copy " + x + " -> " + part + "[" + b + " :+ 1, 0 :+ " + width + "]\n"
                           : "  parallel " + j + " in " + width + " { " + part + "[" + b + ", " + j +
                                 "] = " + x + "[" + j + "] }\n";
  kernels_ += "  parallel " + j + " in 1 { " + before + "[" + j + "] = atomic_add(" + count + "[" + j +
              "], 1) {order = acq_rel} }\n";
  kernels_ += "  if " + before + "[0] == cast(" + counter + ", " + blocks + ") - 1 {\n    fill " + all +
              ", 0\n    serial " + k + " in 0 .. " + blocks + " {\n      parallel " + j + " in " + width +
              " { " + all + "[" + j + "] = " + all + "[" + j + "] " + r_.pick({"+ ", "^ ", "* 3 + "}) + part +
              "[" + k + ", " + j + "] }\n    }\n    copy " + all + " -> " + y + "[0 :+ " + width +
              "]\n  }\n}\n";
}

// Each block waits for the flag of the one before, and hands on what that left.
void Generator::chained_blocks() {
  const std::string type = ir::dtype_name(r_.pick({DType::i32, DType::u32, DType::i64}));
  const std::string blocks = some_blocks(8), carry = fresh("w"), flag = fresh("w"), y = fresh("o"),
                    base = fresh("t"), ready = fresh("t"), j = fresh("v"), b = fresh("g");
  const std::string width = std::to_string(r_.pick<int64_t>({1, 8, 32, 40}));
  declarations_ += "tensor " + carry + ": " + type + "[" + blocks + ", " + width + "] workspace\n" +
                   "tensor " + flag + ": i32[" + blocks + "] workspace\n" +  //
                   "tensor " + y + ": " + type + "[" + blocks + ", " + width + "]\n";
  kernels_ += "\nkernel begin_" + carry + " grid (" + b + ": " + blocks + ") {\n  parallel " + j +
              " in 1 { " + flag + "[" + b + "] = 0 }\n  parallel " + j + " in " + width + " { " + carry +
              "[" + b + ", " + j + "] = 0 }\n}\n";
  kernels_ += "\nkernel chain_" + carry + " grid (" + b + ": " + blocks + ")" +
              r_.pick({"", " threads 64", " threads 128"}) + " {\n";
  kernels_ += "  alloc " + base + ": " + r_.pick({"shared ", "fragment "}) + type + "[" + width + "]\n";
  kernels_ += "  alloc " + ready + ": shared i32[1]\n  fill " + base + ", 3\n  if " + b +
              " > 0 {\n    fill " + ready + ", 0\n    while " + ready + "[0] == 0 {\n      parallel " + j +
              " in 1 { " + ready + "[" + j + "] = atomic_or(" + flag + "[" + b +
              " - 1], 0) {order = " + r_.pick({"acquire", "acq_rel"}) + "} }\n    }\n    copy " + carry +
              "[" + b + " - 1 :+ 1, 0 :+ " + width + "] -> " + base + "\n  }\n";
  kernels_ += "  parallel " + j + " in " + width + " { " + base + "[" + j + "] = " + base + "[" + j + "] " +
              r_.pick({"+ ", "* 5 + ", "^ "}) + "cast(" + type + ", " + b + " + " + j + ") }\n";
  kernels_ += "  copy " + base + " -> " + carry + "[" + b + " :+ 1, 0 :+ " + width + "]\n";
  kernels_ += "  parallel " + j + " in 1 { atomic_" + r_.pick({"exchange", "or", "add"}) + "(" + flag + "[" +
              b + "], 1) {order = " + r_.pick({"release", "acq_rel"}) + "} }\n";
  kernels_ += "  copy " + base + " -> " + y + "[" + b + " :+ 1, 0 :+ " + width + "]\n}\n";
}

}  // namespace tilegen::differential
