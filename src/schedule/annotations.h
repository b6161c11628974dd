// Annotations of a program (ir/annotations.h) as a given schedule: what planning then takes, checks and
// refuses as it does with one that the caller gives.
//
// requires: a checked program, and the form of it that is planned (form/canonical_form.h; the program itself
//   where there is none). ensures: each annotation is a field of the schedule, but for those that the
//   caller's schedule decides otherwise; on targets without threads of blocks a note for each. Names that are
//   paths without labels are the paths with them. why here: before planning, which knows given schedules
//   only.
// refuses: schedule_illegal, schedule_mismatch, at the annotation's place: a layout that the algebra does not
//   have, a name that no statement has, an annotation of a parallel loop that has no operation.
#pragma once

#include <memory>
#include <optional>

#include "ir/annotations.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

struct AnnotatedSchedule {
  static Expected<AnnotatedSchedule> make(const ir::Program& p, const ir::Program& form,
                                          const target::Target& t,
                                          const std::optional<plan::Schedule>& given);

  // What the caller gives, if that, and what the program says beyond it.
  std::optional<plan::Schedule> schedule;
  std::vector<plan::Note> notes;  // of annotations that are left out
  struct Place {
    std::string path;  // of what it is said of
    std::vector<std::string> fields;
    std::string key;
    SourceLocation location;
  };
  std::vector<Place> places;  // of those that are taken

  // An error of planning that refuses an annotation tells of it and of its place.
  Error with_place(Error e) const;
};

// The layout that a tile's annotation asks for (annotated_layouts.cpp): `layout`, `swizzle` or `padding`.
Expected<layout::Layout> annotated_memory(const ir::Annotation& a, const std::vector<int64_t>& shape,
                                          int element_bytes);
// The same of a tile in registers: `layout`, of a kernel of so many threads, 0 where it does not say.
Expected<layout::Fragment> annotated_fragment(const ir::Annotation& a, const std::vector<int64_t>& shape,
                                              int64_t threads);

}  // namespace tilegen::schedule
