// tilegen: compile, run and look at tile programs in .tl files.
#include <cstdio>
#include <cstring>

#include <exception>
#include <new>

#include "commands.h"
#include "files.h"
#include "library.h"

namespace {

constexpr char kHelp[] =
    R"(tilegen: compile, run and look at tile programs (.tl files; - is standard input)

  tilegen devices                     devices of this machine, and targets that can be planned for
  tilegen run FILE [options]          run a program and compare the result with the interpreter
      --NAME VALUE                    a parameter of the program: a number for a dim or scalar, for a tensor a
                                      .npy file or a shape such as 128x64. Without a file a tensor is random;
                                      `null` leaves an optional one out
      --target T                      the best of this machine when left out; "cuda" and "hip" are its first
                                      CUDA and HIP device
      --schedule S.json               decisions to take as given
      --seed N  --repeats N           of random data (1); timed launches at most (20)
      --tolerance X                   largest relative difference (by dtype)
      --save DIR                      write what the program wrote as DIR/NAME.npy
      --no-check                      do not interpret
      --forms                         print what each version of each kernel needs of the device
  tilegen compile FILE [options]      compile, print the time of each stage
      --target T  --schedule S.json   as above
      --tune model|measure            choose the compile-time parameters; --records DIR remembers times
      --sizes m=1..8192,n=512         for which sizes; for a range code for parts of it, which launches choose from
      --specialisations N             most such parts (4)
      --schedule-out S.json           write every decision, to edit and give back
      --emit WHAT  -o OUT             write a form of the result (see show; asm when left out)
  tilegen check FILE [options]        run a program on the simulator of a GPU and print what is wrong with it
      --NAME VALUE or NAME=VALUE      a parameter, as for run
      --target T                      sm_80 when left out
      --schedule S.json  --seed N     as above
      --order O                       of the warps: round_robin, reversed, random, or all (round_robin)
      --async A                       when async copies land: latest, earliest, or all (latest)
      --json                          findings and counters as JSON
      --no-values                     do not interpret and compare
  tilegen show FILE [options]         print a form of the result
      --target T  --schedule S.json   as above
      --what WHAT                     text schedule schedule-json layouts pictures thread llvm llvm-opt asm
                                      scheduled (the program as planned: roles, and what they wait for)
                                      code (what a device loads) ptx (NVIDIA targets) hsaco (AMD targets)
                                      cost (the cost model's estimate, and warnings of what the plan loses)
                                      cost-json, native (functions whose native text is in the code)
      --sizes m=4096,n=512            of dims, that the estimate takes; a nominal size for others
      --fallback N                    of the N-th fallback version, for arguments that those in front refuse
      --svg DIR                       with layouts or pictures: an SVG of each layout too; with cost: of each kernel
  tilegen tune FILE [options]         plan all values of the compile-time parameters, the shortest estimate first
      --target T  --schedule S.json  --sizes m=4096,n=512   as above
      --count N                       rows to print (16)
      --refused                       those that the target does not take, too, and why
      --measure                       run the best on the device, each in a process of its own, the shortest time first
      --best N                        measure so many of the best by the model (8; without a model all)
      --records DIR                   remember times there; what is remembered is not measured again
      --limit SECONDS                 that a process may take (60)
  tilegen measure FILE [options]      microseconds of one launch on random data
      --target T  --schedule S.json  --sizes m=4096,n=512   as above
  tilegen format FILE                 the text laid out: blocks indented, spaces between tokens, comments kept
      --write                         into the file; of several files, too
      --check                         only say which files are not laid out so, and end with 1 where there are any
  tilegen emit-c FILE                 C source of a function that builds the program by calls of tilelang.h
  run, compile, check, show, measure and emit-c also take
      --param NAME=VALUE              a compile-time parameter of the program; may be given once for each
  all that read programs also take
      -I FOLDER                       where to look for files that a program includes and that are not beside it
  tilegen help | version

Ends with 0 when all is right, 1 when the library refuses the work or results are wrong, 2 when the command
line or a file named there cannot be used or what was asked for could not be written.
)";

int run(int argc, char** argv) {
  static constexpr struct {
    const char* name;
    int (*run)(int, char**);
  } kCommands[] = {{"devices", tool::devices_command}, {"run", tool::run_command},
                   {"compile", tool::compile_command}, {"check", tool::check_command},
                   {"show", tool::show_command},       {"tune", tool::tune_command},
                   {"measure", tool::measure_command}, {"format", tool::format_command},
                   {"emit-c", tool::emit_c_command}};
  if (argc < 2 || !std::strcmp(argv[1], "help") || !std::strcmp(argv[1], "--help")) {
    std::fputs(kHelp, argc < 2 ? stderr : stdout);
    return argc < 2 ? 2 : 0;
  }
  if (!std::strcmp(argv[1], "version") || !std::strcmp(argv[1], "--version")) {
    std::printf("%s\n", tl_build_info());
    return 0;
  }
  for (const auto& command : kCommands)
    if (!std::strcmp(argv[1], command.name)) return command.run(argc - 2, argv + 2);
  tool::fail_usage(std::string("there is no command '") + argv[1] + "'");
}

}  // namespace

int main(int argc, char** argv) {
  tool::occupy_standard_streams();
  try {
    return tool::close_output(run(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("tilegen: the process is out of memory\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tilegen: %s\n", e.what());
  }
  return 2;
}
