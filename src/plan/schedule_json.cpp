// A Schedule as JSON: keys are the field names. What an entry has no choice in is not written, and an absent
// key leaves the field open, so that a decided schedule reads back as it is.
#include <array>
#include <unordered_set>

#include "plan/renamed_words.h"
#include "plan/schedule_fields.h"
#include "support/json.h"

namespace tilegen::plan {
namespace {

using layout::conversion_name;
using layout::ConversionKind;

constexpr int64_t kVersion = 1;  // of the keys; a reader refuses what it does not know

constexpr std::array kEngines = {Engine::loop,        Engine::vector_copy,   Engine::async_copy,
                                 Engine::mma,         Engine::micro_kernel,  Engine::lane_reduce,
                                 Engine::tensor_copy, Engine::warpgroup_mma, Engine::register_copy};
constexpr std::array kStorages = {Storage::value,    Storage::copy,           Storage::scratch,
                                  Storage::stage,    Storage::operand_a,      Storage::operand_b,
                                  Storage::barriers, Storage::tile_scheduler, Storage::parts};
constexpr std::array kOrigins = {Origin::strict, Origin::common, Origin::free, Origin::given};
// Not `none`: what is not converted stands in no list.
constexpr std::array kConversions = {ConversionKind::register_permute, ConversionKind::shuffle,
                                     ConversionKind::shared_bounce};

// --- writing ---

template <class List, class Write>
void write_list(JsonWriter& w, std::string_view key, const List& list, Write&& write,
                bool even_empty = false) {
  if (list.empty() && !even_empty) return;
  w.key(key);
  w.begin_array();
  for (const auto& item : list) {
    w.begin_object();
    write(item);
    w.end_object();
  }
  w.end_array();
}

template <class E>
struct FieldWriter {
  JsonWriter& w;
  const E& entry;

  void operator()(const NameField<E>& f) const { w.member(f.key, entry.*f.at); }
  void operator()(const RequiredText<E>& f) const { w.member(f.key, entry.*f.at); }
  void operator()(const TextField<E>& f) const { text(f.key, entry.*f.at); }
  void operator()(const ReasonField<E>& f) const { text(f.key, entry.*f.at); }
  template <size_t N>
  void operator()(const WordField<E, N>& f) const {
    text(f.key, entry.*f.at);
  }
  void operator()(const OptionalText<E>& f) const {
    if (entry.*f.at) w.member(f.key, *(entry.*f.at));
  }
  void operator()(const NumberField<E>& f) const {
    if (entry.*f.at != f.open) w.member(f.key, entry.*f.at);
  }
  void operator()(const FlagField<E>& f) const {
    if (entry.*f.at) w.flag(f.key, *(entry.*f.at));
  }
  void operator()(const SetFlag<E>& f) const { w.flag(f.key, entry.*f.at); }
  void operator()(const EngineField<E>& f) const {
    if (entry.*f.at) w.member(f.key, engine_name(*(entry.*f.at)));
  }
  void operator()(const StorageField<E>& f) const { w.member(f.key, storage_name(entry.*f.at)); }
  void operator()(const OriginField<E>& f) const { w.member(f.key, origin_name(entry.*f.at)); }
  void operator()(const KindField<E>& f) const {
    if (entry.*f.at != ConversionKind::none) w.member(f.key, conversion_name(entry.*f.at));
  }
  template <class L>
  void operator()(const LayoutField<E, L>& f) const {
    if (entry.*f.at) w.member(f.key, (entry.*f.at)->to_text());
  }
  void operator()(const FragmentField<E>& f) const {
    if ((entry.*f.at).rank() > 0) w.member(f.key, (entry.*f.at).to_text());
  }
  void operator()(const NamesField<E>& f) const {
    if ((entry.*f.at).empty() && !f.required) return;
    w.key(f.key);
    w.begin_array();
    for (const std::string& v : entry.*f.at) w.value(v);
    w.end_array();
  }
  void operator()(const StagesField<E>& f) const {
    write_list(w, f.key, entry.*f.at, [&](const auto& s) {
      w.member("op", s.first);
      w.member("stage", s.second);
    });
  }

