// Blocks of threads in random programs: lanes that give each other values, votes, tiles that threads write
// and others read behind a barrier, asynchronous copies in groups, and rings between warps.
#include <algorithm>

#include "random_generator.h"

namespace tilegen::differential {

// What a lane gets of the others.
std::string Generator::exchanged(DType type, const std::string& value, const std::string& lane,
                                 int64_t lanes) {
  const std::string by = std::to_string(r_.between(0, lanes - 1));
  switch (r_.below(8)) {
    case 7:
      return "cast(" + std::string(ir::dtype_name(type)) + ", match_any(" + value + " & " + by + "))";
    case 6:
      return "select(elect((" + value + " & 3) == " + std::to_string(r_.below(4)) + "), " + value + ", " +
             value + " ^ 1)";
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

// The number of the thread, of the variables that are in scope from here.
std::string Generator::begin_threads(const std::vector<int64_t>& extents) {
  std::string vars, ranges, thread;
  for (const int64_t extent : extents) {
    const std::string v = fresh("v"), e = std::to_string(extent);
    vars += (vars.empty() ? "" : ", ") + v;
    ranges += (ranges.empty() ? "" : ", ") + e;
    thread = thread.empty() ? v : "(" + thread + ") * " + e + " + " + v;
    vars_.push_back({v, extent});
  }
  in_parallel_ = true;
  line("threads " + vars + " in " + ranges + " {");
  ++indent_;
  return thread;
}

void Generator::end_threads(size_t outer_vars) {
  --indent_;
  line("}");
  in_parallel_ = false;
  hidden_.clear();
  vars_.resize(outer_vars);
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
  std::string met;  // elements that each thread has one of, and gets what it was before
  if (r_.chance(2))
    if (Tile* t = tile_of({128}, type, MemScope::shared); t && t->name != name && t->name != result) {
      ensure_written(*t);
      met = t->name;
    }
  const size_t outer_vars = vars_.size();
  std::string thread = begin_threads(extents);
  const std::string lane = vars_.back().name;
  hidden_ = {name, result, met};
  // One and the same at each time: no barrier orders what others do to it.
  const std::string own = "((" + thread + ") * " + std::to_string(r_.pick({1, 3, 5})) + " + " +
                          std::to_string(r_.below(128)) + ") % 128";
  const auto meet = [&] {
    const std::string old = fresh("s");
    line("let " + old + " = atomic_" + r_.pick({"add", "max", "exchange", "xor"}) + "(" + met + "[" + own +
         "], " + value + ")");
    line(value + " = " + value + r_.pick({" + ", " ^ "}) + old);
  };
  line("var " + value + " = " + expr(type, static_cast<int>(r_.between(0, 2))).text);
  for (int64_t steps = r_.between(1, 3); steps > 0; --steps)
    line(value + " = " + value + r_.pick({" + ", " ^ ", " - "}) +
         exchanged(type, value, lane, extents.back()));
  for (int64_t times = met.empty() ? 0 : r_.below(3); times > 0; --times) meet();
  if (r_.chance(2)) {  // a task of the groups that vote for it, or whose lane has it
    const std::string bit = "(" + value + " & " + std::to_string(r_.pick({1, 2, 12})) + ")";
    const std::string asked = r_.pick({"any(" + bit + " != 0)", "all(" + bit + " == 0)",
                                       "ballot(" + bit + " == 0) > 9", "shuffle(" + bit + ", 3) == 0"});
    line("if " + asked + " {");
    ++indent_;
    line(value + " = " + value + " - " + exchanged(type, value, lane, extents.back()));
    if (!met.empty() && r_.chance(2)) meet();
    --indent_;
    line("}");
  }
  if (r_.chance(3)) {  // each thread as often as its own value says
    const std::string k = fresh("k"), step = value + " = " + value + r_.pick({" - ", " ^ "}) + "cast(" +
                                             ir::dtype_name(type) + ", " + lane + " + 1)";
    if (r_.chance(2))
      line("serial " + k + " in 0 .. cast(i64, " + value + " & 3) { " + step + " }");
    else
      line("var " + k + " = 0 while " + k + " < 3 and (" + value + " & 5) != 1 { " + k + " += 1 " + step +
           " }");
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
  end_threads(outer_vars);
  for (Tile& t : tiles_) t.written = t.written || t.name == name || t.name == result;
}

namespace {

// Whole words of 4 bytes, at every size of a launch.
bool copied_in_words(const RandomTensor& t) {
  if (ir::is_bool(t.type)) return false;
  const int64_t in_word = 32 / ir::dtype_bits(t.type);
  const std::string& extent = t.shape[0].text;
  return in_word <= 1 || (t.shape.size() == 1 && extent == std::to_string(t.shape[0].value) &&
                          t.shape[0].value % in_word == 0);
}

}  // namespace

// Elements of a tensor that threads copy, groups ahead of where others read them, into as many slots as that
// takes.
void Generator::thread_copies() {
  if (!states_threads_) return;
  std::vector<const RandomTensor*> sources;
  for (const RandomTensor& t : tensors_)
    if (t.readable && copied_in_words(t)) sources.push_back(&t);
  if (sources.empty()) return;
  const RandomTensor x = *sources[static_cast<size_t>(r_.below(static_cast<int64_t>(sources.size())))];
  const int64_t bits = ir::dtype_bits(x.type), copied = std::max<int64_t>(r_.pick({32, 64, 128}) / bits, 1);
  const int64_t ahead = r_.between(1, 3), row = 128 * copied;
  int64_t trips = r_.between(ahead, 5);
  std::string rounds = std::to_string(trips);
  if (!dims_.empty() && !r_.chance(2)) {
    const std::string d = r_.pick(std::span<const std::string>(dims_));
    trips = (dim_values_[d] + 15) / 16;
    rounds = "ceildiv(" + d + ", 16)";
  }
  if (!affordable(row * (trips + ahead + 1))) return;
  Tile* ring = tile_of({ahead + 1, row}, x.type, MemScope::shared);
  if (!ring) return;
  const bool some = r_.chance(3);  // threads copy; what the others' elements hold is there before
  if (some) ensure_written(*ring);
  const std::string slots = ring->name;
  Tile* to = tile_of({128}, x.type, r_.pick({MemScope::shared, MemScope::fragment}));
  if (!to || to->name == slots) return;
  const std::string result = to->name, value = fresh("s"), group = fresh("v");
  const size_t outer_vars = vars_.size();
  const std::string thread =
      begin_threads(r_.chance(3) ? std::vector<int64_t>{128} : std::vector<int64_t>{4, 32});
  hidden_ = {slots, result};
  const int64_t unit = std::max<int64_t>(32 / bits, 1);
  const auto copy = [&](const std::string& number, const std::string& slot) {
    std::string at;
    for (size_t d = 0; d < x.shape.size(); ++d) {
      at += d ? ", " : "";
      if (d != x.innermost) {
        at += r_.chance(3) ? offset(1) : number;
        continue;
      }
      at += "(" + thread + ") * " + std::to_string(copied) + " - " + std::to_string(r_.below(9) * unit);
      if (x.shape.size() == 1) at += " + " + number + " * " + std::to_string(unit);
      at += " :+ " + std::to_string(copied);
    }
    return "copy_async " + x.name + "[" + at + "] -> " + slots + "[" + slot + ", (" + thread + ") * " +
           std::to_string(copied) + " :+ " + std::to_string(copied) + "]";
  };
  line("var " + value + " = " + number_text(x.type, 0));
  line("unroll " + group + " in 0 .. " + std::to_string(ahead) + " {");
  line("  " + copy(group, group));
  line("  commit_group");
  line("}");
  line("serial " + group + " in 0 .. " + rounds + " {");
  ++indent_;
  line("wait_group " + std::to_string(r_.below(ahead)));
  const std::string n = std::to_string(ahead + 1), next = "(" + group + " + " + std::to_string(ahead) + ")";
  const std::string element = slots + "[" + group + " % " + n + ", ((" + thread + ") * " +
                              std::to_string(copied) + " + " + std::to_string(r_.below(row)) + ") % " +
                              std::to_string(row) + "]";
  line(value + " = " +
       (ir::is_float(x.type) ? r_.pick({"max(", "min("}) + value + ", " + element + ")"
                             : value + r_.pick({" + ", " ^ ", " * 3 + "}) + element));
  std::string copied_if;
  if (r_.chance(2)) copied_if = next + " < " + rounds;
  if (some) copied_if += (copied_if.empty() ? "(" : " and (") + thread + ") % 3 != 1";
  const std::string made = copy(next, next + " % " + n);
  line(copied_if.empty() ? made : "if " + copied_if + " { " + made + " }");
  line("commit_group");
  --indent_;
  line("}");
  line("wait_group 0");
  line(result + "[" + thread + "] = " + value);
  end_threads(outer_vars);
  for (Tile& t : tiles_) t.written = t.written || t.name == result;
}

// Some warps bring numbers through a ring of slots, the others take them, each side at its own pace.
void Generator::thread_ring() {
  if (!states_threads_) return;
  const DType type = r_.pick({DType::i32, DType::i64, DType::u32});
  const int64_t slots = r_.between(1, 4), bring = r_.between(1, 3), row = bring * 32;
  const int64_t trips = r_.between(0, 7);
  const std::string rounds = std::to_string(trips);
  if (!affordable(128 * (trips + 2))) return;
  Tile* ring = tile_of({slots, row}, type, MemScope::shared);
  if (!ring) return;
  const std::string name = ring->name;
  Tile* to = tile_of({128}, type, r_.pick({MemScope::shared, MemScope::fragment}));
  if (!to || to->name == name) return;
  const std::string result = to->name, value = fresh("s"), k = fresh("v"), full = fresh("f"),
                    empty = fresh("e");
  const std::string n = std::to_string(slots), width = std::to_string(row);
  const auto barriers = [&](const std::string& of, int64_t arrivals) {
    allocs_ += "  alloc " + of + ": shared u64[" + n + "] {arrivals = " + std::to_string(arrivals) + "}\n";
  };
  barriers(full, row);
  barriers(empty, 128 - row);
  const size_t outer_vars = vars_.size();
  const std::string thread = begin_threads({4, 32}), warp = vars_[outer_vars].name;
  hidden_ = {name, result};
  line("var " + value + " = " + expr(type, static_cast<int>(r_.between(0, 2))).text);
  line("serial " + k + " in 0 .. " + rounds + " {");
  line("  if " + warp + " < " + std::to_string(bring) + " {");
  line("    mbarrier_wait " + empty + "[" + k + " % " + n + "], (" + k + " // " + n + " + 1) % 2");
  line("    " + name + "[" + k + " % " + n + ", " + thread + "] = " + value + r_.pick({" + ", " ^ "}) +
       "cast(" + ir::dtype_name(type) + ", " + k + ")");
  line("    mbarrier_arrive " + full + "[" + k + " % " + n + "]");
  line("  } else {");
  line("    mbarrier_wait " + full + "[" + k + " % " + n + "], " + k + " // " + n + " % 2");
  line("    " + value + " = " + value + r_.pick({" + ", " ^ ", " * 3 + "}) + name + "[" + k + " % " + n +
       ", (" + thread + " + " + std::to_string(r_.below(row)) + ") % " + width + "]");
  line("    mbarrier_arrive " + empty + "[" + k + " % " + n + "]");
  line("  }");
  line("}");
  line(result + "[" + thread + "] = " + value);
  end_threads(outer_vars);
  for (Tile& t : tiles_) t.written = t.written || t.name == result;
}

}  // namespace tilegen::differential
