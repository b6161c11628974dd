#include "target/operand_matrices.h"

namespace tilegen::target {

using layout::Fragment;
using layout::kRegister;
using layout::kThread;

std::vector<OperandMatrix> operand_matrices(const MmaAtom& atom, int side) {
  const Fragment& f = side == 0 ? atom.a_layout : atom.b_layout;
  const int bytes = ir::dtype_bytes(side == 0 ? atom.a : atom.b);
  if (bytes > 4 || f.replicas() != 1) return {};
  const int64_t e = 4 / bytes, matrices = f.registers() / e;
  if (f.registers() % e != 0 || matrices == 0) return {};
  struct Point {
    int64_t row = -1, k = -1;
  };
  std::vector<Point> held(static_cast<size_t>(f.threads() * f.registers()));
  for (int64_t i = 0; i < f.shape()[0]; ++i)
    for (int64_t j = 0; j < f.shape()[1]; ++j) {
      int64_t place[2] = {0, 0};  // as eval() of the map, whose digits are all there is
      for (const layout::Digit& d : f.map().digits())
        place[d.output] += (d.dim == layout::kReplica ? 0
                            : d.dim == 0              ? i
                                                      : j) /
                           d.weight % d.extent * d.stride;
      held[static_cast<size_t>(place[kThread] * f.registers() + place[kRegister])] =
          side == 0 ? Point{i, j} : Point{j, i};
    }
  std::vector<OperandMatrix> result;
  for (int64_t m = 0; m < matrices; ++m) {
    const Point first = held[static_cast<size_t>(m * e)];
    for (int64_t lane = 0; lane < f.threads(); ++lane)
      for (int64_t u = 0; u < e; ++u) {
        const Point at = held[static_cast<size_t>(lane * f.registers() + m * e + u)];
        if (at.row != first.row + lane / 4 || at.k != first.k + lane % 4 * e + u) return {};
      }
    result.push_back({first.row, first.k});
  }
  return result;
}

}  // namespace tilegen::target
