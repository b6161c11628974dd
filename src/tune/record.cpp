#include "tune/record.h"

#include <algorithm>
#include <cmath>

#include "ir/text.h"
#include "support/diag_codes.h"
#include "support/hash.h"
#include "support/json.h"

namespace tilegen::tune {
namespace {

constexpr int64_t kVersion = 1;  // of the keys; a reader refuses what it does not know
constexpr int64_t kMaxNanoseconds = int64_t{1} << 53;

void write_numbers(JsonWriter& w, std::string_view key, const std::map<std::string, int64_t>& numbers) {
  w.key(key);
  w.begin_object();
  for (const auto& [name, value] : numbers) w.member(name, value);
  w.end_object();
}

std::map<std::string, int64_t> read_numbers(const JsonCursor& object,
                                            const std::map<std::string, int64_t>& like) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : like) names.push_back(name);
  const JsonCursor known = object.object(std::span<const std::string_view>(names));
  std::map<std::string, int64_t> out;
  for (const auto& [name, value] : like) out[name] = known.required(name).integer(INT64_MIN, INT64_MAX);
  return out;
}

std::vector<Record::Row> read_rows(const JsonCursor& list, const ir::Program& program) {
  std::vector<std::string_view> names;
  for (const ir::CompileParam& p : program.compile_params) names.push_back(p.name);
  std::vector<Record::Row> rows;
  const std::vector<JsonCursor> entries = list.array();
  if (list && (entries.empty() || entries.size() > kMaxConfigurations))
    list.refuse("1 to " + std::to_string(kMaxConfigurations) + " configurations", "");
  for (const JsonCursor& entry : entries) {
    const JsonCursor e = entry.object({"nanoseconds", "values"});
    Record::Row row;
    row.microseconds = static_cast<double>(e.required("nanoseconds").integer(1, kMaxNanoseconds, 1)) / 1000;
    const JsonCursor values = e.required("values").object(std::span<const std::string_view>(names));
    for (const ir::CompileParam& p : program.compile_params) {
      const JsonCursor value = values.required(p.name);
      row.values.push_back(value.integer(INT64_MIN, INT64_MAX));
      if (value && std::find(p.domain.begin(), p.domain.end(), row.values.back()) == p.domain.end())
        value.refuse("a value of the domain of '" + p.name + "'", "");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

int64_t size_bucket(int64_t size) {
  if (size <= 0) return 0;
  int64_t power = 1;
  while (power < size && power <= INT64_MAX / 2) power *= 2;
  if (power < size) return INT64_MAX;
  return power >= 4 && power / 4 * 3 >= size ? power / 4 * 3 : power;
}

RecordKey record_key(const ir::Program& first, const std::string& target, const std::string& library,
                     const std::string& schedule_json, const cost::Sizes& sizes) {
  RecordKey key{
      ir::program_hash(first), target, library, schedule_json.empty() ? "" : stable_hash(schedule_json), {}};
  const cost::SizedProgram sized(first, sizes);
  for (size_t v = 0; v < first.vars.size(); ++v) {
    const ir::VarKind kind = first.vars[v].kind;
    if (kind != ir::VarKind::dim && kind != ir::VarKind::scalar) continue;
    const auto id = ir::VarId(v);
    if (const auto size = sized.of(id)) key.bucket[first.vars[v].name] = size_bucket(*size);
  }
  return key;
}

std::string record_to_json(const Record& record, const ir::Program& program) {
  JsonWriter w;
  w.begin_object();
  w.member("tilegen_record", kVersion);
  w.member("name", record.name);
  w.member("program", record.key.program);
  w.member("target", record.key.target);
  w.member("device", record.device);
  w.member("library", record.key.library);
  w.member("schedule", record.key.schedule);
  write_numbers(w, "bucket", record.key.bucket);
  write_numbers(w, "sizes", record.sizes);
  w.member("asked", static_cast<int64_t>(record.asked));
  w.key("configurations");
  w.begin_array();
  for (const Record::Row& row : record.rows) {
    w.begin_object();
    w.member("nanoseconds", std::max<int64_t>(1, std::llround(1000 * row.microseconds)));
    w.key("values");
    w.begin_object();
    for (size_t i = 0; i < row.values.size(); ++i) w.member(program.compile_params[i].name, row.values[i]);
    w.end_object();
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.text() + "\n";
}

Expected<Record> record_from_json(std::string_view text, const RecordKey& key, const ir::Program& program) {
  auto document = JsonDocument::parse(text, "record", Limits{});
  if (!document) return document.error();
  JsonDocument& d = **document;
  const JsonCursor root = d.root().object({"tilegen_record", "name", "program", "target", "device", "library",
                                           "schedule", "bucket", "sizes", "asked", "configurations"});
  root.required("tilegen_record").integer(kVersion, kVersion);
  Record r;
  r.name = root.required("name").string();
  r.device = root.required("device").string();
  r.key.program = root.required("program").string();
  r.key.target = root.required("target").string();
  r.key.library = root.required("library").string();
  r.key.schedule = root.required("schedule").string();
  if (d.failed()) return d.error();
  const auto other = [&](const char* what, const std::string& found, const std::string& expected) {
    return Error(DiagCode::schedule_mismatch, program.name,
                 std::string("the record is of ") + what + " " + found + ", expected " + expected,
                 "remove it, or measure again");
  };
  if (r.key.program != key.program) return other("program", r.key.program, key.program);
  if (r.key.target != key.target) return other("target", r.key.target, key.target);
  if (r.key.library != key.library) return other("library", r.key.library, key.library);
  if (r.key.schedule != key.schedule) return other("schedule", r.key.schedule, key.schedule);
  r.key.bucket = read_numbers(root.required("bucket"), key.bucket);
  r.sizes = read_numbers(root.required("sizes"), key.bucket);
  r.asked = static_cast<size_t>(root.required("asked").integer(1, kMaxConfigurations));
  r.rows = read_rows(root.required("configurations"), program);
  if (d.failed()) return d.error();
  for (const auto& [name, size] : key.bucket)
    if (r.key.bucket[name] != size)
      return other(("sizes with " + name).c_str(), std::to_string(r.key.bucket[name]), std::to_string(size));
  std::stable_sort(r.rows.begin(), r.rows.end(), [](const Record::Row& a, const Record::Row& b) {
    return a.microseconds < b.microseconds;
  });
  return r;
}

}  // namespace tilegen::tune
