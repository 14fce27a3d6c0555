#include "control/names.h"

#include <fmt/format.h>

namespace hopwise::control {
namespace {

// k8s.io/apimachinery/pkg/util/rand: no vowels, no digits that look like letters.
constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";

// The finaliser of SplitMix64: spreads what FNV leaves close together.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::string Letters(uint64_t hash, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kAlphabet[hash % kAlphabet.size()];
    hash /= kAlphabet.size();
  }
  return text;
}

}  // namespace

uint64_t HashOf(std::initializer_list<std::string_view> parts, uint64_t number) {
  constexpr uint64_t kPrime = 0x100000001b3ULL;
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::string_view part : parts) {
    for (const char c : part) {
      hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
    }
    hash = (hash ^ 0xffU) * kPrime;  // no byte of UTF-8: parts stay apart
  }
  return Mix(hash ^ Mix(number + 0x9e3779b97f4a7c15ULL));
}

std::string MakeUid(std::string_view kind, std::string_view ns, std::string_view name,
                    uint64_t incarnation) {
  const uint64_t a = HashOf({"uid", kind, ns, name}, incarnation);
  const uint64_t b = HashOf({"uid-low", kind, ns, name}, incarnation);
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffffU,
                     a & 0xfffU, 0x8000U | (b >> 50), b & 0xffffffffffffULL);
}

std::string MakeSuffix(uint64_t hash) { return Letters(hash, 5); }

std::string TemplateHash(const Json& pod_template) {
  return Letters(HashOf({"template", Dump(pod_template)}), 10);
}

std::string Hex(uint64_t value) { return fmt::format("{:016x}", value); }

std::string Joined(std::string_view name, std::string_view suffix, size_t limit) {
  const size_t room = limit > suffix.size() ? limit - suffix.size() : 0;
  return std::string(name.substr(0, room)) + std::string(suffix);
}

}  // namespace hopwise::control
