// A Schedule as JSON: keys are the field names. What an entry has no choice in is not written, and an absent
// key leaves the field open, so that a decided schedule reads back as it is.
#include <array>
#include <unordered_set>

#include "plan/schedule.h"
#include "support/json.h"

namespace tilegen::plan {
namespace {

constexpr int64_t kVersion = 1;           // of the keys; a reader refuses what it does not know
constexpr int64_t kMost = INT64_C(1) << 31;

constexpr std::array kEngines = {Engine::loop,        Engine::vector_copy,  Engine::async_copy,
                                 Engine::mma,         Engine::micro_kernel, Engine::lane_reduce,
                                 Engine::tensor_copy, Engine::warpgroup_mma};
constexpr std::array kOrigins = {Origin::strict, Origin::common, Origin::free, Origin::given};
// Not `none`: what is not converted stands in no list.
constexpr std::array kConversions = {layout::ConversionKind::register_permute,
                                     layout::ConversionKind::shuffle, layout::ConversionKind::shared_bounce,
                                     layout::ConversionKind::replication};
constexpr std::array kRasterOrders = {"row_major", "column_major", "grouped", "longest_first"};

// --- writing ---

void write_optional(JsonWriter& w, std::string_view key, const std::string& text) {
  if (!text.empty()) w.member(key, text);
}
void write_unless(JsonWriter& w, std::string_view key, int64_t value, int64_t otherwise) {
  if (value != otherwise) w.member(key, value);
}

template <class List, class Write>
void write_list(JsonWriter& w, std::string_view key, const List& list, Write&& write) {
  if (list.empty()) return;
  w.key(key);
  w.begin_array();
  for (const auto& item : list) {
    w.begin_object();
    write(item);
    w.end_object();
  }
  w.end_array();
}

void write_op(JsonWriter& w, const OpPlan& o) {
  w.member("op", o.op);
  if (o.engine) w.member("engine", engine_name(*o.engine));
  write_optional(w, "atom", o.atom);
  write_unless(w, "warps_m", o.warps_m, 0);
  write_unless(w, "warps_n", o.warps_n, 0);
  if (o.iteration) w.member("iteration", o.iteration->to_text());
  write_unless(w, "vector", o.vector, 0);
  if (o.streaming) w.flag("streaming", *o.streaming);
  write_unless(w, "pass_columns", o.pass_columns, 0);
  if (o.joined_behind) w.member("joined_behind", *o.joined_behind);
  if (o.unless_one) w.member("unless_one", *o.unless_one);
  if (!o.through_memory.empty()) {
    w.key("through_memory");
    w.begin_array();
    for (const std::string& v : o.through_memory) w.value(v);
    w.end_array();
  }
  write_optional(w, "reason", o.reason);
}

void write_value(JsonWriter& w, const ValuePlan& v) {
  w.member("value", v.value);
  if (v.fragment) w.member("fragment", v.fragment->to_text());
  if (v.memory) w.member("memory", v.memory->to_text());
  write_unless(w, "slots", v.slots, 0);
  w.member("origin", origin_name(v.origin));
  write_optional(w, "reason", v.reason);
}

void write_loop(JsonWriter& w, const LoopPlan& l) {
  w.member("loop", l.loop);
  write_unless(w, "num_stages", l.num_stages, 0);
  write_list(w, "stages", l.stages, [&](const auto& s) {
    w.member("op", s.first);
    w.member("stage", s.second);
  });
  if (l.ping_pong) w.flag("ping_pong", *l.ping_pong);
  write_optional(w, "reason", l.reason);
}

void write_conversion(JsonWriter& w, const ConversionPlan& c) {
  w.member("value", c.value);
  w.member("producer", c.producer);
  w.member("consumer", c.consumer);
  if (c.kind != layout::ConversionKind::none) w.member("kind", layout::conversion_name(c.kind));
  if (c.from.rank() > 0) w.member("from", c.from.to_text());
  if (c.to.rank() > 0) w.member("to", c.to.to_text());
  w.member("cost", c.cost);
  write_optional(w, "reason", c.reason);
}

void write_kernel(JsonWriter& w, const KernelSchedule& k) {
  w.member("kernel", k.kernel);
  if (k.threads) w.member("threads", *k.threads);
  if (k.raster) {
    w.key("raster");
    w.begin_object();
    write_optional(w, "order", k.raster->order);
    write_unless(w, "group", k.raster->group, 0);
    write_unless(w, "dimension", k.raster->dimension, kOpen);
    if (k.raster->rising) w.flag("rising", *k.raster->rising);
    write_unless(w, "group_trips", k.raster->group_trips, kOpen);
    write_unless(w, "group_tiles", k.raster->group_tiles, kOpen);
    write_optional(w, "reason", k.raster->reason);
    w.end_object();
  }
  if (k.roles) {
    w.key("roles");
    w.begin_object();
    write_unless(w, "producer_threads", k.roles->producer_threads, kOpen);
    write_unless(w, "producer_registers", k.roles->producer_registers, kOpen);
    write_unless(w, "consumer_registers", k.roles->consumer_registers, kOpen);
    write_optional(w, "reason", k.roles->reason);
    w.end_object();
  }
  if (k.persistence) {
    w.key("persistence");
    w.begin_object();
    w.flag("persistent", k.persistence->persistent);
    write_optional(w, "order", k.persistence->order);
    if (k.persistence->skips_idle) w.flag("skips_idle", *k.persistence->skips_idle);
    write_optional(w, "reason", k.persistence->reason);
    w.end_object();
  }
  if (k.cluster) {
    w.key("cluster");
    w.begin_object();
    write_unless(w, "blocks", k.cluster->blocks, 0);
    write_optional(w, "along", k.cluster->along);
    write_optional(w, "reason", k.cluster->reason);
    w.end_object();
  }
  if (k.launch) {
    w.key("launch");
    w.begin_object();
    w.flag("dependent", k.launch->dependent);
    write_optional(w, "reason", k.launch->reason);
    w.end_object();
  }
  write_list(w, "ops", k.ops, [&](const OpPlan& o) { write_op(w, o); });
  write_list(w, "values", k.values, [&](const ValuePlan& v) { write_value(w, v); });
  write_list(w, "loops", k.loops, [&](const LoopPlan& l) { write_loop(w, l); });
  write_list(w, "channels", k.channels, [&](const ChannelPlan& c) {
    w.member("name", c.name);
    w.member("loop", c.loop);
    w.key("values");
    w.begin_array();
    for (const std::string& v : c.values) w.value(v);
    w.end_array();
    write_unless(w, "slots", c.slots, 0);
  });
  write_list(w, "conversions", k.conversions, [&](const ConversionPlan& c) { write_conversion(w, c); });
  write_list(w, "memory", k.memory, [&](const MemoryPlan& m) {
    w.member("value", m.value);
    w.member("offset", m.offset);
    w.member("bytes", m.bytes);
  });
  write_list(w, "notes", k.notes, [&](const Note& n) {
    w.member("path", n.path);
    w.member("text", n.text);
  });
}

// --- reading ---

// Names in one list; a second entry of a name would silently never be found.
class UniqueNames {
 public:
  std::string read(const JsonCursor& c) {
    std::string name = c.string();
    if (!c) return name;
    if (name.empty()) c.refuse("a name", "names are paths as the schedule's text shows them");
    else if (!seen_.insert(name).second)
      c.refuse_with("\"" + name + "\" is listed twice", "merge the two entries");
    return name;
  }

