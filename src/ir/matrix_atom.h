// Matrix instructions of a program, which products that name one are made of:
//
//   atom mul(a: f16[16, 8] at (i, k) -> (i % 8 * 4 + k // 2) * 4 + i // 8 * 2 + k % 2,
//            b: f16[8, 8] at (k, j) -> (j * 4 + k // 2) * 2 + k % 2,
//            c: f32[16, 8] at (i, j) -> (i % 8 * 4 + j // 2) * 4 + i // 8 * 2 + j % 2)
//     asm ptx "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6},"
//             "{$7, $8, $9, $10};"
//
//   gemm A, B -> C {atom = "mul"}
//
// An atom is a native function (ir/native.h) of an element of A, of B and of C, with a shape and the places
// of the elements: lane * registers + register. A product means what it means without an atom; the atom's
// meaning is what the simulator computes for the instruction, and rounds as the instruction does.
//
// requires: nothing. ensures: shape, types, registers and the text agree; layouts that are functions give
//   each place once. Texts of fragments are read where layouts are known (target/given_atoms.h).
// why here: parser and builder make the same atoms.
// refuses: types without whole registers, shapes that the lanes do not divide, meanings that are no
//   c + a * b, text that is no one matrix instruction of that shape.
#pragma once

#include <optional>
#include <string>

#include "ir/native.h"

namespace tilegen::ir {

// Lanes that an instruction of the form has.
constexpr int64_t matrix_lanes(NativeForm form) { return form == NativeForm::ptx ? 32 : 64; }
constexpr int64_t kMaxAtomElements = 1024;  // of A, of B and of C

// Shape and layouts as the text or a call gives them.
struct AtomRequest {
  std::string name;
  MatrixAtom atom;
  std::array<VarId, 3> operands;  // variables of the program, of A's, B's and C's type
  ExprId meaning;                 // an expression of these; none: c + a * b
  NativeText text;
  SourceLocation location;
};

// What is wrong with it, without a place, or nothing: then it is the last of p.natives.
std::optional<Diagnostic> add_matrix_atom(Program& p, AtomRequest request, const Limits& limits);

// C's element becomes this. The function is an atom.
ScalarValue atom_step(const NativeFunction& f, ScalarValue a, ScalarValue b, ScalarValue c);

// The function that an operation's annotation `atom` may name; null: the program has no such atom.
const NativeFunction* find_matrix_atom(const Program& p, std::string_view name);

}  // namespace tilegen::ir
