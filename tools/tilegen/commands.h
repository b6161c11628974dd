// The commands of the tool; each takes the arguments after its name and returns the exit status.
#pragma once

namespace tool {

int devices_command(int argc, char** argv);
int run_command(int argc, char** argv);
int compile_command(int argc, char** argv);
int check_command(int argc, char** argv);
int show_command(int argc, char** argv);
int tune_command(int argc, char** argv);
int format_command(int argc, char** argv);
int emit_c_command(int argc, char** argv);
int measure_command(int argc, char** argv);

}  // namespace tool
