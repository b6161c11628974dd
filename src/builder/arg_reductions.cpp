// The largest or smallest element and its place.
#include <string>

#include "builder/builder.h"
#include "ir/arg_reduction.h"
#include "support/diag_codes.h"

namespace tilegen::builder {

void Builder::arg_reduce(const ir::Region& src, const ir::Region& value, const ir::Region& index,
                         bool largest, int64_t axis) {
  constexpr std::string_view kCall = "tl_arg_reduce";
  if (!ready(kCall) || !inside_kernel(kCall) || !unmarked(kCall) || !outside_parallel(kCall) ||
      !check_region(kCall, "the source", src) || !check_region(kCall, "the value", value) ||
      !check_region(kCall, "the place", index) || !room_for_buffer(kCall) || !check_operands(kCall, {}) ||
      !reached(kCall))
    return;
  constexpr int64_t kStatements = 4;
  if (static_cast<int64_t>(program_.stmts.size()) + kStatements > limits_.statements)
    return fail(DiagCode::limit_nodes, kCall,
                "the program has more than " + std::to_string(limits_.statements) + " statements",
                "use loops instead of repeating statements");
  if (auto wrong =
          ir::add_arg_reduction(program_, {src, value, index, largest, axis}, location_, frames_.back().body))
    fail(wrong->code, kCall, wrong->message, wrong->hint);
}

}  // namespace tilegen::builder