 private:
  std::unordered_set<std::string> seen_;
};

template <class Enum, size_t N, class Name>
Enum read_enum(const JsonCursor& c, const std::array<Enum, N>& values, Name name, Enum absent) {
  std::array<const char*, N> names;
  size_t at = 0;
  for (size_t i = 0; i < N; i++) {
    names[i] = name(values[i]);
    if (values[i] == absent) at = i;
  }
  return values[c.choice(names, at)];
}

// The layout library's own refusal, under the JSON path of the string.
template <class T>
std::optional<T> read_layout(const JsonCursor& c, const char* what) {
  if (!c) return std::nullopt;
  if (c.kind() != JsonKind::string) {
    c.refuse(std::string("a ") + what + " in text form", "copy the form that schedule_to_json writes");
    return std::nullopt;
  }
  Expected<T> t = T::from_text(c.string());
  if (t) return std::move(*t);
  const Diagnostic& d = t.error().diagnostics.front();
  c.refuse_with(std::string("expected a ") + what + " in text form, got " + c.shown() + ": " + d.message,
                d.hint.empty() ? "copy the form that schedule_to_json writes" : d.hint);
  return std::nullopt;
}

// One that may be left out, which is how nothing is said.
std::string read_name(const JsonCursor& c) {
  if (!c) return "";
  std::string name = c.string();
  if (c && name.empty()) c.refuse("a name", "leave it out to have it planned");
  return name;
}

OpPlan read_op(JsonCursor c, UniqueNames& names) {
  OpPlan o;
  c = c.object({"op", "engine", "atom", "warps_m", "warps_n", "iteration", "vector", "streaming",
                "pass_columns", "joined_behind", "unless_one", "through_memory", "reason"});
  if (!c) return o;
  o.op = names.read(c.required("op"));
  if (const JsonCursor engine = c.optional("engine"))
    o.engine = read_enum(engine, kEngines, engine_name, Engine::loop);
  o.atom = read_name(c.optional("atom"));
  o.warps_m = c.optional("warps_m").integer(1, 1024);
  o.warps_n = c.optional("warps_n").integer(1, 1024);
  o.iteration = read_layout<layout::Fragment>(c.optional("iteration"), "fragment");
  o.vector = c.optional("vector").integer(1, 1024);
  if (const JsonCursor streaming = c.optional("streaming")) o.streaming = streaming.boolean();
  o.pass_columns = c.optional("pass_columns").integer(0, kMost, 0);
  if (const JsonCursor joined = c.optional("joined_behind")) o.joined_behind = joined.string();
  if (const JsonCursor factor = c.optional("unless_one")) o.unless_one = factor.string();
  for (const JsonCursor& item : c.optional("through_memory").array())
    o.through_memory.push_back(item.string());
  o.reason = c.optional("reason").string();
  return o;
}

ValuePlan read_value(JsonCursor c, UniqueNames& names) {
  ValuePlan v;
  c = c.object({"value", "fragment", "memory", "slots", "origin", "reason"});
  if (!c) return v;
  v.value = names.read(c.required("value"));
  v.fragment = read_layout<layout::Fragment>(c.optional("fragment"), "fragment");
  v.memory = read_layout<layout::Layout>(c.optional("memory"), "layout");
  if (v.fragment && v.memory)
    c.refuse_with("a value has either a \"fragment\" (registers) or a \"memory\" layout, got both",
                  "keep the one that fits the buffer's scope");
  v.slots = c.optional("slots").integer(1, 1024);
  v.origin = read_enum(c.optional("origin"), kOrigins, origin_name, Origin::given);
  v.reason = c.optional("reason").string();
  return v;
}

LoopPlan read_loop(JsonCursor c, UniqueNames& names) {
  LoopPlan l;
  c = c.object({"loop", "num_stages", "stages", "ping_pong", "reason"});
  if (!c) return l;
  l.loop = names.read(c.required("loop"));
  l.num_stages = c.optional("num_stages").integer(1, 1024);
  UniqueNames ops;
  for (JsonCursor s : c.optional("stages").array()) {
    s = s.object({"op", "stage"});
    if (!s) continue;
    std::string op = ops.read(s.required("op"));
    l.stages.emplace_back(std::move(op), s.required("stage").integer(0, 1023));
  }
  if (const JsonCursor turns = c.optional("ping_pong")) l.ping_pong = turns.boolean();
  l.reason = c.optional("reason").string();
  return l;
}

ConversionPlan read_conversion(JsonCursor c) {
  ConversionPlan p;
  c = c.object({"value", "producer", "consumer", "kind", "from", "to", "cost", "reason"});
  if (!c) return p;
  p.value = c.required("value").string();
  p.producer = c.required("producer").string();
  p.consumer = c.required("consumer").string();
  if (const JsonCursor kind = c.optional("kind"))
    p.kind = read_enum(kind, kConversions, layout::conversion_name, p.kind);
  p.from = read_layout<layout::Fragment>(c.optional("from"), "fragment").value_or(p.from);
  p.to = read_layout<layout::Fragment>(c.optional("to"), "fragment").value_or(p.to);
  p.cost = c.optional("cost").integer(0, INT64_MAX);
  p.reason = c.optional("reason").string();
  return p;
}

RasterPlan read_raster(JsonCursor c) {
  RasterPlan r;
  c = c.object({"order", "group", "dimension", "rising", "group_trips", "group_tiles", "reason"});
  if (!c) return r;
  const JsonCursor order = c.optional("order");
  r.order = order ? kRasterOrders[order.choice(kRasterOrders)] : "";
  r.group = c.optional("group").integer(1, kMost);
  r.dimension = c.optional("dimension").integer(0, 2, kOpen);
  if (const JsonCursor rising = c.optional("rising")) r.rising = rising.boolean();
  r.group_trips = c.optional("group_trips").integer(0, kMost, kOpen);
  r.group_tiles = c.optional("group_tiles").integer(0, kMost, kOpen);
  r.reason = c.optional("reason").string();
  return r;
}

RolePlan read_roles(JsonCursor c) {
  RolePlan r;
  c = c.object({"producer_threads", "producer_registers", "consumer_registers", "reason"});
  if (!c) return r;
  r.producer_threads = c.optional("producer_threads").integer(0, 1024, kOpen);
  r.producer_registers = c.optional("producer_registers").integer(0, 256, kOpen);
  r.consumer_registers = c.optional("consumer_registers").integer(0, 256, kOpen);
  r.reason = c.optional("reason").string();
  return r;
}

// Blocks that walk in some order are persistent. Nothing where none of it is said.
std::optional<PersistencePlan> read_persistence(JsonCursor c) {
  PersistencePlan p;
  c = c.object({"persistent", "order", "skips_idle", "reason"});
  if (!c) return p;
  const JsonCursor persistent = c.optional("persistent"), order = c.optional("order"),
                   skips = c.optional("skips_idle");
  if (!persistent && !order && !skips) return std::nullopt;
  p.persistent = persistent.boolean(true);
  p.order = read_name(order);
  if (skips) p.skips_idle = skips.boolean();
  p.reason = c.optional("reason").string();
  return p;
}

ClusterPlan read_cluster(JsonCursor c) {
  ClusterPlan p;
  c = c.object({"blocks", "along", "reason"});
  if (!c) return p;
  p.blocks = c.optional("blocks").integer(1, 1024);
  p.along = read_name(c.optional("along"));
  p.reason = c.optional("reason").string();
  return p;
}

std::optional<LaunchPlan> read_launch(JsonCursor c) {
  LaunchPlan p;
  c = c.object({"dependent", "reason"});
  if (!c) return p;
  const JsonCursor dependent = c.optional("dependent");
  if (!dependent) return std::nullopt;
  p.dependent = dependent.boolean();
  p.reason = c.optional("reason").string();
  return p;
}

ChannelPlan read_channel(JsonCursor c, UniqueNames& names) {
  ChannelPlan channel;
  c = c.object({"name", "loop", "values", "slots"});
  if (!c) return channel;
  channel.name = names.read(c.required("name"));
  channel.loop = c.required("loop").string();
  UniqueNames values;
  for (const JsonCursor& v : c.required("values").array()) channel.values.push_back(values.read(v));
  channel.slots = c.optional("slots").integer(1, 1024);
  return channel;
}

KernelSchedule read_kernel(JsonCursor c, UniqueNames& names) {
  KernelSchedule k;
  c = c.object({"kernel", "threads", "raster", "roles", "persistence", "cluster", "launch", "ops", "values",
                "loops", "channels", "conversions", "memory", "notes"});
  if (!c) return k;
  k.kernel = names.read(c.required("kernel"));
  if (JsonCursor t = c.optional("threads")) k.threads = t.integer(1, kMost, 1);
  if (JsonCursor r = c.optional("raster")) k.raster = read_raster(r);
  if (JsonCursor r = c.optional("roles")) k.roles = read_roles(r);
  if (JsonCursor r = c.optional("persistence")) k.persistence = read_persistence(r);
  if (JsonCursor r = c.optional("cluster")) k.cluster = read_cluster(r);
  if (JsonCursor l = c.optional("launch")) k.launch = read_launch(l);
  UniqueNames ops, values, loops, channels, memory;
  for (const JsonCursor& o : c.optional("ops").array()) k.ops.push_back(read_op(o, ops));
  for (const JsonCursor& v : c.optional("values").array()) k.values.push_back(read_value(v, values));
  for (const JsonCursor& l : c.optional("loops").array()) k.loops.push_back(read_loop(l, loops));
  for (const JsonCursor& p : c.optional("channels").array()) k.channels.push_back(read_channel(p, channels));
  for (const JsonCursor& p : c.optional("conversions").array()) k.conversions.push_back(read_conversion(p));
  for (JsonCursor m : c.optional("memory").array()) {
    m = m.object({"value", "offset", "bytes"});
    if (!m) continue;
    std::string value = memory.read(m.required("value"));
    int64_t offset = m.required("offset").integer(0, INT64_MAX);
    k.memory.push_back({std::move(value), offset, m.required("bytes").integer(0, INT64_MAX)});
  }
  for (JsonCursor n : c.optional("notes").array()) {
    n = n.object({"path", "text"});
    if (!n) continue;
    std::string path = n.required("path").string();
    k.notes.push_back({std::move(path), n.required("text").string()});
  }
  return k;
}

}  // namespace

std::string schedule_to_json(const Schedule& s) {
  JsonWriter w;
  w.begin_object();
  w.member("version", kVersion);
  w.member("target", s.target);
  write_optional(w, "program_hash", s.program_hash);
  write_list(w, "kernels", s.kernels, [&](const KernelSchedule& k) { write_kernel(w, k); });
  w.end_object();
  return w.text();
}

Expected<Schedule> schedule_from_json(std::string_view text, const Limits& limits) {
  auto parsed = JsonDocument::parse(text, "schedule", limits);
  if (!parsed) return parsed.error();
  JsonDocument& doc = **parsed;
  Schedule s;
  JsonCursor root = doc.root().object({"version", "target", "program_hash", "kernels"});
  root.optional("version").integer(kVersion, kVersion, kVersion);
  s.target = root.optional("target").string();
  s.program_hash = root.optional("program_hash").string();
  UniqueNames names;
  for (const JsonCursor& k : root.optional("kernels").array()) s.kernels.push_back(read_kernel(k, names));
  if (doc.failed()) return doc.error();
  return s;
}

}  // namespace tilegen::plan
