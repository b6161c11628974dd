// Named values: bodies with let, var, assignments and loops against the same bodies written with tiles and
// repeated statements.
#include <map>
#include <random>

#include "run_text.h"

namespace tilegen::interp {
namespace {

constexpr int kRows = 3, kColumns = 4;

// A random body, written in both ways at once. Names stand in expressions as $x, counters of loops as #k.
class Body {
 public:
  explicit Body(uint32_t seed) : random_(seed) {}

  std::string named, plain, tiles;

  void run() { statements(6, 0); }

 private:
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  std::string expr(int depth) {
    if (depth == 0 || pick(4) == 0) {
      const int leaf = pick(6);
      if (leaf < 3 && !names_.empty())
        return "$" + names_[static_cast<size_t>(pick(static_cast<int>(names_.size())))] + ";";
      if (leaf < 4 && !counters_.empty())
        return "cast(i32, #" + counters_[static_cast<size_t>(pick(static_cast<int>(counters_.size())))] +
               ";)";
      if (leaf < 5) return std::string(pick(2) ? "p" : "q") + "[i, j]";
      return std::to_string(pick(5)) + "i32";
    }
    const char* const ops[] = {" + ", " - ", " * "};
    return "(" + expr(depth - 1) + ops[pick(3)] + expr(depth - 1) + ")";
  }

  // An expression's text, of names or of their tiles, with the counters' values.
  std::string written(const std::string& e, bool as_tiles) const {
    std::string out;
    for (size_t at = 0; at < e.size(); ++at) {
      if (e[at] != '$' && e[at] != '#') {
        out += e[at];
        continue;
      }
      const size_t end = e.find(';', at);
      const std::string name = e.substr(at + 1, end - at - 1);
      out += e[at] == '#' ? (as_tiles ? std::to_string(values_.at(name)) : name)
             : as_tiles   ? "t_" + name + "[i, j]"
                          : name;
      at = end;
    }
    return out;
  }

  struct Statement {
    enum Kind { value, assign, store, branch, loop } kind = store;
    bool assignable = false;
    std::string name, text;
    int trips = 0;
    std::vector<Statement> body, other;
  };

  std::vector<Statement> made(int count, int depth) {
    std::vector<Statement> list;
    const size_t names = names_.size(), vars = vars_.size();
    for (int n = 0; n < count; ++n) {
      Statement s;
      const int kind = pick(depth < 2 ? 8 : 5);
      s.text = expr(2);
      if (kind < 2) {
        s.kind = Statement::value;
        s.assignable = pick(2) == 0;
        s.name = "n" + std::to_string(next_++);
        tiles += "  alloc t_" + s.name + ": fragment i32[3, 4]\n";
        names_.push_back(s.name);
        if (s.assignable) vars_.push_back(s.name);
      } else if (kind < 4 && !vars_.empty()) {
        s.kind = Statement::assign;
        s.name = vars_[static_cast<size_t>(pick(static_cast<int>(vars_.size())))];
      } else if (kind < 6) {
        s.name = pick(2) ? "p" : "q";
      } else if (kind < 7) {
        s.kind = Statement::branch;
        s.body = made(1 + pick(3), depth + 1);
        if (pick(2)) s.other = made(1 + pick(2), depth + 1);
      } else {
        s.kind = Statement::loop;
        s.trips = pick(4);
        s.name = "k" + std::to_string(next_++);
        counters_.push_back(s.name);
        s.body = made(1 + pick(3), depth + 1);
        counters_.pop_back();
      }
      list.push_back(std::move(s));
    }
    names_.resize(names);
    vars_.resize(vars);
    return list;
  }

