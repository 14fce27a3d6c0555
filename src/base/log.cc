#include "base/log.h"

#include <array>
#include <utility>

namespace hopwise {
namespace {

struct Target {
  LogSink sink;
  LogLevel threshold = LogLevel::kInfo;
};

// Built on first use, so that it is there for code that logs while statics are still being built.
Target& CurrentTarget() {
  static Target target;
  return target;
}

bool NeedsQuotes(const LogField& field) {
  if (!field.is_text) return false;
  if (field.value.empty()) return true;
  for (const char c : field.value) {
    if (c == ' ' || c == '"' || c == '=' || c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      return true;
    }
  }
  return false;
}

void AppendQuoted(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  static constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};
  return kNames.at(static_cast<size_t>(level));
}

LogSink SetLogSink(LogSink sink, LogLevel threshold) {
  Target& target = CurrentTarget();
  target.threshold = threshold;
  return std::exchange(target.sink, std::move(sink));
}

bool LogEnabled(LogLevel level) {
  const Target& target = CurrentTarget();
  return target.sink != nullptr && level >= target.threshold;
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!LogEnabled(level)) return;
  CurrentTarget().sink(LogRecord{level, event, std::span(fields.begin(), fields.size())});
}

std::string FormatLogLine(const LogRecord& record) {
  std::string line(record.event);
  for (const LogField& field : record.fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (NeedsQuotes(field)) {
      AppendQuoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line;
}

}  // namespace hopwise
