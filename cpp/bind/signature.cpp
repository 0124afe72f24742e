#include "signature.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace elastic_rank::bind {
namespace {

struct Spelling {
  std::string_view written;
  std::string_view canonical;
};

static_assert(sizeof(long) == 8, "`long` in a signature stands for int64");
constexpr std::array kSpellings = {
    Spelling{"void", "void"},        Spelling{"none", "void"},
    Spelling{"float", "float"},      Spelling{"float32", "float"},
    Spelling{"float32_t", "float"},  Spelling{"npy_float32", "float"},
    Spelling{"int64", "int64"},      Spelling{"int64_t", "int64"},
    Spelling{"npy_int64", "int64"},  Spelling{"npy_intp", "int64"},
    Spelling{"long", "int64"},       Spelling{"long int", "int64"},
    Spelling{"long long", "int64"},  Spelling{"long long int", "int64"},
    Spelling{"Py_ssize_t", "int64"}, Spelling{"ssize_t", "int64"},
    Spelling{"ptrdiff_t", "int64"},  Spelling{"intptr_t", "int64"},
};

std::string_view spelling_of(std::string_view written) {
  // Cython prefixes types that it takes from another module: __pyx_t_5numpy_float32_t.
  if (written.starts_with("__pyx_t_")) {
    for (const std::string_view ending : {"float32_t", "int64_t"}) {
      if (written.ends_with(ending)) written = ending;
    }
  }
  if (written.starts_with("std::")) written.remove_prefix(5);
  for (const Spelling& spelling : kSpellings) {
    if (spelling.written == written) return spelling.canonical;
  }
  return {};
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':';
}

/// Words before the first star but `const`, and the number of stars; `good` false on anything else.
struct Declaration {
  std::vector<std::string> words;
  std::size_t stars = 0;
  bool good = true;
};

Declaration parse(std::string_view text) {
  Declaration result;
  for (std::size_t i = 0; i < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[i])) != 0) {
      ++i;
    } else if (text[i] == '*') {
      ++result.stars;
      ++i;
    } else if (is_word(text[i])) {
      const std::size_t begin = i;
      while (i < text.size() && is_word(text[i])) ++i;
      const std::string word(text.substr(begin, i - begin));
      if (word != "const" && result.stars == 0) result.words.push_back(word);  // else: a name
    } else {
      result.good = false;
      return result;
    }
  }
  return result;
}

std::string joined(const std::vector<std::string>& words, std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += (i > 0 ? " " : "") + words[i];
  return text;
}

/// "const float *row" -> "float*", "int64_t n" -> "int64"; empty for what is no declaration.
std::string canonical_type(std::string_view text) {
  const Declaration declaration = parse(text);
  if (!declaration.good || declaration.words.empty()) return {};
  const std::size_t n = declaration.words.size();
  std::string name(spelling_of(joined(declaration.words, n)));
  // Without a star the last word may be the parameter's name.
  if (name.empty() && n > 1 && declaration.stars == 0) {
    name = spelling_of(joined(declaration.words, n - 1));
  }
  if (name.empty()) name = joined(declaration.words, n);
  return name + std::string(declaration.stars, '*');
}

}  // namespace

std::string canonical_signature(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  std::string_view result = text.substr(0, open);
  std::string_view rest = text.substr(close + 1);
  if (const std::size_t arrow = rest.find("->"); arrow != std::string_view::npos) {
    result = rest.substr(arrow + 2);
  }
  std::string canonical = canonical_type(result);
  if (canonical.empty()) return {};
  canonical += '(';
  const std::string_view parameters = text.substr(open + 1, close - open - 1);
  for (std::size_t begin = 0; begin <= parameters.size();) {
    const std::size_t comma = std::min(parameters.find(',', begin), parameters.size());
    const std::string type = canonical_type(parameters.substr(begin, comma - begin));
    if (type.empty()) return {};
    canonical += (begin > 0 ? "," : "") + type;
    begin = comma + 1;
  }
  return canonical + ')';
}

}  // namespace elastic_rank::bind
