#include "data/split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "base/error.h"

namespace headway::data {
namespace {

struct CodePoints {
  std::uint32_t first, last;
};
#include "data/unicode_classes.inc"

constexpr std::uint32_t kCodePoints = 0x110000;

// A byte a code point: 1.1 MB, of which a text touches a few pages.
const std::vector<CharClass>& classes() {
  static const std::vector<CharClass> table = [] {
    std::vector<CharClass> t(kCodePoints, CharClass::other);
    const auto fill = [&](const auto& ranges, CharClass value) {
      for (const CodePoints& r : ranges)
        for (std::uint32_t c = r.first; c <= r.last; ++c) t[c] = value;
    };
    fill(kLetters, CharClass::letter);
    fill(kNumbers, CharClass::number);
    fill(kWhiteSpace, CharClass::space);
    t['\r'] = t['\n'] = CharClass::newline;
    return t;
  }();
  return table;
}

const CharClass* const kClasses = classes().data();

constexpr const char* kNanochat =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";

struct NamedPattern {
  const char* name;
  const char* pattern;
};
constexpr NamedPattern kNamed[] = {
    {"nanochat", kNanochat},
    {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"cl100k_base",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"o200k_base",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

// The code point at p and its length in bytes; the text is known to be valid.
struct Char {
  std::uint32_t code;
  int bytes;
};
inline Char char_at(const char* p) {
  const auto b = [p](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])); };
  const std::uint32_t lead = b(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | (b(1) & 0x3f), 2};
  if (lead < 0xf0) return {(lead & 0x0f) << 12 | (b(1) & 0x3f) << 6 | (b(2) & 0x3f), 3};
  return {(lead & 0x07) << 18 | (b(1) & 0x3f) << 12 | (b(2) & 0x3f) << 6 | (b(3) & 0x3f), 4};
}

// The end of the run of characters of class C that starts at p.
template <CharClass C>
inline const char* run_end(const char* p, const char* end) {
  while (p < end) {
    const Char c = char_at(p);
    if (kClasses[c.code] != C) break;
    p += c.bytes;
  }
  return p;
}

// The end of an English contraction whose apostrophe is at p, or p when there is none. Caseless matching by
// Unicode also takes the long s (U+017F) for an s.
inline const char* contraction_end(const char* p, const char* end) {
  if (end - p < 2) return p;
  const char first = static_cast<char>(p[1] | 0x20);
  if (static_cast<unsigned char>(p[1]) < 0x80) {
    if (first == 's' || first == 'd' || first == 'm' || first == 't') return p + 2;
    if (end - p < 3 || static_cast<unsigned char>(p[2]) >= 0x80) return p;
    const char second = static_cast<char>(p[2] | 0x20);
    if ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e')) return p + 3;
    return p;
  }
  return end - p >= 3 && p[1] == '\xc5' && p[2] == '\xbf' ? p + 3 : p;
}

// Any run of characters that are neither space, letter nor number, then all newlines.
inline const char* symbols_end(const char* p, const char* end) {
  p = run_end<CharClass::other>(p, end);
  while (p < end && (*p == '\r' || *p == '\n')) ++p;
  return p;
}

// White space starts at p and the alternatives that take one more character don't apply: up to the last
// newline of the run, else up to the character before the next word, else to the end.
inline const char* spaces_end(const char* p, const char* end) {
  const char* after_newline = nullptr;
  const char* last = p;
  const char* q = p;
  while (q < end) {
    const Char c = char_at(q);
    const CharClass k = kClasses[c.code];
    if (k != CharClass::space && k != CharClass::newline) break;
    last = q;
    q += c.bytes;
    if (k == CharClass::newline) after_newline = q;
  }
  if (after_newline) return after_newline;
  if (q == end) return q;
  return last == p ? q : last;
}

// The alternatives of nanochat's pattern, in its order, decided by the class of the first one or two
// characters.
const char* scan_nanochat(const char* p, const char* end) {
  const Char c = char_at(p);
  const char* const after = p + c.bytes;
  switch (kClasses[c.code]) {
    case CharClass::letter:
      return run_end<CharClass::letter>(after, end);
    case CharClass::number: {
      if (after == end) return after;
      const Char d = char_at(after);
      return kClasses[d.code] == CharClass::number ? after + d.bytes : after;
    }
    case CharClass::newline:
      return spaces_end(p, end);
    case CharClass::space: {
      if (after == end) return after;
      const Char d = char_at(after);
      const CharClass next = kClasses[d.code];
      if (next == CharClass::letter) return run_end<CharClass::letter>(after + d.bytes, end);
      if (next == CharClass::other && c.code == ' ') return symbols_end(after, end);
      return spaces_end(p, end);
    }
    case CharClass::other: {
      if (c.code == '\'') {
        const char* const q = contraction_end(p, end);
        if (q != p) return q;
      }
      if (after < end) {
        const Char d = char_at(after);
        if (kClasses[d.code] == CharClass::letter) return run_end<CharClass::letter>(after + d.bytes, end);
      }
      return symbols_end(p, end);
    }
  }
  return after;
}

// PCRE2's \s also takes U+180E, which is no White_Space; so \s and \S are spelled out.
std::string with_white_space_spelled_out(const std::string& pattern) {
  static const std::string set =
      R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char what = pattern[++i];
      if (what == 's') {
        out += in_class ? set : "[" + set + "]";
      } else if (what == 'S' && !in_class) {
        out += "[^" + set + "]";
      } else {
        out += {c, what};
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

}  // namespace

CharClass class_of(char32_t code_point) {
  return code_point < kCodePoints ? kClasses[code_point] : CharClass::other;
}

struct Splitter::Data {
  std::string pattern;
  bool nanochat = false;
  pcre2_code* code = nullptr;
  ~Data() { pcre2_code_free(code); }
};

Splitter::Splitter(const std::string& pattern) : data_(std::make_unique<Data>()) {
  data_->pattern = pattern.empty() ? kNanochat : pattern;
  for (const NamedPattern& named : kNamed)
    if (pattern == named.name) data_->pattern = named.pattern;
  data_->nanochat = data_->pattern == kNanochat;
  if (data_->nanochat) return;
  const std::string spelled = with_white_space_spelled_out(data_->pattern);
  int error = 0;
  PCRE2_SIZE place = 0;
  data_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                              PCRE2_UTF | PCRE2_UCP, &error, &place, nullptr);
  if (!data_->code) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    throw InputError("split pattern '" + data_->pattern + "'", reinterpret_cast<const char*>(text.data()),
                     "Give a PCRE2 pattern, or one of the names nanochat, gpt2, cl100k_base, o200k_base");
  }
  pcre2_jit_compile(data_->code, PCRE2_JIT_COMPLETE);  // without it matching is slower, not different
}

