// The virtual cluster's objects are JSON trees, and what reads them is spoken of without a prefix.
#pragma once

#include "api/json.h"

namespace hopwise::sim {

using json::Json;
using json::Path;
using json::ParseJson;
using json::Dump;
using json::Get;
using json::Text;
using json::Number;
using json::Flag;
using json::List;
using json::Member;
using json::Set;
using json::Unset;
using json::Annotation;
using json::Label;
using json::Name;
using json::Namespace;
using json::Uid;
using json::Describe;

}  // namespace hopwise::sim
