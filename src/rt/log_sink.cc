#include "rt/log_sink.h"

#include <algorithm>
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

// Bytes of the UTF-8 sequence that the text begins with; 0 when it begins with none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (length == 1) return 1;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  // Too long for what it says, a surrogate, or beyond the last code point.
  const bool wrong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
                     (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90);
  return wrong ? 0 : length;
}

// What is no UTF-8 is written as U+FFFD: another program reads the line.
void AppendJsonText(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length != 1) {
      out += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
      text.remove_prefix(std::max<size_t>(length, 1));
      continue;
    }
    const char c = text.front();
    text.remove_prefix(1);
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
