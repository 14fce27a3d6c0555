#include "rt/log_sink.h"

#include <string>
#include <string_view>

#include <unistd.h>

#include "base/time.h"
#include "rt/clock.h"

namespace hopwise::rt {
namespace {

// "2026-01-02T03:04:05.678Z": the micro form cut to milliseconds.
std::string Stamp() {
  std::string text = FormatRfc3339Micro(WallNow());
  text.replace(text.size() - 4, 4, "Z");
  return text;
}

void AppendJsonText(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string JsonLine(const LogRecord& record) {
  std::string line = R"({"time":")" + Stamp() + R"(","level":")";
  line += LogLevelName(record.level);
  line += R"(","event":)";
  AppendJsonText(line, record.event);
  for (const LogField& field : record.fields) {
    line += ',';
    AppendJsonText(line, field.key);
    line += ':';
    if (field.is_text) {
      AppendJsonText(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line + "}\n";
}

std::string TextLine(const LogRecord& record) {
  std::string line = Stamp() + ' ' + std::string(LogLevelName(record.level));
  line.append(line.size() < 33 ? 33 - line.size() : 1, ' ');
  return line + FormatLogLine(record) + '\n';
}

}  // namespace

LogSink MakeLogSink(LogFormat format, int fd) {
  return [format, fd](const LogRecord& record) {
    std::string line = format == LogFormat::kJson ? JsonLine(record) : TextLine(record);
    // A log that cannot be written is no reason to stop scheduling.
    static_cast<void>(write(fd, line.data(), line.size()) >= 0);
  };
}

}  // namespace hopwise::rt
