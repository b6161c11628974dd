// What was measured of a program's configurations, remembered as JSON, one file each, in a folder.
//
// A record is of one program, target, version of the library and schedule given, one bucket of sizes, and one
// device. Its file's name is made of these, so that writers meet only where they write the same; a writer
// makes a file of its own and renames it, so that readers see one record or the other.
// ensures: what is read has values of the program's domains and times above 0. why here: nothing else knows
// configurations. refuses: io_failure for what cannot be written; what cannot be read, or is another's, is no
// record, with a note.
#pragma once

#include "cost/sizes.h"
#include "support/limits.h"
#include "tune/configuration.h"

namespace tilegen::tune {

// What a record is asked for by.
struct RecordKey {
  std::string program;  // hash, with the values of the first configuration that passes the checks
  std::string target;
  std::string library;                    // version
  std::string schedule;                   // hash of the decisions given; "" for none
  std::map<std::string, int64_t> bucket;  // of every dim and integer scalar of known size
};

struct Record {
  struct Row {
    std::vector<int64_t> values;  // in the order in which the parameters are declared
    double microseconds = 0;
  };
  RecordKey key;
  std::string name;       // of the program, for people
  std::string device;     // "NVIDIA H200"
  cost::Sizes sizes;      // measured
  size_t asked = 0;       // configurations that were to be measured
  std::vector<Row> rows;  // those that were, the fastest first; at least one
};

// The smallest of 1, 2, 3, 4, 6, 8, 12, 16, 24.. that is not below `size`: two to a doubling. 0 for 0.
int64_t size_bucket(int64_t size);

// `first`: the program with the values of the first configuration that passes the checks.
RecordKey record_key(const ir::Program& first, const std::string& target, const std::string& library,
                     const std::string& schedule_json, const cost::Sizes& sizes);

std::string record_to_json(const Record& record, const ir::Program& program);
// Refuses: json_error for text that is no record; schedule_mismatch for one of another key or other domains.
Expected<Record> record_from_json(std::string_view text, const RecordKey& key, const ir::Program& program);

// In folder `folder`, of the device of that name; with "" for the device that of any one. Null: there is
// none. `note` hears of files that are no use.
using Note = std::function<void(const std::string&)>;
std::optional<Record> find_record(const std::string& folder, const RecordKey& key, const std::string& device,
                                  const ir::Program& program, const Note& note);

// Makes the folder where it is missing; not those around it.
Checked write_record(const std::string& folder, const Record& record, const ir::Program& program);

}  // namespace tilegen::tune
