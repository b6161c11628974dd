#include <algorithm>
#include <cstdlib>
#include <utility>

#include "expand/scheduled_kernel.h"
#include "ir/statement_paths.h"

namespace tilegen::expand {

namespace {

const char* transport_name(Transport t) {
  switch (t) {
    case Transport::tensor_copy:
      return "tensor_copy";
    case Transport::async_copy:
      return "async_copy";
    case Transport::register_copy:
      return "register_copy";
    case Transport::threads:
      return "threads";
    case Transport::registers:
      return "registers";
  }
  return "";
}

std::string text_of(Iteration i) {
  if (i.from == Iteration::From::none) return "";
  const char* from = i.from == Iteration::From::first ? "first"
                     : i.from == Iteration::From::end ? "end"
                                                      : "i";
  if (i.plus == 0) return from;
  return std::string(from) + (i.plus > 0 ? " + " : " - ") + std::to_string(std::abs(i.plus));
}

std::string in_brackets(Iteration i) {
  return i.from == Iteration::From::none ? "" : " [" + text_of(i) + "]";
}

class Printer {
 public:
  Printer(const ir::Program& p, const ScheduledKernel& k) : k_(k), paths_(p, k.kernel) {}

  std::string run() {
    text_ = "kernel " + k_.schedule->kernel + "\n";
    for (const Pipeline& line : k_.pipelines) {
      text_ += "pipeline " + name_of(line) + ": " + transport_name(line.transport) + " {";
      const char* separator = "";
      for (ValueId v : line.values) text_ += std::exchange(separator, ", ") + value(v);
      text_ += "}, " + std::to_string(line.slots) + " slots, " +
               (line.loop.valid() ? "filled by iterations of " + paths_[line.loop.value] : "filled once") +
               "\n";
    }
    for (const Role& r : k_.roles) {
      text_ += "role " + r.name + ": threads " + std::to_string(r.first_thread) + " .. " +
               std::to_string(r.first_thread + r.threads);
      if (r.registers > 0) text_ += ", " + std::to_string(r.registers) + " registers";
      text_ += "\n";
      block(r.body, 1);
    }
    return std::move(text_);
  }

 private:
  const std::string& path(StmtId id) const { return paths_[id.value]; }
  const std::string& value(ValueId v) const { return k_.ops->values[v].name; }
  std::string name(int pipeline) const { return name_of(k_.pipelines[static_cast<size_t>(pipeline)]); }
  std::string slot(int pipeline, Iteration at) const {
    return k_.pipelines[static_cast<size_t>(pipeline)].loop.valid()
               ? name(pipeline) + " [" + text_of(at) + "]"
               : name(pipeline);
  }

  void line(int depth, const std::string& words) {
    text_ += std::string(2 * static_cast<size_t>(depth), ' ') + words + "\n";
  }
  void block(const Block& b, int depth, const std::string& suffix = "") {
    for (const Stmt& s : b) std::visit([&](const auto& node) { print(node, depth, suffix); }, s.node);
  }
  void inside(const std::string& head, const Block& b, int depth) {
    line(depth, head + " {");
    block(b, depth + 1);
    line(depth, "}");
  }

