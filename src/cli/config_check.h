// `hopwise config check`.
#pragma once

#include <string>

#include "cli/io.h"

namespace hopwise::cli {

// Lists what a volcano-scheduler.conf or volcano-controller.conf holds that is not served, each
// thing on a line. 0 when there is nothing, 1 when there are warnings, 2 when the scheduler or
// controller would refuse the file.
int ConfigCheck(const std::string& path, Io& io);

}  // namespace hopwise::cli
