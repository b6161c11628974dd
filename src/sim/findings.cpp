#include "sim/findings.h"

#include <array>
#include <iterator>

#include "support/included_place.h"

namespace tilegen::sim {

namespace {

struct KindRow {
  const char *name, *summary, *hint;
};
constexpr KindRow kKinds[] = {
#define TILEGEN_FINDING(name, summary, hint) {#name, summary, hint},
#include "sim/findings.def"
#undef TILEGEN_FINDING
};

const char* barrier_text(const thread::Barrier& b) {
  return b.arrive_only ? "arrival at barrier " : "barrier ";
}

// What a statement does, in a few words.
std::string action_of(const Bytecode& code, uint32_t access, uint32_t stmt) {
  if (access != kNothing) {
    const Access& a = code.accesses[access];
    const std::string direction = a.write ? "write of " : "read of ";
    const std::string memory = code.program->memory(a.memory).name;
    const std::string action = a.action;
    return direction + memory + (action == "load" || action == "store" ? "" : " (" + action + ")");
  }
  if (stmt == kNothing) return {};
  const auto& node = code.program->stmts[stmt].node;
  if (const auto* b = std::get_if<thread::Barrier>(&node)) return barrier_text(*b) + std::to_string(b->id);
  if (std::holds_alternative<thread::Shuffle>(node)) return "shuffle";
  if (const auto* v = std::get_if<thread::Vote>(&node)) return thread::vote_name(v->mode);
  if (std::holds_alternative<thread::LoadMatrix>(node)) return "matrix load";
  if (std::holds_alternative<thread::StoreMatrix>(node)) return "matrix store";
  if (const auto* m = std::get_if<thread::WarpMma>(&node)) return m->atom;
  const auto barrier = [&](int array) { return code.program->barriers[static_cast<size_t>(array)].name; };
  if (const auto* a = std::get_if<thread::TransactionArrive>(&node))
    return "arrival at " + barrier(a->barriers);
  if (std::holds_alternative<thread::ClusterBarrier>(node)) return "barrier of the cluster";
  if (std::holds_alternative<thread::ClusterLoad>(node)) return "load from a block of the cluster";
  if (const auto* w = std::get_if<thread::TransactionWait>(&node)) return "wait for " + barrier(w->barriers);
  if (const auto* t = std::get_if<thread::TransactionTest>(&node)) return "test of " + barrier(t->barriers);
  if (const auto* l = std::get_if<thread::TensorLoad>(&node))
    return "tensor load for " + barrier(l->barriers);
  if (std::holds_alternative<thread::FetchTile>(node)) return "fetch_tile";
  if (std::holds_alternative<thread::TensorStore>(node)) return "tensor store";
  if (const auto* m = std::get_if<thread::WarpgroupMma>(&node)) return m->atom;
  if (std::holds_alternative<thread::WarpgroupWait>(node)) return "wait for products";
  if (std::holds_alternative<thread::Roles>(node)) return "roles";
  return "statement";
}

Site site_of(const Bytecode& code, uint32_t access, uint32_t stmt, const SimOptions& options) {
  Site site;
  if (access != kNothing) stmt = code.accesses[access].stmt;
  if (stmt == kNothing) return site;
  site.op = code.program->stmts[stmt].origin;
  site.action = action_of(code, access, stmt);
  if (options.locate) site.location = options.locate(site.op);
  return site;
}

std::string place_text(const Finding& f) {
  return f.memory.empty() ? std::string() : f.memory + "[" + std::to_string(f.element) + "]";
}

std::string thread_text(int64_t thread, int64_t block) {
  return "thread " + std::to_string(thread) + " of block " + std::to_string(block);
}

std::string message_of(const Finding& f, const std::string& detail) {
  const std::string who = thread_text(f.thread, f.block);
  if (f.kind == FindingKind::data_race) {
    const bool same_block = f.other_block == f.block;
    return f.site.action + " at " + place_text(f) + " by " + who + " is not ordered with the " +
           f.other.action + " by " + thread_text(f.other_thread, f.other_block) + " at " + f.other.op +
           (same_block ? ": no barrier stands between them" : ": nothing orders two blocks");
  }
  std::string text =
      f.site.action + (f.memory.empty() ? "" : " at " + place_text(f)) + " by " + who + ": " + detail;
  if (!f.other.op.empty()) text += " (" + f.other.action + " at " + f.other.op + ")";
  return text;
}

bool before(const Event& a, const Event& b) {
  return std::tie(a.block, a.thread, a.element, a.other_block, a.other_thread) <
         std::tie(b.block, b.thread, b.element, b.other_block, b.other_thread);
}

}  // namespace

const char* finding_name(FindingKind k) { return kKinds[static_cast<size_t>(k)].name; }
const char* finding_summary(FindingKind k) { return kKinds[static_cast<size_t>(k)].summary; }
const char* finding_hint(FindingKind k) { return kKinds[static_cast<size_t>(k)].hint; }
size_t finding_kind_count() { return std::size(kKinds); }

std::string Finding::to_text() const {
  std::string text;
  if (site.location.known()) text = place_text(site.location) + ": ";
  text += std::string(finding_name(kind)) + ": " + site.op + ": " + message;
  if (count > 1) text += " (" + std::to_string(count) + " times)";
  if (const std::string_view at = included_at(site.location); !at.empty())
    text += ", included at " + std::string(at);
  return text;
}

void FindingSink::report(Event event) {
  // Which of two unordered accesses came second depends on the schedule; the finding does not.
  if (event.kind == FindingKind::data_race && event.other_access < event.access) {
    std::swap(event.access, event.other_access);
    std::swap(event.block, event.other_block);
    std::swap(event.thread, event.other_thread);
  }
  add({event.access, event.stmt, event.other_access, event.other_stmt, event.kind}, event, 1);
}

void FindingSink::add(const Key& key, const Event& event, int64_t count) {
  auto [at, fresh] = events_.try_emplace(key, Counted{event, 0});
  if (!fresh && before(event, at->second.first)) at->second.first = event;
  at->second.count += count;
}

void FindingSink::merge(const FindingSink& other) {
  for (const auto& [key, counted] : other.events_) add(key, counted.first, counted.count);
}

Finding FindingSink::finding_of(const Event& e, const Bytecode& code, const SimOptions& options) {
  Finding f;
  f.kind = e.kind;
  f.kernel = code.program->name;
  f.site = site_of(code, e.access, e.stmt, options);
  f.other = site_of(code, e.other_access, e.other_stmt, options);
  f.block = e.block, f.thread = e.thread, f.warp = e.thread / code.lanes;
  f.other_block = e.other_block, f.other_thread = e.other_thread;
  if (e.access != kNothing) f.memory = code.program->memory(code.accesses[e.access].memory).name;
  f.element = e.element;
  f.message = message_of(f, e.detail);
  return f;
}

std::vector<Finding> FindingSink::finish(const Bytecode& code, const SimOptions& options,
                                         int64_t* dropped) const {
  std::vector<Finding> list;
  *dropped = 0;
  // One operation may be several statements, which are the same to the user.
  std::map<std::array<std::string, 6>, size_t> known;
  for (const auto& [key, counted] : events_) {
    Finding f = finding_of(counted.first, code, options);
    const std::array<std::string, 6> seen = {finding_name(f.kind), f.site.op,      f.site.action,
                                             f.other.op,           f.other.action, f.memory};
    const auto [at, fresh] = known.try_emplace(seen, list.size());
    if (!fresh) {
      if (at->second < list.size()) list[at->second].count += counted.count;
      continue;
    }
    if (static_cast<int64_t>(list.size()) >= options.max_findings) {
      at->second = SIZE_MAX;
      ++*dropped;
      continue;
    }
    f.count = counted.count;
    list.push_back(std::move(f));
  }
  return list;
}

}  // namespace tilegen::sim
