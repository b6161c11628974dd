// Labels of statements, and annotations.
#include "ir/annotations.h"

#include <string>
#include <utility>

#include "builder/builder.h"
#include "ir/text_grammar.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

void Builder::label(std::string_view name) {
  constexpr std::string_view kCall = "tl_label";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_name(kCall, name)) return;
  if (ir::text::is_reserved(name))
    return fail(DiagCode::bad_name, kCall, "'" + std::string(name) + "' is a word of the language",
                "choose another label, e.g. '" + std::string(name) + "_'");
  if (!label_.empty())
    return fail(DiagCode::misplaced_statement, kCall,
                "a statement has two labels, '" + label_ + "' and '" + std::string(name) + "'",
                "keep one of them");
  if (in_parallel())
    return fail(DiagCode::misplaced_statement, kCall,
                "the label '" + std::string(name) + "' stands inside a parallel loop",
                "label the parallel loop: its stores are named after it, 'label/store#0'");
  if (!labels_.emplace(name).second)
    return fail(DiagCode::duplicate_name, kCall, "the kernel has a label '" + std::string(name) + "' already",
                "labels are of one statement of a kernel each");
  label_ = name;
}

void Builder::annotate(std::string_view text) {
  constexpr std::string_view kCall = "tl_annotate";
  if (!ready(kCall) || !inside_kernel(kCall)) return;
  if (in_parallel())
    return fail(DiagCode::misplaced_statement, kCall, "annotations stand inside a parallel loop",
                "annotate the parallel loop");
  if (annotated_)
    return fail(DiagCode::misplaced_statement, kCall, "a statement is annotated twice",
                "give all annotations in one call, separated by commas");
  annotated_ = true;
  annotations_ = text;
}

void Builder::annotate_tile(ir::BufferId tile, std::string_view text) {
  constexpr std::string_view kCall = "tl_annotate_tile";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_buffer(kCall, "the tile", tile)) return;
  if (program_.buffer(tile).scope == ir::MemScope::global || draft_.views.contains(tile))
    return fail(DiagCode::scope_not_allowed, kCall, buffer_text(tile) + " is no tile of its own",
                "annotate what tl_alloc returned");
  add_annotations(kCall, program_.buffers[tile.value].annotations, ir::AnnotationPlace::tile, "a tile", text);
}

void Builder::annotate_kernel(std::string_view text) {
  constexpr std::string_view kCall = "tl_annotate_kernel";
  if (!ready(kCall) || !inside_kernel(kCall)) return;
  ir::Annotations& list = program_.kernels.back().annotations;
  const size_t had = list.size();
  add_annotations(kCall, list, ir::AnnotationPlace::kernel, "a kernel", text);
  for (size_t i = had; asked_for_cluster_ && i < list.size(); ++i)
    if (list[i].key == "cluster" || list[i].key == "cluster_along")
      return fail(DiagCode::misplaced_statement, kCall,
                  "the kernel is given a cluster behind expressions of the block's number in its cluster",
                  "annotate the kernel before it is asked for these");
}

void Builder::add_annotations(std::string_view call, ir::Annotations& to, ir::AnnotationPlace place,
                              std::string_view what, std::string_view text) {
  Expected<ir::Annotations> list = ir::parse_annotations(text, place, what, limits_);
  if (!list) {
    const Diagnostic& d = list.error().diagnostics.front();
    return fail(d.code, call, d.message, d.hint);
  }
  for (ir::Annotation& a : *list) {
    a.location = location_;
    for (const ir::Annotation& old : to)
      if (old.key == a.key)
        return fail(DiagCode::duplicate_name, call, "the annotation '" + a.key + "' is given twice",
                    "remove one of them");
    to.push_back(std::move(a));
  }
}

// An order was given to an atomic operation, which has taken it.
bool Builder::check_no_order(std::string_view call) {
  if (order_ == ir::AtomicOrder::relaxed) return true;
  fail(DiagCode::misplaced_statement, call, "a memory order stands in front of what is no atomic operation",
       "say it in front of tl_store_atomic, tl_fetch_atomic or tl_compare_exchange");
  return false;
}

ir::StmtId Builder::marked(std::string_view call, ir::StmtId s) {
  if (!s || !check_no_order(call)) return {};
  program_.stmts[s.value].label = std::exchange(label_, {});
  if (!std::exchange(annotated_, false)) return s;
  const auto place = ir::annotation_place(program_, s);
  if (!place) {
    fail(DiagCode::misplaced_statement, call, "it has no annotations",
         "annotate operations and loops; a label may stand in front of it");
    return {};
  }
  std::string what = *place == ir::AnnotationPlace::loop ? "a loop" : "a parallel loop";
  if (const auto* op = program_.as<ir::TileOp>(s)) what = ir::op_row(op->kind).text;
  add_annotations(call, program_.stmts[s.value].annotations, *place, what, annotations_);
  return failed() ? ir::StmtId() : s;
}

bool Builder::unmarked(std::string_view call) {
  if (!check_no_order(call)) return false;
  if (label_.empty() && !annotated_) return true;
  fail(DiagCode::misplaced_statement, call,
       label_.empty() ? "annotations stand in front of what has none"
                      : "the label '" + label_ + "' stands in front of what has no path",
       "say it in front of an operation, a loop, an if or a store");
  return false;
}

}  // namespace tilegen::builder
