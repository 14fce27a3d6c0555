// The virtual cluster's objects are JSON trees, and what reads them is spoken of without a prefix.
#pragma once

#include "api/json.h"

namespace hopwise::control {

using json::Annotation;
using json::Describe;
using json::Dump;
using json::Flag;
using json::Get;
using json::Json;
using json::Label;
using json::List;
using json::Member;
using json::Name;
using json::Namespace;
using json::Number;
using json::ParseJson;
using json::Path;
using json::Set;
using json::Text;
using json::Uid;
using json::Unset;

}  // namespace hopwise::control
