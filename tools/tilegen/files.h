// Files and the standard streams of the tool. What cannot be read or written ends the program with status 2
// and a message that names the file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tool {

[[noreturn]] void fail_file(const std::string& message);

// "-" is standard input. A file that goes on after `most` bytes, perhaps for ever, is refused.
std::string read_file(const std::string& path, size_t most);
void write_file(const std::string& path, std::string_view bytes);  // "-" = standard output

// Closed standard streams become streams that fail, so that no file opened later takes their numbers.
void occupy_standard_streams();

// To be asked once, last: the status to end with. Anything printed that did not reach standard output makes
// it 2.
int close_output(int status);

}  // namespace tool
