#include "ir/annotations.h"

#include <algorithm>

namespace tilegen::ir {
namespace {

constexpr AnnotationRow kRows[] = {
#define TILEGEN_ANNOTATION(place, key, kind, least, values) \
  {AnnotationPlace::place, key, AnnotationKind::kind, least, values},
#include "ir/annotations.def"
#undef TILEGEN_ANNOTATION
};

bool is_quoted(const std::string& value, AnnotationKind kind) {
  return kind == AnnotationKind::text || (kind == AnnotationKind::layout && value.find("[") != value.npos);
}

}  // namespace

std::span<const AnnotationRow> annotation_rows() { return kRows; }

const AnnotationRow* annotation_row(AnnotationPlace place, std::string_view key) {
  const auto it = std::find_if(std::begin(kRows), std::end(kRows), [&](const AnnotationRow& row) {
    return row.place == place && row.key == key;
  });
  return it == std::end(kRows) ? nullptr : it;
}

bool is_list(AnnotationKind kind) { return kind == AnnotationKind::numbers || kind == AnnotationKind::names; }

bool is_marked(const Stmt& s) { return !s.label.empty() || !s.annotations.empty(); }

bool fixes_threads(const Stmt& s) {
  return std::any_of(s.annotations.begin(), s.annotations.end(),
                     [](const Annotation& a) { return a.key == "iteration"; });
}

bool is_asynchronous(const Stmt& s) {
  return std::any_of(s.annotations.begin(), s.annotations.end(), [](const Annotation& a) {
    return a.key == "asynchronous" && a.values.front() == "true";
  });
}

std::optional<AnnotationPlace> annotation_place(const Program& p, StmtId s) {
  if (p.as<TileOp>(s)) return AnnotationPlace::op;
  const auto* loop = p.as<Loop>(s);
  if (!loop) return std::nullopt;
  return loop->kind == LoopKind::parallel ? AnnotationPlace::op : AnnotationPlace::loop;
}

std::string print_annotations(const Annotations& list, AnnotationPlace place) {
  std::string out;
  for (const Annotation& a : list) {
    const AnnotationRow* row = annotation_row(place, a.key);
    if (row == nullptr) continue;
    out += (out.empty() ? "" : ", ") + a.key;
    if (row->kind == AnnotationKind::flag) {
      if (a.values.front() != "true") out += "=" + a.values.front();
      continue;
    }
    std::string text;
    for (const std::string& v : a.values)
      text += (text.empty() ? "" : ", ") + (is_quoted(v, row->kind) ? '"' + v + '"' : v);
    out += "=" + (is_list(row->kind) ? '[' + text + ']' : text);
  }
  return out;
}

}  // namespace tilegen::ir
