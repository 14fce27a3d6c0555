// Structured log records: a level, an event name and fields. The program injects where they go;
// nothing here writes anywhere, so that the core stays free of I/O.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace hopwise {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
// "debug", "info", "warning", "error".
std::string_view LogLevelName(LogLevel level);

// A field's value as text. Whether it was text or a number decides only about quotes in the sink.
struct LogField {
  LogField(std::string_view k, std::string_view v) : key(k), value(v), is_text(true) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v), is_text(true) {}
  LogField(std::string_view k, const char* v) : key(k), value(v), is_text(true) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  template <std::integral Number>
  LogField(std::string_view k, Number v) : key(k), value(std::to_string(v)) {}

  std::string_view key;
  std::string value;
  bool is_text = false;
};

// What a sink is handed; the views are good during the call only.
struct LogRecord {
  LogLevel level = LogLevel::kInfo;
  std::string_view event;
  std::span<const LogField> fields;
};
using LogSink = std::function<void(const LogRecord&)>;

// Replaces the sink and returns the one before; records below `threshold` are dropped. Without a
// sink every record is dropped. Call it before other threads start: the pair is not guarded.
LogSink SetLogSink(LogSink sink, LogLevel threshold = LogLevel::kInfo);

// True when a record of this level would reach a sink; guards fields that are costly to make.
bool LogEnabled(LogLevel level);
// `event` is a fixed name in snake_case; what varies belongs into fields. The sink may be called
// from any thread.
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// "event key=value key="two words"": the plain-text form of a record, on one line whatever it
// holds.
std::string FormatLogLine(const LogRecord& record);

}  // namespace hopwise
