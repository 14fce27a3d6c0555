#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include <unistd.h>

#include "cli/app.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> args(argv + 1, argv + argc);
  hopwise::cli::Io io{std::cin,
                      std::cout,
                      std::cerr,
                      isatty(STDOUT_FILENO) == 1,
                      isatty(STDERR_FILENO) == 1,
                      hopwise::Time{static_cast<int64_t>(std::time(nullptr)) * 1'000'000'000}};
  const int status = hopwise::cli::Main(args, io);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "hopwise: cannot write to standard output\n";
    return status == 0 ? 1 : status;
  }
  return status;
}
