#include "sim/report.h"

#include "support/included_place.h"
#include "support/json.h"

namespace tilegen::sim {
namespace {

void write_location(JsonWriter& w, const SourceLocation& at) {
  if (!at.known()) return;
  w.member("file", file_name(at));
  w.member("line", int64_t{at.line});
  w.member("column", int64_t{at.column});
  if (!included_at(at).empty()) w.member("included_at", included_at(at));
}

void write_site(JsonWriter& w, const char* name, const Site& site) {
  w.key(name);
  w.begin_object();
  w.member("op", site.op);
  w.member("action", site.action);
  write_location(w, site.location);
  w.end_object();
}

void write_finding(JsonWriter& w, const Finding& f) {
  w.begin_object();
  w.member("kind", finding_name(f.kind));
  w.member("kernel", f.kernel);
  w.member("message", f.message);
  w.member("hint", finding_hint(f.kind));
  w.member("count", f.count);
  write_site(w, "site", f.site);
  w.member("block", f.block);
  w.member("warp", f.warp);
  w.member("thread", f.thread);
  if (!f.memory.empty()) {
    w.member("memory", f.memory);
    w.member("element", f.element);
  }
  if (!f.other.op.empty()) write_site(w, "other", f.other);
  if (f.other_thread >= 0) {
    w.member("other_block", f.other_block);
    w.member("other_thread", f.other_thread);
  }
  w.end_object();
}

void write_access(JsonWriter& w, const AccessCount& a) {
  w.begin_object();
  w.member("op", a.op);
  w.member("memory", a.memory);
  w.member("space", thread::space_name(a.space));
  w.member("action", a.action);
  w.member("requests", a.requests);
  w.member("bytes", a.bytes);
  w.member("transactions", a.transactions);
  w.member("least", a.least);
  if (a.ahead >= 0) w.member("ahead", a.ahead);
  write_location(w, a.location);
  w.end_object();
}

void write_counters(JsonWriter& w, const Counters& c) {
  w.key("counters");
  w.begin_object();
  w.member("statements", c.statements);
  w.member("matrix_instructions", c.matrix_instructions);
  w.member("barriers", c.barriers);
  w.member("shuffles", c.shuffles);
  w.member("votes", c.votes);
  w.member("shared_bytes", c.shared_bytes);
  w.member("global_bytes", c.global_bytes);
  w.member("async_bytes", c.async_bytes);
  w.member("tensor_bytes", c.tensor_bytes);
  w.member("load_waits", c.load_waits);
  w.member("most_loads", c.most_loads);
  w.key("accesses");
  w.begin_array();
  for (const AccessCount& a : c.accesses) write_access(w, a);
  w.end_array();
  w.end_object();
}

}  // namespace

std::string report_json(std::span<const SimResult> results) {
  JsonWriter w;
  w.begin_object();
  w.key("kernels");
  w.begin_array();
  for (const SimResult& r : results) {
    w.begin_object();
    w.key("findings");
    w.begin_array();
    for (const Finding& f : r.findings) write_finding(w, f);
    w.end_array();
    w.member("dropped", r.dropped);
    write_counters(w, r.counters);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.text();
}

}  // namespace tilegen::sim
