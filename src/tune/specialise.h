// Which few configurations, and plans of them, serve launches of many sizes.
//
// (Paper section 4.4 tunes for one shape; engines meet many.)
// requires: at least one range; `bind` gives the checked program of a configuration.
// ensures: at most `most` specialisations, each a configuration with sizes to plan it for, and for each step
//   of the sizes the one that is fastest there by the model, in the mean of its last size and its middle one,
//   or by measuring at the last: of those measured their times, of others the estimate times the worst
//   measured ratio there. Plans count: a loop that blocks
//   share for few rows is not shared for many. For targets without estimates one, unless measured.
// why here: it joins the model, the measuring and the sizes. Nothing is lowered but for measuring.
// refuses: what `rank` and `tune_by_measuring` do; the want of estimates only where values are to be chosen.
#pragma once

#include "tune/measured_tuning.h"
#include "tune/size_points.h"

namespace tilegen::tune {

constexpr size_t kUsualSpecialisations = 4, kMostSpecialisations = 32;

struct SpecialiseOptions {
  std::vector<SizeRange> ranges;
  size_t most = kUsualSpecialisations;
  bool choose_values = true;                // false: the program has the values that it has
  const MeasureOptions* measure = nullptr;  // null: by the model
  unsigned threads = 0;                     // 0: the cores
};

struct ChosenForm {
  std::vector<ir::ParamBinding> values;
  std::shared_ptr<const ir::Program> program;
  cost::Sizes sizes;  // to plan it for
};

struct Specialising {
  std::vector<driver::SizeAxis> axes;  // merged
  std::vector<uint8_t> choice;         // as in driver::Specialisations
  std::vector<ChosenForm> forms;
  double loss = 0;  // the mean over the sizes of time / best time, less 1
};

Expected<Specialising> specialise(const std::shared_ptr<const ir::Program>& program, const Bind& bind,
                                  const target::Target& target, const driver::CompileOptions& options,
                                  const SpecialiseOptions& how);

}  // namespace tilegen::tune
