#include "schedule_mutation.h"

#include <algorithm>
#include <map>

#include "layout/fragment.h"

namespace tilegen::differential {

namespace {

// Fields that are recorded for the reader.
bool is_decision(const std::string& key, const JsonTree& t) {
  if (key == "memory") return t.kind == JsonKind::string;  // of a value; the kernel's list is derived
  return key != "notes" && key != "reason" && key != "version" && key != "origin" && key != "cost" &&
         key != "program_hash" && key != "target";
}

bool is_layout(const std::string& key) {
  return key == "iteration" || key == "fragment" || key == "memory" || key == "from" || key == "to";
}

bool is_name(const std::string& key) {
  return key == "kernel" || key == "op" || key == "value" || key == "loop" || key == "name" ||
         key == "producer" || key == "consumer";
}

// A node with its place.
struct Node {
  JsonTree* parent = nullptr;
  size_t at = 0;
  std::string path, key;
  JsonTree& tree() const { return parent->items[at].second; }
};

void collect(JsonTree& t, const std::string& path, std::vector<Node>& nodes) {
  for (size_t i = 0; i < t.items.size(); ++i) {
    auto& [name, item] = t.items[i];
    if (!is_decision(name, item)) continue;
    const std::string here = path + (t.kind == JsonKind::object ? "." + name : "[" + std::to_string(i) + "]");
    nodes.push_back({&t, i, here, name});
    collect(item, here, nodes);
  }
}

class Mutation {
 public:
  Mutation(JsonTree& schedule, Random& random) : random_(random) { collect(schedule, "$", nodes_); }

  // Empty: an earlier mutation left nothing to change.
  std::string run() {
    while (!nodes_.empty()) {
      const Node node = random_.pick(std::span<const Node>(nodes_));
      if (is_name(node.key) && !random_.chance(8)) continue;  // mostly refused as what does not exist
      const std::string what = change(node);
      if (!what.empty()) return node.path + ": " + what;
    }
    return {};
  }

 private:
  std::string change(const Node& n) {
    switch (random_.below(8)) {
      case 0:
        return drop(n);
      case 1:
        return retype(n);
      case 2:
        return copy_of_another(n);
      case 3:
      case 4:
        return n.tree().kind == JsonKind::object ? add_field(n) : reorder(n);
      default:
        return another_value(n);
    }
  }

  static std::string shortened(const JsonTree& t) {
    const std::string text = t.print();
    return text.size() > 160 ? text.substr(0, 160) + "..." : text;
  }
  std::string put(const Node& n, JsonTree value) {
    const std::string text = shortened(n.tree()) + " becomes " + shortened(value);
    n.tree() = std::move(value);
    return text;
  }
  std::string drop(const Node& n) {
    const std::string text = "left out, was " + shortened(n.tree());
    n.parent->items.erase(n.parent->items.begin() + static_cast<long>(n.at));
    return text;
  }
  std::string retype(const Node& n) {
    if (!random_.chance(4)) return "";
    switch (random_.below(5)) {
      case 0:
        return put(n, JsonTree::string("4"));
      case 1:
        return put(n, JsonTree::number("7"));
      case 2:
        return put(n, JsonTree::boolean(true));
      case 3:
        return put(n, JsonTree{});
      default:
        return put(n, JsonTree::array({"x"}));
    }
  }
  // A value of the same key, or of any layout, elsewhere.
  std::string copy_of_another(const Node& n) {
    std::vector<const Node*> others;
    for (const Node& o : nodes_) {
      const bool alike = o.key == n.key || (is_layout(o.key) && is_layout(n.key));
      if (alike && o.tree().kind == n.tree().kind && o.tree().print() != n.tree().print())
        others.push_back(&o);
    }
    if (others.empty() || n.tree().kind == JsonKind::object) return "";
    return put(n, JsonTree(random_.pick(std::span<const Node* const>(others))->tree()));
  }
  std::string reorder(const Node& n) {
    auto& items = n.tree().items;
    if (n.tree().kind != JsonKind::array || items.empty()) return "";
    const size_t a = static_cast<size_t>(random_.below(static_cast<int64_t>(items.size())));
    const size_t b = static_cast<size_t>(random_.below(static_cast<int64_t>(items.size())));
    if (a == b) {
      items.push_back(items[a]);
      return "item " + std::to_string(a) + " twice";
    }
    std::swap(items[a], items[b]);
    return "items " + std::to_string(a) + " and " + std::to_string(b) + " swapped";
  }

