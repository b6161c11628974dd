// Builder calls of operations that are made of other statements.
#include "capi/guard.h"
#include "capi/handles.h"
#include "ir/bitcode_text.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

// In the order of ir::NativeForm.
static_assert(TL_NATIVE_LLVM - TL_NATIVE_PTX + 1 == ir::kNativeForms &&
              TL_NATIVE_GCN - TL_NATIVE_PTX == static_cast<uint32_t>(ir::NativeForm::gcn) &&
              TL_NATIVE_LLVM_HOST - TL_NATIVE_PTX == static_cast<uint32_t>(ir::NativeForm::llvm_host));

std::vector<ir::Region> regions(const BuilderCall& c, const char* what, uint32_t count,
                                const tl_region* given) {
  std::vector<ir::Region> all;
  if (c.given(what, given))
    for (uint32_t i = 0; i < count && !c.failed(); ++i) all.push_back(c.region(what, given[i]));
  return all;
}

struct Combined {
  uint32_t count;
  const tl_region *src, *dst;
  const tl_expr *left, *right, *results;
};

ir::Combination scan_of(uint32_t axis, uint32_t flags) {
  ir::Combination what;
  what.axis = axis;
  what.scan = true;
  what.reverse = (flags & TL_SCAN_REVERSE) != 0;
  what.exclusive = (flags & TL_SCAN_EXCLUSIVE) != 0;
  return what;
}

void combine(const BuilderCall& c, const Combined& of, ir::Combination what,
             const tl_region* carry = nullptr) {
  if (!c.countable("values", of.count)) return;
  what.src = regions(c, "src", of.count, of.src);
  what.dst = regions(c, "dst", of.count, of.dst);
  const auto left = c.exprs("left", of.count, of.left), right = c.exprs("right", of.count, of.right);
  what.by.results = c.exprs("results", of.count, of.results);
  std::vector<ir::Region> carried;
  if (carry) carried = regions(c, "carry", of.count, carry);
  if (!c.failed()) c->combine(std::move(what), left, right, std::move(carried));
}

void sort(const BuilderCall& c, tl_region src, tl_region dst, tl_region index, ir::Sort what) {
  what.src = c.region("src", src);
  what.dst = c.region(what.first_ones ? "value" : "dst", dst);
  if (index.bits != 0) what.index = c.region("index", index);
  if (!c.failed()) c->sort(what);
}

}  // namespace

extern "C" {

tl_expr tl_operand(tl_builder* builder, tl_dtype dtype, const char* name) {
  return on_builder(builder, "tl_operand", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const ir::DType type = c.dtype(dtype);
    return c.failed() ? tl_expr{0} : c.give_var(c->operand(name ? name : "", type));
  });
}

void tl_function(tl_builder* builder, const char* name, uint32_t operand_count, const tl_expr* operands,
                 uint32_t result_count, const tl_expr* results, uint32_t text_count,
                 const tl_native_form* forms, const char* const* texts) {
  on_builder(builder, "tl_function", [&](const BuilderCall& c) {
    const auto text = c.text("name", name);
    const auto of = c.exprs("operands", operand_count, operands);
    const auto give = c.exprs("results", result_count, results);
    if (!c.countable("texts", text_count)) return;
    std::vector<ir::NativeText> native;
    if (text_count > 0 && (!c.given("forms", forms) || !c.given("texts", texts))) return;
    for (uint32_t i = 0; i < text_count; ++i) {
      if (forms[i] < TL_NATIVE_PTX || forms[i] > TL_NATIVE_LLVM)
        return c.fail(DiagCode::bad_enum, "there is no form " + std::to_string(forms[i]),
                      "use a tl_native_form");
      const auto own = c.text("a text", texts[i]);
      if (c.failed()) return;
      native.push_back({static_cast<ir::NativeForm>(forms[i] - TL_NATIVE_PTX), std::string(own)});
    }
    if (!c.failed()) c->function(text, of, give, std::move(native));
  });
}

tl_status tl_bitcode_text(const void* bytes, size_t size, tl_blob** out_text, tl_error** out_error) {
  return guard("tl_bitcode_text", out_error, [&]() -> Checked {
    if (out_text) *out_text = nullptr;
    if (!bytes || !out_text) return null_argument(out_text ? "bytes" : "out_text");
    auto text = ir::bitcode_text({static_cast<const uint8_t*>(bytes), size});
    if (!text) return text.error();
    auto blob = std::make_unique<tl_blob>();
    blob->bytes = std::move(*text);
    *out_text = blob.release();
    return Unit{};
  });
}

