// Blocks of threads in random programs: lanes that give each other values, votes, and tiles that threads
// write and others read behind a barrier.
#include "random_generator.h"

namespace tilegen::differential {

// What a lane gets of the others.
std::string Generator::exchanged(DType type, const std::string& value, const std::string& lane,
                                 int64_t lanes) {
  const std::string by = std::to_string(r_.between(0, lanes - 1));
  switch (r_.below(6)) {
    case 5:
      return "cast(" + std::string(ir::dtype_name(type)) + ", ballot(" + value + " > " + by + "))";
    case 0:
      return "shuffle(" + value + ", (" + lane + " * 3 + " + by + ") % " + std::to_string(lanes) + ")";
    case 1:
      return "shuffle_xor(" + value + ", " + by + ")";
    case 2:
      return "shuffle_up(" + value + ", " + by + ")";
    case 3:
      return "shuffle_down(" + value + ", " + by + ")";
    default:
      return "select(" + std::string(r_.pick({"any(", "all("})) + lane + " < " + by + "), " + value + ", " +
             value + " ^ 1)";
  }
}

// Of integers, whose operations no order changes. Kernels that state their threads have such blocks.
void Generator::thread_block() {
  if (!states_threads_ || !affordable(128 * 12)) return;
  const DType type = r_.pick({DType::i32, DType::i64, DType::u32});
  const std::vector<int64_t> extents = r_.chance(3)   ? std::vector<int64_t>{16, 8}
                                       : r_.chance(3) ? std::vector<int64_t>{2, 2, 32}
                                                      : std::vector<int64_t>{4, 32};
  Tile* written = tile_of({128}, type, MemScope::shared);
  if (!written) return;
  const std::string name = written->name;
  Tile* other = tile_of({128}, type, r_.pick({MemScope::shared, MemScope::fragment}));
  if (!other || other->name == name) return;
  const std::string result = other->name, value = fresh("s");
  const size_t outer_vars = vars_.size();
  std::string vars, ranges, thread;
  for (const int64_t extent : extents) {
    const std::string v = fresh("v"), e = std::to_string(extent);
    vars += (vars.empty() ? "" : ", ") + v;
    ranges += (ranges.empty() ? "" : ", ") + e;
    thread = thread.empty() ? v : "(" + thread + ") * " + e + " + " + v;
    vars_.push_back({v, extent});
  }
  const std::string lane = vars_.back().name;
  hidden_ = {name, result};
  in_parallel_ = true;
  line("threads " + vars + " in " + ranges + " {");
  ++indent_;
  line("var " + value + " = " + expr(type, static_cast<int>(r_.between(0, 2))).text);
  for (int64_t steps = r_.between(1, 3); steps > 0; --steps)
    line(value + " = " + value + r_.pick({" + ", " ^ ", " - "}) +
         exchanged(type, value, lane, extents.back()));
  if (r_.chance(2)) {  // a task of the groups that vote for it, or whose lane has it
    const std::string bit = "(" + value + " & " + std::to_string(r_.pick({1, 2, 12})) + ")";
    const std::string asked = r_.pick({"any(" + bit + " != 0)", "all(" + bit + " == 0)",
                                       "ballot(" + bit + " == 0) > 9", "shuffle(" + bit + ", 3) == 0"});
    line("if " + asked + " { " + value + " = " + value + " - " +
         exchanged(type, value, lane, extents.back()) + " }");
  }
  if (r_.chance(2)) {  // whatever the extents are
    thread = "thread_id()";
    line(value + " = " + value + " + cast(" + ir::dtype_name(type) + ", " +
         r_.pick({"lane_id()", "warp_id()", "warpgroup_id()", "block_id()"}) + ")");
  }
  line(name + "[" + thread + "] = " + value);
  line("barrier");
  line(result + "[" + thread + "] = " + name + "[(" + thread + " + " + std::to_string(r_.between(0, 127)) +
       ") % 128]");
  if (r_.chance(2)) {
    line("barrier");
    line("if " + (r_.chance(2) ? "warp_id()" : vars_[outer_vars].name) + " == 1 { " + name + "[" + thread +
         "] = " + exchanged(type, value, lane, extents.back()) + " }");
  }
  --indent_;
  line("}");
  in_parallel_ = false;
  hidden_.clear();
  vars_.resize(outer_vars);
  for (Tile& t : tiles_) t.written = t.written || t.name == name || t.name == result;
}

}  // namespace tilegen::differential