  void write(const Statement& s, bool as_tiles, std::string& out) {
    const std::string text = written(s.text, as_tiles);
    switch (s.kind) {
      case Statement::value:
        out += as_tiles ? "t_" + s.name + "[i, j] = " : (s.assignable ? "var " : "let ") + s.name + " = ";
        out += text + "\n";
        break;
      case Statement::assign:
        out += (as_tiles ? "t_" + s.name + "[i, j]" : s.name) + " = " + text + "\n";
        break;
      case Statement::store:
        out += s.name + "[i, j] = " + text + "\n";
        break;
      case Statement::branch:
        out += "if " + text + " % 3i32 != 0i32 {\n";
        for (const Statement& inner : s.body) write(inner, as_tiles, out);
        out += "} else {\n";
        for (const Statement& inner : s.other) write(inner, as_tiles, out);
        out += "}\n";
        break;
      case Statement::loop:
        if (!as_tiles)
          out +=
              (s.trips % 2 ? "serial " : "unroll ") + s.name + " in 1 :+ " + std::to_string(s.trips) + " {\n";
        for (int k = 0; k < (as_tiles ? s.trips : 1); ++k) {
          values_[s.name] = k + 1;
          for (const Statement& inner : s.body) write(inner, as_tiles, out);
        }
        if (!as_tiles) out += "}\n";
    }
  }

  void statements(int count, int depth) {
    for (const Statement& s : made(count, depth)) {
      write(s, false, named);
      write(s, true, plain);
    }
  }

  std::mt19937 random_;
  std::vector<std::string> names_, vars_, counters_;
  std::map<std::string, int> values_;
  int next_ = 0;
};

std::string program_of(const std::string& tiles, const std::string& body) {
  return "tl 1 program p\ntensor P: i32[3, 4]\ntensor Q: i32[3, 4]\nkernel k grid(b: 1) {\n"
         "  alloc p: fragment i32[3, 4]\n  alloc q: fragment i32[3, 4]\n" +
         tiles + "  copy P -> p\n  copy Q -> q\n  parallel i, j in 3, 4 {\n" + body +
         "  }\n  copy p -> P\n  copy q -> Q\n}\n";
}

std::vector<double> result_of(const std::string& text) {
  Tensor p(ir::DType::i32, kRows * kColumns), q(ir::DType::i32, kRows * kColumns);
  for (size_t i = 0; i < p.size(); ++i) p.set(i, 3 * i + 1.0), q.set(i, 7.0 - 2.0 * i);
  run_text(text, {p.slot(), q.slot()});
  std::vector<double> all = p.values();
  for (double v : q.values()) all.push_back(v);
  return all;
}

TEST(Names, AsTilesAndRepeatedStatements) {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    Body body(seed);
    body.run();
    const std::string named = program_of("", body.named), plain = program_of(body.tiles, body.plain);
    ASSERT_EQ(result_of(named), result_of(plain))
        << named << plain << ir::print_program(checked_program(named));
  }
}

// Two values that change places each time lie in memory while they do.
TEST(Names, Rotation) {
  std::string body = "var u = p[i, j]\nvar v = q[i, j]\n";
  body += "serial r in 0 .. 5 { let sum = u + v p[i, j] = u u = v v = sum }\nq[i, j] = v\n";
  std::vector<double> expected;
  std::vector<int> rows_p, rows_q;
  for (int i = 0; i < kRows * kColumns; ++i) {
    int a = 3 * i + 1, b = 7 - 2 * i, p = 0;
    for (int k = 0; k < 5; ++k) p = a, b = a + b, a = b - a;
    rows_p.push_back(p), rows_q.push_back(b);
  }
  expected.assign(rows_p.begin(), rows_p.end());
  expected.insert(expected.end(), rows_q.begin(), rows_q.end());
  EXPECT_EQ(result_of(program_of("", body)), expected);
}

// A name of something that a loop changes outside of parallel loops.
TEST(Names, BetweenLoops) {
  const std::string text =
      "tl 1 program p\ntensor P: i32[4]\nkernel k grid(b: 1) {\n  alloc n: local i32[1]\n  fill n, 3\n"
      "  let first = n[0] * 2\n  serial t in 0 .. 4 {\n    let now = n[0]\n    n[0] = now + first\n"
      "    P[t] = now\n  }\n}\n";
  Tensor p(ir::DType::i32, 4);
  run_text(text, {p.slot()});
  EXPECT_EQ(p.values(), (std::vector<double>{3, 9, 15, 21}));
}

}  // namespace
}  // namespace tilegen::interp