void tl_matrix_atom(tl_builder* builder, const char* name, const int64_t* shape, const tl_dtype* types,
                    const char* const* layouts, uint32_t cycles, const tl_expr* operands, tl_expr meaning,
                    tl_native_form form, const char* text) {
  on_builder(builder, "tl_matrix_atom", [&](const BuilderCall& c) {
    builder::Builder::Atom atom;
    atom.name = c.text("name", name);
    if (c.failed() || !c.given("shape", shape) || !c.given("types", types) || !c.given("layouts", layouts))
      return;
    atom.atom.m = shape[0], atom.atom.n = shape[1], atom.atom.k = shape[2];
    for (size_t i = 0; i < 3 && !c.failed(); ++i) {
      atom.types[i] = c.dtype(types[i]);
      atom.atom.layouts[i] = std::string(c.text("a layout", layouts[i]));
    }
    atom.atom.cycles = cycles;
    if (operands) {
      atom.operands = c.exprs("operands", 3, operands);
      atom.meaning = c.expr("the meaning", meaning);
    } else if (meaning.bits != 0) {
      return c.fail(DiagCode::null_argument, "operands is NULL and there is a meaning",
                    "pass the operands that the meaning is of, or neither");
    }
    if (form < TL_NATIVE_PTX || form > TL_NATIVE_LLVM)
      return c.fail(DiagCode::bad_enum, "there is no form " + std::to_string(form), "use a tl_native_form");
    atom.text = {static_cast<ir::NativeForm>(form - TL_NATIVE_PTX), std::string(c.text("text", text))};
    if (!c.failed()) c->matrix_atom(std::move(atom));
  });
}

tl_expr tl_call(tl_builder* builder, const char* function, uint32_t count, const tl_expr* args,
                uint32_t result) {
  return on_builder(builder, "tl_call", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto name = c.text("function", function);
    const auto given = c.exprs("args", count, args);
    return c.failed() ? tl_expr{0} : c.give(c->call(name, given, result));
  });
}

void tl_reduce_by(tl_builder* builder, uint32_t count, const tl_region* src, const tl_region* dst,
                  const tl_expr* left, const tl_expr* right, const tl_expr* results, uint32_t axis,
                  uint32_t flags) {
  on_builder(builder, "tl_reduce_by", [&](const BuilderCall& c) {
    if (!c.known_flags(flags, TL_REDUCE_ACCUMULATE)) return;
    ir::Combination what;
    what.axis = axis;
    what.accumulate = (flags & TL_REDUCE_ACCUMULATE) != 0;
    combine(c, {count, src, dst, left, right, results}, std::move(what));
  });
}

void tl_scan_by(tl_builder* builder, uint32_t count, const tl_region* src, const tl_region* dst,
                const tl_expr* left, const tl_expr* right, const tl_expr* results, uint32_t axis,
                uint32_t flags) {
  on_builder(builder, "tl_scan_by", [&](const BuilderCall& c) {
    if (!c.known_flags(flags, TL_SCAN_REVERSE)) return;
    combine(c, {count, src, dst, left, right, results}, scan_of(axis, flags));
  });
}

void tl_scan_by_from(tl_builder* builder, uint32_t count, const tl_region* src, const tl_region* dst,
                     const tl_expr* left, const tl_expr* right, const tl_expr* results, const tl_expr* first,
                     uint32_t axis, uint32_t flags) {
  on_builder(builder, "tl_scan_by_from", [&](const BuilderCall& c) {
    if (!c.known_flags(flags, TL_SCAN_REVERSE | TL_SCAN_EXCLUSIVE) || !c.countable("values", count)) return;
    ir::Combination what = scan_of(axis, flags);
    what.first = c.exprs("first", count, first);
    combine(c, {count, src, dst, left, right, results}, std::move(what));
  });
}

void tl_scan_by_carry(tl_builder* builder, uint32_t count, const tl_region* src, const tl_region* dst,
                      const tl_region* carry, const tl_expr* left, const tl_expr* right,
                      const tl_expr* results, uint32_t axis, uint32_t flags) {
  on_builder(builder, "tl_scan_by_carry", [&](const BuilderCall& c) {
    if (!c.known_flags(flags, TL_SCAN_REVERSE | TL_SCAN_EXCLUSIVE) || !c.given("carry", carry)) return;
    combine(c, {count, src, dst, left, right, results}, scan_of(axis, flags), carry);
  });
}

void tl_compress(tl_builder* builder, tl_region src, tl_region values, tl_region meta) {
  on_builder(builder, "tl_compress", [&](const BuilderCall& c) {
    const ir::Compression what = {c.region("src", src), c.region("values", values), c.region("meta", meta)};
    if (!c.failed()) c->compress(what);
  });
}

void tl_sort(tl_builder* builder, tl_region src, tl_region dst, tl_region index, uint32_t axis,
             uint32_t flags) {
  on_builder(builder, "tl_sort", [&](const BuilderCall& c) {
    if (!c.known_flags(flags, TL_SORT_DESCENDING)) return;
    ir::Sort what;
    what.axis = axis;
    what.descending = (flags & TL_SORT_DESCENDING) != 0;
    sort(c, src, dst, index, std::move(what));
  });
}

void tl_top_k(tl_builder* builder, tl_region src, tl_region value, tl_region index, uint32_t axis,
              uint32_t flags) {
  on_builder(builder, "tl_top_k", [&](const BuilderCall& c) {
    if (!c.known_flags(flags, TL_TOP_K_SMALLEST)) return;
    ir::Sort what;
    what.axis = axis;
    what.first_ones = true;
    what.descending = (flags & TL_TOP_K_SMALLEST) == 0;
    sort(c, src, value, index, std::move(what));
  });
}

}  // extern "C"
