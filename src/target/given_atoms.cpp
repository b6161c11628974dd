#include "target/given_atoms.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/annotations.h"
#include "ir/matrix_atom.h"
#include "layout/from_offsets.h"
#include "support/diag_codes.h"

namespace tilegen::target {
namespace {

using ir::DType;
using layout::Fragment;

struct Operand {
  const ir::NativeFunction& f;
  size_t which;
  std::vector<int64_t> shape;
  int64_t lanes;

  Error refused(const std::string& why) const {
    return Error(
        DiagCode::schedule_illegal, f.name,
        "the layout of " + std::string(1, "ABC"[which]) + " of '" + f.name + "' is not possible: " + why,
        "give a function of the indices that is a sum of their digits, (i, k) -> lane * registers + "
        "register, or the text of a fragment: \"threads 32 : (16,8) -> [0: ..; 1: ..]\"",
        f.location);
  }

  // Each element in one place, which no other has.
  Expected<Fragment> checked(Expected<Fragment> made) const {
    if (!made) return refused(made.error().diagnostics.front().message);
    const int64_t registers = shape[0] * shape[1] / lanes;
    if (made->shape() != shape || made->threads() != lanes || made->registers() != registers)
      return refused("it is " + made->to_text() + ", not of " + std::to_string(lanes) + " lanes with " +
                     std::to_string(registers) + " registers each");
    if (made->replicas() != 1 || !made->map().is_bijective())
      return refused("it does not hold each element once");
    return made;
  }

  Expected<Fragment> fragment() const {
    const std::string& text = f.atom->layouts[which];
    if (text.find('[') != std::string::npos) return checked(Fragment::from_text(text));
    const auto places = ir::index_function_values(text, shape, Limits());
    if (!places) return refused(places.error().diagnostics.front().message);
    auto made = layout::fragment_of_places(shape, *places, lanes);
    if (!made) return refused(made.error().diagnostics.front().message);
    return checked(std::move(made));
  }
};

MmaSemantics meaning_of(const std::shared_ptr<const ir::NativeFunction>& f, bool tf32) {
  const DType type_of_a = f->parameters[0].type, type_of_b = f->parameters[1].type,
              type_of_c = f->parameters[2].type;
  if (f->results.empty()) {
    if (tf32) return meaning::dot_tf32;
    if (type_of_c == DType::i32) return meaning::dot_i32;
    if (type_of_c == DType::f64) return meaning::fma_f64;
    return type_of_a == DType::f32 ? meaning::fma_f32 : meaning::dot_f32;
  }
  const auto value = [](DType t, double v) {
    return ir::is_float(t) ? ir::ScalarValue{t, 0, v} : ir::ScalarValue{t, static_cast<int64_t>(v), 0};
  };
  return [=](MmaExtents e, const double* a, const double* b, double* c) {
    for (int i = 0; i < e.m; ++i)
      for (int j = 0; j < e.n; ++j) {
        ir::ScalarValue sum = value(type_of_c, c[i * e.n + j]);
        for (int k = 0; k < e.k; ++k)
          sum = ir::atom_step(*f, value(type_of_a, a[i * e.k + k]), value(type_of_b, b[k * e.n + j]), sum);
        c[i * e.n + j] = ir::is_float(type_of_c) ? sum.f : static_cast<double>(sum.i);
      }
  };
}

// Matrix instructions of 32-bit floats: of PTX all round operands to tf32, of GCN those called so.
bool rounds_to_tf32(const ir::NativeFunction& f) {
  if (f.parameters[0].type != DType::f32) return false;
  const ir::NativeText& text = f.texts.front();
  return text.form == ir::NativeForm::ptx || text.text.find("xf32") != std::string::npos;
}

int cycles_of(const MmaAtom& atom, const Target& t) {
  if (atom.given->atom->cycles > 0) return static_cast<int>(atom.given->atom->cycles);
  const auto products = [](const MmaAtom& a) { return static_cast<double>(a.m) * a.n * a.k; };
  double fastest = 0;  // products in a cycle
  for (const MmaAtom& row : t.mma) {
    if (row.given || row.unit != MmaUnit::matrix || row.a != atom.a || row.b != atom.b || row.c != atom.c)
      continue;
    if (row.m == atom.m && row.n == atom.n && row.k == atom.k) return row.cycles;
    fastest = std::max(fastest, products(row) / row.cycles);
  }
  constexpr double kUnknown = 64;  // of types that the table has no row for
  return std::max(1, static_cast<int>(products(atom) / (fastest > 0 ? fastest : kUnknown)));
}

}  // namespace

Expected<MmaAtom> given_atom(const std::shared_ptr<const ir::NativeFunction>& f) {
  const ir::MatrixAtom& atom = *f->atom;
  const ir::NativeText& text = f->texts.front();
  const int64_t lanes = ir::matrix_lanes(text.form);
  const std::vector<int64_t> shapes[] = {{atom.m, atom.k}, {atom.k, atom.n}, {atom.m, atom.n}};
  std::vector<Fragment> layouts;
  for (size_t i = 0; i < 3; ++i) {
    auto layout = Operand{*f, i, shapes[i], lanes}.fragment();
    if (!layout) return layout.error();
    layouts.push_back(std::move(*layout));
  }
  const bool tf32 = rounds_to_tf32(*f);
  MmaAtom row{f->name,
              static_cast<int>(atom.m),
              static_cast<int>(atom.n),
              static_cast<int>(atom.k),
              f->parameters[0].type,
              f->parameters[1].type,
              f->parameters[2].type,
              std::move(layouts[0]),
              std::move(layouts[1]),
              std::move(layouts[2]),
              /*cycles=*/1,
              meaning_of(f, tf32),
              MmaUnit::matrix,
              text.text,
              tf32};
  row.given = f;
  constexpr int kFp8Ptx = 84;
  if (text.form == ir::NativeForm::ptx && ir::is_float(row.a) && ir::dtype_bits(row.a) == 8)
    row.isa_version = kFp8Ptx;
  return row;
}

Expected<Target> with_given_atoms(Target t,
                                  std::span<const std::shared_ptr<const ir::NativeFunction>> natives) {
  std::erase_if(t.mma, [](const MmaAtom& row) { return row.given != nullptr; });
  if (!t.has_block_threads()) return t;
  const ir::NativeForm taken = t.code == CodeFormat::ptx ? ir::NativeForm::ptx : ir::NativeForm::gcn;
  for (const auto& f : natives) {
    if (!f->atom || f->texts.front().form != taken) continue;
    auto row = given_atom(f);
    if (!row) return row.error();
    row->cycles = cycles_of(*row, t);
    t.mma.push_back(std::move(*row));
  }
  return t;
}

}  // namespace tilegen::target