Splitter::~Splitter() = default;
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;

const std::string& Splitter::pattern() const { return data_->pattern; }

std::vector<std::string> Splitter::pattern_names() {
  std::vector<std::string> names;
  for (const NamedPattern& named : kNamed) names.emplace_back(named.name);
  return names;
}

struct Splitter::Pieces::Match {
  const pcre2_code* code;
  const char* text;
  const std::string* pattern;
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
  const char* found = nullptr;  // a match that starts after an unmatched stretch: [found, found_end)
  const char* found_end = nullptr;

  explicit Match(const Splitter::Data& splitter, const char* text)
      : code(splitter.code),
        text(text),
        pattern(&splitter.pattern),
        data(pcre2_match_data_create_from_pattern(code, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(32 << 10, 64 << 20, nullptr)) {
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Match() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Splitter::Pieces::Pieces(const Splitter& splitter, std::string_view text)
    : scan_(splitter.data_->nanochat ? scan_nanochat : nullptr),
      at_(text.data()),
      end_(text.data() + text.size()) {
  if (!scan_) match_ = std::make_unique<Match>(*splitter.data_, text.data());
}

Splitter::Pieces::~Pieces() = default;

const char* Splitter::Pieces::match() {
  Match& m = *match_;
  if (at_ == m.found) return m.found_end;
  const auto bytes = static_cast<PCRE2_SIZE>(end_ - m.text);
  auto from = static_cast<PCRE2_SIZE>(at_ - m.text);
  while (true) {
    const int result = pcre2_match(m.code, reinterpret_cast<PCRE2_SPTR>(m.text), bytes, from,
                                   PCRE2_NO_UTF_CHECK, m.data, m.context);
    if (result == PCRE2_ERROR_NOMATCH) return end_;
    if (result < 0) {
      std::array<PCRE2_UCHAR, 256> text{};
      pcre2_get_error_message(result, text.data(), text.size());
      throw InputError(
          "byte " + std::to_string(from) + " of the text",
          "the split pattern gives up: " + std::string(reinterpret_cast<const char*>(text.data())),
          "Use a pattern that backtracks less: " + *m.pattern);
    }
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(m.data);
    if (bounds[1] <= bounds[0]) {  // an empty match: look on behind the next character
      if (bounds[0] >= bytes) return end_;
      from = bounds[0] + static_cast<PCRE2_SIZE>(char_at(m.text + bounds[0]).bytes);
      continue;
    }
    m.found = m.text + bounds[0];
    m.found_end = m.text + bounds[1];
    return m.found == at_ ? m.found_end : m.found;
  }
}

}  // namespace headway::data
