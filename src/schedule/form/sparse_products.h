// Which sparse products instructions do as they are written, and which as products of expanded operands
// (schedule/form/decode_sparse.h): what a given schedule, or an annotation, names; else what takes fewer
// cycles by the cost model, among what is legal.
//
// requires: a checked program. ensures: products that are not expanded have places in shared memory once
// decode_sparse has run, and are planned by target::Target::sparse_mma.
// why here: the form of a program that is planned depends on it.
#pragma once

#include <map>
#include <string>

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// Those that are expanded, with the reason. One that is given a sparse instruction is not: planning refuses
// what it cannot do.
std::map<ir::StmtId, std::string> expanded_products(const ir::Program& p, const target::Target& t,
                                                    const plan::Schedule* given);

}  // namespace tilegen::schedule
