#include "sim/atom_tables.h"

#include "layout/fragment.h"

namespace tilegen::sim {

namespace {

// Matrix element, row-major, that a thread holds in a register. Of the lanes that hold copies each names it.
std::vector<uint32_t> element_table(const layout::Fragment& f, int64_t threads) {
  std::vector<uint32_t> table(static_cast<size_t>(f.registers() * threads), kNothing);
  const int64_t rows = f.shape()[0], columns = f.shape()[1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t at[] = {i, j};
      for (int64_t lane : f.holders(at))
        table[static_cast<size_t>(f.register_of(at) * threads + lane)] =
            static_cast<uint32_t>(i * columns + j);
    }
  return table;
}

}  // namespace

uint32_t find_warpgroup_atom(Bytecode& code, const thread::ThreadProgram& p, const target::Target& target,
                             const thread::WarpgroupMma& m, const RefuseAtom& refuse) {
  auto& atoms = code.warpgroup_atoms;
  const auto found = target::find_warpgroup_atom(target, m.atom);
  if (!found) {
    refuse(m.atom, "target " + target.name + " has no such matrix instruction");
    return kNothing;
  }
  const target::WarpgroupAtom& atom = *found->atom;
  const thread::Memory &a = p.memory(m.a), &b = p.memory(m.b), &c = p.memory(m.c);
  if (a.type != atom.a || b.type != atom.b || c.type != atom.c || b.in_registers || !c.in_registers ||
      m.a_steps.size() != m.b_steps.size() || atom.sparse() != m.sparse() ||
      (m.sparse() && (p.memory(m.places).type != ir::DType::u32 || !p.memory(m.places).in_registers)))
    refuse(m.atom + " with operands of other types or places than its row", "use the row's operands");
  for (uint32_t i = 0; i < atoms.size(); ++i)
    if (atoms[i].name == m.atom) return i;
  atoms.push_back({m.atom, &atom, found->n, element_table(atom.a_operand(), kGroupThreads),
                   element_table(atom.accumulator(found->n), kGroupThreads),
                   atom.sparse() ? element_table(*atom.places, kGroupThreads) : std::vector<uint32_t>()});
  return static_cast<uint32_t>(atoms.size() - 1);
}

uint32_t find_atom(Bytecode& code, const thread::ThreadProgram& p, const target::Target& target,
                   const thread::WarpMma& m, const RefuseAtom& refuse) {
  for (uint32_t i = 0; i < code.atoms.size(); ++i)
    if (code.atoms[i].atom->name == m.atom) return i;
  if (const target::MmaAtom* found = target::find_mma_atom(target, m.atom)) {
    const target::MmaAtom& atom = *found;
    AtomTables tables{&atom, element_table(atom.a_layout, code.lanes),
                      element_table(atom.b_layout, code.lanes), element_table(atom.c_layout, code.lanes),
                      atom.sparse() ? element_table(*atom.places, code.lanes) : std::vector<uint32_t>()};
    const auto fits = [&](const std::vector<uint32_t>& table, int registers) {
      return table.size() == static_cast<size_t>(registers) * static_cast<size_t>(code.lanes);
    };
    if (!fits(tables.a, m.a_registers) || !fits(tables.b, m.b_registers) || !fits(tables.c, m.c_registers) ||
        p.memory(m.a).type != atom.a || p.memory(m.b).type != atom.b || p.memory(m.c).type != atom.c)
      refuse(m.atom + " with operands of other types or register counts than its row",
             "use the row's fragments");
    if (atom.sparse() != m.places.valid() ||
        (atom.sparse() && (p.memory(m.places).type != ir::DType::u32 || !p.memory(m.places).in_registers)))
      refuse(m.atom + (atom.sparse() ? " without a register of places" : " with places"),
             "places are for sparse instructions, in registers of u32");
    code.atoms.push_back(std::move(tables));
    return static_cast<uint32_t>(code.atoms.size() - 1);
  }
  refuse(m.atom, "target " + target.name + " has no such matrix instruction");
  return kNothing;
}

}  // namespace tilegen::sim
