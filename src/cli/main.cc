#include <algorithm>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include <unistd.h>

#include "cli/app.h"

namespace {

// How the file is called, whatever it is: a link named vcctl or kubectl-hopwise speaks as that.
std::string ProgramOf(const char* path) {
  const std::string name = std::string(path).substr(std::string(path).rfind('/') + 1);
  return name == "vcctl" || name == "kubectl-hopwise" ? name : "hopwise";
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  hopwise::cli::Io io{std::cin,
                      std::cout,
                      std::cerr,
                      isatty(STDOUT_FILENO) == 1,
                      isatty(STDERR_FILENO) == 1,
                      hopwise::Time{static_cast<int64_t>(std::time(nullptr)) * 1'000'000'000}};
  const int status = hopwise::cli::MainAs(ProgramOf(argc > 0 ? argv[0] : "hopwise"), args, io);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "hopwise: cannot write to standard output\n";
    return status == 0 ? 1 : status;
  }
  return status;
}
