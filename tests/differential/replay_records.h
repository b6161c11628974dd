// Plans and the code that was made of them, from a process that plans to one that does not.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tilegen::differential {

// One version of one kernel: all that lowering takes, and what it made.
struct ReplayRecord {
  std::string origin;   // file of the program
  std::string program;  // its form that is planned
  std::string paths;    // of the form's statements, in order, a line each: as the program was written
  std::string target;
  std::string kernel;    // its number in the program
  std::string schedule;  // JSON, of this kernel alone
  std::string code;      // the thread program
};

inline std::vector<ir::StmtId> statements_in_order(const ir::Program& p) {
  std::vector<ir::StmtId> list;
  for (const ir::Kernel& k : p.kernels)
    ir::for_each_statement(p, k.body, [&](ir::StmtId id, int) { list.push_back(id); });
  return list;
}

inline void write_record(std::ostream& out, const ReplayRecord& r) {
  for (const std::string* text :
       {&r.origin, &r.program, &r.paths, &r.target, &r.kernel, &r.schedule, &r.code})
    out << text->size() << "\n" << *text << "\n";
}

inline std::optional<ReplayRecord> read_record(std::istream& in) {
  ReplayRecord r;
  for (std::string* text : {&r.origin, &r.program, &r.paths, &r.target, &r.kernel, &r.schedule, &r.code}) {
    size_t size = 0;
    if (!(in >> size)) return std::nullopt;
    in.ignore(1);
    text->resize(size);
    in.read(text->data(), static_cast<std::streamsize>(size));
    in.ignore(1);
  }
  return r;
}

}  // namespace tilegen::differential