 private:
  void text(const char* key, const std::string& value) const {
    if (!value.empty()) w.member(key, value);
  }
};

template <class E>
void write_fields(JsonWriter& w, const E& entry) {
  for_each_field<E>(FieldWriter<E>{w, entry});
}

template <class E>
void write_entry(JsonWriter& w, const char* key, const std::optional<E>& entry) {
  if (!entry) return;
  w.key(key);
  w.begin_object();
  write_fields(w, *entry);
  w.end_object();
}

template <class E>
void write_entries(JsonWriter& w, const char* key, const std::vector<E>& list) {
  write_list(w, key, list, [&](const E& entry) { write_fields(w, entry); });
}
// A list that is a choice even when empty.
template <class E>
void write_entries(JsonWriter& w, const char* key, const std::optional<std::vector<E>>& list) {
  if (list)
    write_list(
        w, key, *list, [&](const E& entry) { write_fields(w, entry); }, true);
}

void write_kernel(JsonWriter& w, const KernelSchedule& k) {
  w.member("kernel", k.kernel);
  if (k.threads) w.member("threads", *k.threads);
  write_entry(w, "raster", k.raster);
  write_entries(w, "roles", k.roles);
  write_entry(w, "persistence", k.persistence);
  write_entry(w, "cluster", k.cluster);
  write_entry(w, "split", k.split);
  write_entry(w, "overlap", k.overlap);
  write_entry(w, "launch", k.launch);
  write_entries(w, "ops", k.ops);
  write_entries(w, "values", k.values);
  write_entries(w, "loops", k.loops);
  write_entries(w, "pipelines", k.pipelines);
  write_entries(w, "conversions", k.conversions);
  write_entries(w, "assumptions", k.assumptions);
  write_entries(w, "memory", k.memory);
  write_entries(w, "notes", k.notes);
}

// --- reading ---

// Names in one list; a second entry of a name would silently never be found.
class UniqueNames {
 public:
  std::string read(const JsonCursor& c) {
    std::string name = c.string();
    if (!c) return name;
    if (name.empty())
      c.refuse("a name", "names are paths as the schedule's text shows them");
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

template <class E>
struct FieldReader {
  JsonCursor c;
  E& entry;
  UniqueNames& names;
  bool* says_something;  // a field other than the reason

  void operator()(const NameField<E>& f) const { entry.*f.at = names.read(c.required(f.key)); }
  void operator()(const RequiredText<E>& f) const { entry.*f.at = c.required(f.key).string(); }
  void operator()(const ReasonField<E>& f) const { entry.*f.at = c.optional(f.key).string(); }
  // One that may be left out, which is how nothing is said.
  void operator()(const TextField<E>& f) const {
    entry.*f.at = "";
    const JsonCursor text = said(f.key);
    if (!text) return;
    entry.*f.at = text.string();
    if (text && (entry.*f.at).empty()) text.refuse("a name", "leave it out to have it planned");
  }
  void operator()(const OptionalText<E>& f) const {
    if (const JsonCursor text = said(f.key)) entry.*f.at = text.string();
  }
  void operator()(const NumberField<E>& f) const {
    const JsonCursor number = f.required ? c.required(f.key) : said(f.key);
    entry.*f.at = number.integer(f.least, f.most, f.open);
  }
  void operator()(const FlagField<E>& f) const {
    if (const JsonCursor flag = said(f.key)) entry.*f.at = flag.boolean();
  }
  void operator()(const SetFlag<E>& f) const { entry.*f.at = said(f.key).boolean(f.absent); }
  template <size_t N>
  void operator()(const WordField<E, N>& f) const {
    const JsonCursor word = said(f.key);
    entry.*f.at = word && !is_earlier_name(word) ? f.names[word.choice(f.names)] : "";
  }
  void operator()(const EngineField<E>& f) const {
    if (const JsonCursor engine = said(f.key))
      entry.*f.at = read_enum(engine, kEngines, engine_name, Engine::loop);
  }
  void operator()(const StorageField<E>& f) const {
    entry.*f.at = read_enum(c.required(f.key), kStorages, storage_name, Storage::value);
  }
  void operator()(const OriginField<E>& f) const {
    entry.*f.at = read_enum(c.optional(f.key), kOrigins, origin_name, Origin::given);
  }
  void operator()(const KindField<E>& f) const {
    if (const JsonCursor kind = said(f.key))
      entry.*f.at = read_enum(kind, kConversions, conversion_name, entry.*f.at);
  }
  template <class L>
  void operator()(const LayoutField<E, L>& f) const {
    entry.*f.at = read_layout<L>(said(f.key), std::is_same_v<L, layout::Layout> ? "layout" : "fragment");
  }
  void operator()(const FragmentField<E>& f) const {
    entry.*f.at = read_layout<layout::Fragment>(said(f.key), "fragment").value_or(entry.*f.at);
  }
  void operator()(const NamesField<E>& f) const {
    UniqueNames own;
    for (const JsonCursor& v : (f.required ? c.required(f.key) : said(f.key)).array())
      (entry.*f.at).push_back(f.required ? own.read(v) : v.string());
  }
  void operator()(const StagesField<E>& f) const {
    UniqueNames ops;
    for (JsonCursor s : said(f.key).array()) {
      s = s.object({"op", "stage"});
      if (!s) continue;
      std::string op = ops.read(s.required("op"));
      (entry.*f.at).emplace_back(std::move(op), s.required("stage").integer(0, 1023));
    }
  }

 private:
  JsonCursor said(const char* key) const {
    JsonCursor field = c.optional(key);
    *says_something |= static_cast<bool>(field);
    return field;
  }
};

// False where nothing is said.
template <class E>
bool read_fields(const JsonCursor& cursor, E& entry, UniqueNames& names) {
  std::vector<std::string_view> keys;
  for_each_field<E>([&](const auto& f) { keys.push_back(f.key); });
  if (has_earlier_keys(cursor)) return false;
  const JsonCursor c = cursor.object(keys);
  bool says_something = false;
  if (c) for_each_field<E>(FieldReader<E>{c, entry, names, &says_something});
  return says_something;
}

void refuse_together(const JsonCursor& c, const ValuePlan& v) {
  if (v.fragment && v.memory)
    c.refuse_with("a value has either a \"fragment\" (registers) or a \"memory\" layout, got both",
                  "keep the one that fits the buffer's scope");
}
template <class E>
void refuse_together(const JsonCursor&, const E&) {}

template <class E>
std::vector<E> read_entries(const JsonCursor& list) {
  std::vector<E> entries;
  UniqueNames names;
  for (const JsonCursor& item : list.array()) {
    read_fields(item, entries.emplace_back(), names);
    refuse_together(item, entries.back());
  }
  return entries;
}

// Nothing where nothing is said.
template <class E>
std::optional<E> read_entry(const JsonCursor& c) {
  E entry;
  UniqueNames names;
  return c && read_fields(c, entry, names) ? std::optional<E>(std::move(entry)) : std::nullopt;
}

KernelSchedule read_kernel(JsonCursor c, UniqueNames& names) {
  KernelSchedule k;
  if (has_earlier_keys(c)) return k;
  c = c.object({"kernel", "threads", "raster", "roles", "persistence", "cluster", "split", "overlap",
                "launch", "ops", "values", "loops", "pipelines", "conversions", "assumptions", "memory",
                "notes"});
  if (!c) return k;
  k.kernel = names.read(c.required("kernel"));
  if (const JsonCursor t = c.optional("threads")) k.threads = t.integer(1, kMaxNumber, 1);
  k.raster = read_entry<RasterPlan>(c.optional("raster"));
  const JsonCursor roles = c.optional("roles");
  if (roles && !(roles.kind() == JsonKind::object && has_earlier_keys(roles)))
    k.roles = read_entries<RolePlan>(roles);
  k.persistence = read_entry<PersistencePlan>(c.optional("persistence"));
  k.cluster = read_entry<ClusterPlan>(c.optional("cluster"));
  k.split = read_entry<SplitPlan>(c.optional("split"));
  k.overlap = read_entry<OverlapPlan>(c.optional("overlap"));
  k.launch = read_entry<LaunchPlan>(c.optional("launch"));
  k.ops = read_entries<OpPlan>(c.optional("ops"));
  k.values = read_entries<ValuePlan>(c.optional("values"));
  k.loops = read_entries<LoopPlan>(c.optional("loops"));
  k.pipelines = read_entries<PipelinePlan>(c.optional("pipelines"));
  k.conversions = read_entries<ConversionPlan>(c.optional("conversions"));
  if (const JsonCursor list = c.optional("assumptions")) k.assumptions = read_entries<Assumption>(list);
  k.memory = read_entries<MemoryPlan>(c.optional("memory"));
  k.notes = read_entries<Note>(c.optional("notes"));
  return k;
}

}  // namespace

std::string schedule_to_json(const Schedule& s) {
  JsonWriter w;
  w.begin_object();
  w.member("version", kVersion);
  w.member("target", s.target);
  if (!s.program_hash.empty()) w.member("program_hash", s.program_hash);
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