  void print(const Run& s, int d, const std::string& at) {
    line(d, "run " + path(s.op) + (s.overwrite ? ", overwrites" : "") +
                (s.stages_in_turn ? ", its stage in turn" : "") + at);
  }
  void print(const Issue& s, int d, const std::string& at) {
    line(d, "issue " + path(s.op) + (s.part == Issue::kWhole ? "" : " part " + std::to_string(s.part)) +
                (s.overwrite ? ", overwrites" : "") + (s.own_left ? ", own left operand in registers" : "") +
                at);
  }
  void print(const Deposit& s, int d, const std::string& at) { line(d, "deposit " + path(s.op) + at); }
  void print(const Await& s, int d, const std::string&) {
    std::string words = "await";
    for (const Token& t : s.finished) words += " " + path(t.op) + in_brackets(t.at);
    words += ", " + std::to_string(s.pending) + " pending";
    if (!s.values.empty()) words += ", valid:";
    for (const ValueAt& v : s.values) words += " " + value(v.value) + in_brackets(v.at);
    line(d, words + (s.after_work ? ", after the threads' work" : ""));
  }
  void print(const Acquire& s, int d, const std::string&) { line(d, "producer_acquire " + name(s.pipeline)); }
  void print(const Commit& s, int d, const std::string&) { line(d, "producer_commit " + name(s.pipeline)); }
  void print(const Wait& s, int d, const std::string&) {
    line(d, "consumer_wait " + slot(s.pipeline, s.at) + (s.peeked ? ", peeked" : ""));
  }
  void print(const Peek& s, int d, const std::string&) { line(d, "consumer_peek " + slot(s.pipeline, s.at)); }
  void print(const Release& s, int d, const std::string&) {
    line(d, "consumer_release " + slot(s.pipeline, s.at) + (s.where_exists ? ", where it exists" : ""));
  }
  void print(const CommitGroup&, int d, const std::string&) { line(d, "commit_group"); }
  void print(const OnBarrier& s, int d, const std::string& at) { line(d, path(s.op) + at); }
  void print(const WaitGroup& s, int d, const std::string&) {
    line(d, "wait_group " + std::to_string(s.pending) + " pending");
  }
  void print(const Barrier& s, int d, const std::string&) {
    line(d, s.scope == Scope::warpgroup ? "barrier warpgroup" : "barrier role");
  }
  void print(const Fence&, int d, const std::string&) { line(d, "fence async_proxy"); }
  void print(const Order& s, int d, const std::string&) {
    const char* const words[] = {"begin", "wait", "pass", "end"};
    line(d, std::string("order ") + words[static_cast<int>(s.step)]);
  }
  void print(const PerWarpgroup& s, int d, const std::string&) {
    for (size_t w = 0; w < s.bodies.size(); ++w) inside("warpgroup " + std::to_string(w), s.bodies[w], d);
  }
  void print(const ProductsDone& s, int d, const std::string&) {
    line(d, s.waits ? "wait until the other's products are done" : "own products are done");
  }
  void print_rows(std::string words, const std::vector<ValueId>& values, int d) {
    for (ValueId v : values) words += " " + value(v);
    line(d, words);
  }
  static std::string of_part(analysis::Alternation::Part part) {
    const char* const words[] = {" of the head", "", " of the tail"};
    return words[static_cast<size_t>(part)];
  }
  void print(const PutRows& s, int d, const std::string&) {
    print_rows("put rows" + of_part(s.part), s.values, d);
  }
  void print(const FetchRows& s, int d, const std::string&) {
    print_rows("fetch rows" + of_part(s.part), s.values, d);
  }
  void print(const WithFetched& s, int d, const std::string&) { inside("with fetched rows", s.body, d); }
  void print(const SplitSums& s, int d, const std::string&) { line(d, "split sums of " + path(s.loop)); }
  void print(const JoinSums& s, int d, const std::string&) { line(d, "join sums of " + path(s.loop)); }
  void print(const ReduceParts& s, int d, const std::string&) {
    std::string sums;
    for (ValueId v : s.sums) sums += " " + value(v);
    line(d, "reduce parts of " + path(s.loop) + ":" + sums);
    inside(s.shares.empty() ? "first block of the cluster" : "each block of the cluster, its share", s.body,
           d);
  }
  void print(const LoadOperands& s, int d, const std::string& at) {
    line(d, "load first operands of " + path(s.product) + at);
  }
  void print(const Multiply& s, int d, const std::string&) {
    if (!s.beside.empty()) inside("between instructions of " + path(s.product), s.beside, d);
    if (s.before_last.empty())
      line(d, "run " + path(s.product));
    else
      inside("run " + path(s.product) + ", before its last instructions", s.before_last, d);
  }
  void print(const Serial& s, int d, const std::string&) { inside("for " + path(s.loop), s.body, d); }
  void print(const Branch& s, int d, const std::string&) {
    inside("if " + path(s.branch), s.then_body, d);
    if (!s.else_body.empty()) inside("else", s.else_body, d);
  }
  // Bodies that read alike stand once.
  void print(const Version& s, int d, const std::string& at) {
    if (s.condition == Version::Condition::factor_is_not_one) {
      print_version("where an element of " + value(s.factor) + " is not 1: ", s.then_body, d, at);
      return;
    }
    const bool tile = s.condition == Version::Condition::full_tile;
    const size_t begin = text_.size();
    print_version(tile ? "full tile: " : "unmasked: ", s.then_body, d, at);
    const std::string then_text = text_.substr(begin);
    text_.resize(begin);
    print_version(tile ? "edge: " : "masked: ", s.else_body, d, at);
    const std::string else_text = text_.substr(begin);
    const auto after = [](const std::string& text) {
      return text.substr(std::min(text.find(": "), text.size()));
    };
    text_.resize(begin);
    if (after(then_text) == after(else_text))
      text_ += std::string(2 * static_cast<size_t>(d), ' ') +
               (tile ? "full tile | edge" : "unmasked | masked") + after(then_text);
    else
      text_ += then_text + else_text;
  }
  void print_version(const std::string& head, const Block& b, int d, const std::string& at) {
    const size_t begin = text_.size();
    block(b, d, at);
    if (text_.size() == begin)
      line(d, head + "nothing");
    else
      text_.insert(begin + 2 * static_cast<size_t>(d), head);
  }
  void print(const Pipelined& s, int d, const std::string&) {
    inside("pipelined " + path(s.loop), s.body, d);
  }
  void print(const Steady& s, int d, const std::string&) {
    inside("for i in " + std::to_string(s.first) + " .. end" +
               (s.step > 1 ? " step " + std::to_string(s.step) : ""),
           s.body, d);
  }
  void print(const At& s, int d, const std::string&) {
    const std::string at = text_of(s.iteration) + (s.where_exists ? ", where it exists" : "");
    const auto plain = [](const Stmt& x) {
      return std::holds_alternative<Run>(x.node) || std::holds_alternative<Issue>(x.node) ||
             std::holds_alternative<Deposit>(x.node) || std::holds_alternative<LoadOperands>(x.node) ||
             std::holds_alternative<Version>(x.node);
    };
    if (std::all_of(s.body.begin(), s.body.end(), plain))
      block(s.body, d, " [" + at + "]");
    else
      inside("iteration " + at, s.body, d);
  }
  void print(const Remainder& s, int d, const std::string&) {
    for (size_t r = 0; r < s.cases.size(); ++r)
      if (!s.cases[r].empty()) inside("where " + std::to_string(r) + " iterations are left", s.cases[r], d);
  }
  void print(const WhereIterations& s, int d, const std::string&) {
    const std::string least = s.least > 1 ? std::to_string(s.least) + " or more " : "";
    if (!s.then_body.empty()) inside("where the loop has " + least + "iterations", s.then_body, d);
    if (!s.else_body.empty())
      inside(s.least > 1 ? "where it has fewer" : "where it has none", s.else_body, d);
  }
  void print(const TileLoop& s, int d, const std::string&) {
    const char* const words[] = {"the block's tile", "tiles of the block's index",
                                 "tiles that the scheduler hands over", "tiles that the role fetches"};
    inside(words[static_cast<int>(s.walk)], s.body, d);
  }
  void print(const Preamble& s, int d, const std::string&) {
    inside("preamble: the first " + std::to_string(s.iterations) + " iterations of " + path(s.loop), s.body,
           d);
  }
  void print(const BehindPreamble& s, int d, const std::string&) { inside("behind the preamble", s.body, d); }
  void print(const GridDependencyWait&, int d, const std::string&) { line(d, "grid_dependency_wait"); }
  void print(const AwaitStores&, int d, const std::string&) { line(d, "await bulk stores"); }
  void print(const ClusterBarrier&, int d, const std::string&) { line(d, "barrier cluster"); }

  const ScheduledKernel& k_;
  const ir::KernelPaths paths_;
  std::string text_;
};

}  // namespace

std::string print_scheduled(const ir::Program& p, const ScheduledKernel& k) { return Printer(p, k).run(); }

}  // namespace tilegen::expand
