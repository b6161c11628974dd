#include "runtime/reports.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

#include "ir/assertion.h"
#include "ir/dtype.h"
#include "runtime/printed_lines.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

std::byte* address(uint64_t slot) { return std::bit_cast<std::byte*>(slot); }

void write(const std::vector<std::string>& lines, const LineSink& sink) {
  for (const std::string& line : lines)
    sink.take ? sink.take(sink.to, line.c_str()) : void(std::puts(line.c_str()));
  if (!sink.take) std::fflush(stdout);
}

struct Site {
  ir::StmtId stmt;
  std::vector<ir::PlaceDigit> digits;
};

Diagnostic failure(const ir::Program& p, const Site& site, const std::vector<std::string>& paths,
                   const std::string& message, const DimSolver& dims, int64_t place) {
  Diagnostic d;
  d.code = DiagCode::assertion_failed;
  d.op = site.stmt.valid() ? paths[site.stmt.value] : p.name;
  const std::string where = place_text(p, site.digits, digits_of(site.digits, dims, ir::kLastPlace, place));
  d.message = "the assertion '" + message + "' does not hold" + (where.empty() ? "" : " at " + where);
  d.hint = "this is the first place in the order of blocks and iterations; what the kernels wrote stands";
  if (site.stmt.valid()) d.location = p.stmt(site.stmt).location;
  d.stage = "launch";
  return d;
}

Checked judge(const ir::Program& p, const DimSolver& dims, const std::byte* memory) {
  std::vector<int64_t> failed(p.messages.size());
  std::memcpy(failed.data(), memory, failed.size() * sizeof(int64_t));
  std::vector<Site> sites(failed.size());
  ir::for_each_place(p, [&](ir::StmtId s, std::span<const ir::PlaceDigit> digits) {
    const auto found = ir::assertion_at(p, s);
    if (found && !sites[found->index].stmt.valid()) sites[found->index] = {s, {digits.begin(), digits.end()}};
    return !found;
  });
  Error error;
  std::vector<std::string> paths;
  for (size_t i = 0; i < failed.size(); ++i) {
    if (failed[i] == 0) continue;
    if (paths.empty()) paths = ir::statement_paths(p);
    error.diagnostics.push_back(failure(p, sites[i], paths, p.messages[i], dims, ir::kLastPlace - failed[i]));
  }
  if (error.diagnostics.empty()) return Unit{};
  return error;
}

}  // namespace

Reports::Reports(const ir::Program& program) : program_(program) {
  for (size_t i = 0; i < program.params.size(); ++i) {
    if (!program.is_workspace(program.params[i])) continue;
    const ir::Buffer& b = program.buffer(program.params[i].buffer);
    if (b.report == ir::Report::none) continue;
    int64_t elements = 1, extent = 0;
    for (ir::ExprId e : b.shape) elements *= program.exprs.is_const_int(e, &extent) ? extent : 0;
    pieces_.push_back({i, static_cast<size_t>(elements * ir::dtype_bytes(b.type)), b.report});
  }
}

void Reports::clear(std::span<const uint64_t> slots) const {
  for (const Piece& piece : pieces_) std::memset(address(slots[piece.param]), 0, piece.bytes);
}

[[gnu::cold]] Checked Reports::tell_host_memory(std::span<const uint64_t> slots, const LineSink& sink) const {
  std::vector<const std::byte*> memory;
  for (const Piece& piece : pieces_) memory.push_back(address(slots[piece.param]));
  return tell(slots, memory, sink);
}

[[gnu::cold]] Checked Reports::tell(std::span<const uint64_t> slots, std::span<const std::byte* const> memory,
                                    const LineSink& sink) const {
  const DimSolver dims(program_, slots);
  std::vector<PrintBuffer> printed;
  const std::byte* failed = nullptr;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].kind == ir::Report::prints) printed.push_back({memory[i]});
    if (pieces_[i].kind == ir::Report::assertions) failed = memory[i];
  }
  if (!printed.empty()) write(printed_lines(program_, dims, printed), sink);
  return failed ? judge(program_, dims, failed) : Checked(Unit{});
}

}  // namespace tilegen::runtime