  std::string another_value(const Node& n) {
    const JsonTree& t = n.tree();
    if (t.kind == JsonKind::boolean) return put(n, JsonTree::boolean(!t.truth));
    if (t.kind == JsonKind::integer) return put(n, another_number(t.text));
    if (t.kind == JsonKind::string) return put(n, JsonTree::string(another_string(n.key, t.text)));
    return "";
  }
  JsonTree another_number(const std::string& text) {
    const int64_t v = std::strtoll(text.c_str(), nullptr, 10);
    const auto pick = [&] {
      if (!random_.chance(3)) return random_.pick({v + 1, v - 1, 2 * v, v / 2, v + 8, 4 * v});
      return random_.pick<int64_t>({0,        -1, 1,  2,  3,   4,   5,    6,    8,    16,
                                    24,       32, 64, 96, 128, 256, 1023, 1024, 1025, int64_t{1} << 31,
                                    INT64_MAX});
    };
    int64_t other = pick();
    while (other == v) other = pick();
    return JsonTree::number(std::to_string(other));
  }
  std::string another_string(const std::string& key, const std::string& text) {
    static const std::map<std::string, std::vector<std::string>> kNames = {
        {"engine",
         {"loop", "vector_copy", "async_copy", "mma", "micro_kernel", "lane_reduce", "tensor_copy",
          "warpgroup_mma"}},
        {"kind", {"none", "register_permute", "shuffle", "shared_bounce", "replication"}},
        {"order", {"row_major", "column_major", "grouped", "by_die", "lpt", "static", "dynamic"}},
        {"atom",
         {"mma.m16n8k8.f32.f16.f16", "mma.m16n8k16.f32.f16.f16", "fma.f32.f16.f16", "fma.f32.f32.f32",
          "fma.f32:4x16", "fma.f32:1x1", "wgmma.m64n64k16.f32.f16.f16"}}};
    if (is_layout(key) && !random_.chance(6)) return another_layout(text);
    const auto names = kNames.find(key);
    if (names != kNames.end() && !random_.chance(6))
      return random_.pick(std::span<const std::string>(names->second));
    return random_.pick<std::string>({"", "nonsense", text + "@1", text + " "});
  }
  // A number in it becomes another.
  std::string another_layout(std::string text) {
    std::vector<std::pair<size_t, size_t>> numbers;
    for (size_t i = 0; i < text.size(); ++i) {
      if (!std::isdigit(static_cast<unsigned char>(text[i]))) continue;
      size_t end = i;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
      numbers.emplace_back(i, end - i);
      i = end;
    }
    if (numbers.empty()) return text + "1";  // spoilt before
    for (int64_t edits = random_.between(1, 2); edits > 0; --edits) {
      const auto [at, size] = random_.pick(std::span<const std::pair<size_t, size_t>>(numbers));
      const int64_t v = std::strtoll(text.substr(at, size).c_str(), nullptr, 10);
      const int64_t other = random_.pick<int64_t>({v * 2, v / 2, v + 1, v + 8, 1, 0, 16, 8388608});
      return text.replace(at, size, std::to_string(other));
    }
    return text;
  }

  std::string any_string_of(const std::string& key) {
    std::vector<std::string> found = {"nonsense"};
    for (const Node& n : nodes_)
      if (n.key == key && n.tree().kind == JsonKind::string) found.push_back(n.tree().text);
    return random_.pick(std::span<const std::string>(found));
  }
  // A field that the entry did not have, or another value of one it has.
  std::string add_field(const Node& n) {
    JsonTree& entry = n.tree();
    std::vector<std::pair<std::string, JsonTree>> fields;
    const std::string small = std::to_string(random_.pick({1, 2, 3, 4, 8, 16, 64}));
    if (entry.find("op") && entry.find("engine"))
      fields = {{"vector", JsonTree::number(small)},
                {"warps_m", JsonTree::number(small)},
                {"streaming", JsonTree::boolean(true)},
                {"epilogue_columns", JsonTree::number("64")},
                {"deferred_to", JsonTree::string(any_string_of("loop"))},
                {"skip_if_identity", JsonTree::string(any_string_of("value"))},
                {"iteration", JsonTree::string(any_string_of("iteration"))},
                {"through_memory", JsonTree::array({any_string_of("value")})},
                {"atom", JsonTree::string(any_string_of("atom"))}};
    else if (entry.find("value") && !entry.find("producer"))
      fields = {{"slots", JsonTree::number(small)},
                {"memory", JsonTree::string(any_string_of("memory"))},
                {"fragment", JsonTree::string(any_string_of("fragment"))}};
    else if (entry.find("loop"))
      fields = {{"ping_pong", JsonTree::boolean(true)}, {"num_stages", JsonTree::number(small)}};
    else if (entry.find("order"))
      fields = {{"group", JsonTree::number(small)},
                {"dimension", JsonTree::number("1")},
                {"increasing", JsonTree::boolean(false)},
                {"group_iterations", JsonTree::number(small)},
                {"skip_empty_tiles", JsonTree::boolean(true)}};
    else if (entry.find("warps"))
      fields = {{"registers", JsonTree::number(random_.chance(2) ? "40" : "232")},
                {"warps", JsonTree::number(small)},
                {"ops", JsonTree::array({any_string_of("op")})}};
    if (fields.empty()) return "";
    auto& [key, value] = fields[static_cast<size_t>(random_.below(static_cast<int64_t>(fields.size())))];
    std::string what = "has " + key + " " + shortened(value);
    std::erase_if(entry.items, [&](const auto& item) { return item.first == key; });
    entry.items.emplace_back(std::move(key), std::move(value));
    return what;
  }

  Random& random_;
  std::vector<Node> nodes_;
};

bool same_layout(const std::string& a, const std::string& b) {
  const auto fa = layout::Fragment::from_text(a), fb = layout::Fragment::from_text(b);
  if (fa && fb) return fa->equivalent(*fb);
  const auto la = layout::Layout::from_text(a), lb = layout::Layout::from_text(b);
  return la && lb && la->equivalent(*lb);
}

// What happens where a schedule says nothing of it.
bool is_absence(const JsonTree& t) {
  return (t.kind == JsonKind::boolean && !t.truth) || (t.kind == JsonKind::string && t.text.empty()) ||
         (t.kind == JsonKind::array && t.items.empty());
}

std::string object_lost(const JsonTree& given, const JsonTree& result, const std::string& path);

// The key by which entries of a list are known.
std::string name_key(const std::string& list) {
  static const std::map<std::string, std::string> kKeys = {{"kernels", "kernel"}, {"ops", "op"},
                                                           {"values", "value"},   {"loops", "loop"},
                                                           {"stages", "op"},      {"pipelines", "name"}};
  const auto it = kKeys.find(list);
  return it == kKeys.end() ? "" : it->second;
}

std::string list_lost(const std::string& key, const JsonTree& given, const JsonTree& result,
                      const std::string& path) {
  const std::string name = name_key(key);
  for (const auto& [unused, item] : given.items) {
    std::string lost = "is not in the list";
    for (const auto& [also_unused, other] : result.items) {
      if (item.kind == JsonKind::string) {
        if (item.text == other.text) lost.clear();
      } else if (name.empty()) {  // conversions: of the same value, what is said of them the same
        if (item.string_at("value") == other.string_at("value") &&
            (object_lost(item, other, "").empty() || lost.empty()))
          lost.clear();
      } else if (item.string_at(name) == other.string_at(name)) {
        lost = object_lost(item, other, "");
      }
    }
    if (!lost.empty()) return path + "[" + (name.empty() ? item.print() : item.string_at(name)) + "] " + lost;
  }
  return "";
}

// Of assumptions: the size of a tensor may be left out where a note of the kernel says so.
std::string assumptions_lost(const JsonTree& given, const JsonTree& result, const JsonTree* notes,
                             const std::string& path) {
  for (const auto& [unused, item] : given.items) {
    const std::string param = item.string_at("param");
    const bool left_out =
        notes && notes->print().find("`most_bytes` of '" + param + "' is left out") != std::string::npos;
    const auto stands = [&](const JsonTree& other) {
      return std::all_of(item.items.begin(), item.items.end(), [&](const auto& field) {
        const JsonTree* same = other.find(field.first);
        return (field.first == "most_bytes" && left_out) || (same && same->print() == field.second.print());
      });
    };
    const JsonTree* multiple = item.find("multiple");
    if (!item.find("most_bytes") && multiple && multiple->print() == "1") continue;  // says nothing
    const bool kept = std::any_of(result.items.begin(), result.items.end(),
                                  [&](const auto& other) { return stands(other.second); });
    if (!kept && !left_out) return path + "[" + item.print() + "] is not in the list";
  }
  return "";
}

std::string object_lost(const JsonTree& given, const JsonTree& result, const std::string& path) {
  for (const auto& [key, item] : given.items) {
    if (!is_decision(key, item)) continue;
    if (key == "producer" || key == "consumer") continue;  // either is the one that holds the value
    const JsonTree* other = result.find(key);
    const std::string here = path + "." + key;
    if (!other) {
      if (is_absence(item) || (key == "group" && item.text == "1")) continue;
      return here + " " + item.print() + " is given and nothing stands";
    }
    std::string lost;
    if (key == "assumptions")
      lost = assumptions_lost(item, *other, result.find("notes"), here);
    else if (item.kind == JsonKind::array)
      lost = list_lost(key, item, *other, here);
    else if (item.kind == JsonKind::object)
      lost = object_lost(item, *other, here);
    else if (is_layout(key) ? !same_layout(item.text, other->text) : item.print() != other->print())
      lost = here + " " + item.print() + " is given and " + other->print() + " stands";
    if (!lost.empty()) return lost;
  }
  return "";
}

}  // namespace

std::string mutate_schedule(JsonTree& schedule, Random& random) { return Mutation(schedule, random).run(); }

std::string not_honoured(const JsonTree& given, const JsonTree& result) {
  return object_lost(given, result, "$");
}

}  // namespace tilegen::differential
