#include "CTOML.h"

#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

struct Misread {};

[[noreturn]] void misread() { throw Misread(); }

} // namespace

// toml++ asserts its assumptions or, in release builds, makes the compiler rely on them. Some texts violate them, so they are always checked here.
#undef NDEBUG
#define TOML_ASSERT(expression) ((expression) ? static_cast<void>(0) : misread())
#define TOML_EXCEPTIONS 0
#define TOML_UNRELEASED_FEATURES 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

static_assert(TOML_MAX_NESTED_VALUES == CTOML_DEEPEST_VALUE);

namespace {

struct Entry {
  int32_t parent;
  int32_t kind;
  std::string key;
  std::string text;
  uint32_t line;
  uint32_t column;
};

int32_t kind_of(const toml::node &node) {
  switch (node.type()) {
  case toml::node_type::table: return CTOML_TABLE;
  case toml::node_type::array: return CTOML_ARRAY;
  case toml::node_type::string: return CTOML_STRING;
  case toml::node_type::integer: return CTOML_INTEGER;
  case toml::node_type::floating_point: return CTOML_FLOAT;
  case toml::node_type::boolean: return CTOML_BOOLEAN;
  default: return CTOML_TIME;
  }
}

std::string text_of(const toml::node &node) {
  if (auto value = node.as_string()) return value->get();
  if (auto value = node.as_integer()) return std::to_string(value->get());
  if (auto value = node.as_boolean()) return value->get() ? "true" : "false";
  return {};
}

} // namespace

struct ctoml_document {
  std::vector<Entry> entries;
  std::string error;
  bool has_failed = false;
  uint32_t line = 0;
  uint32_t column = 0;

  void fail(std::string message, uint32_t at_line, uint32_t at_column) {
    entries.clear();
    error = std::move(message);
    has_failed = true;
    line = at_line;
    column = at_column;
  }

  // Checks for control characters, which are never allowed, and limits the number of dots in a line. The parser limits nested values, but not the parts of
  // a key, for which it makes nested tables that are freed recursively.
  bool is_harmless(std::string_view text) {
    uint32_t number = 1;
    while (!text.empty()) {
      auto end = text.find('\n');
      auto row = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      auto first = row.find_first_not_of(" \t");
      bool is_comment = first != std::string_view::npos && row[first] == '#';
      size_t dots = 0;
      for (size_t place = 0; place < row.size(); place++) {
        auto byte = static_cast<unsigned char>(row[place]);
        auto column = static_cast<uint32_t>(place + 1);
        if ((byte < 0x20 && byte != '\t' && byte != '\r') || byte == 0x7F) {
          fail("there is a control character here; leave it out", number, column);
          return false;
        }
        if (byte == '.' && !is_comment && ++dots > CTOML_MOST_DOTS) {
          fail("there are more than " + std::to_string(CTOML_MOST_DOTS) + " dots in this line; write it on several", number, column);
          return false;
        }
      }
      number++;
    }
    return true;
  }

  void parse(std::string_view text) {
    if (text.size() > CTOML_LARGEST_FILE) {
      return fail("the file is longer than " + std::to_string(CTOML_LARGEST_FILE) + " bytes", 0, 0);
    }
    if (!is_harmless(text)) return;
    auto result = toml::parse(text);
    if (!result) {
      auto &problem = result.error();
      auto place = problem.source().begin;
      return fail(std::string(problem.description()), place.line, place.column);
    }
    list(result.table());
  }

  // Level by level, so that it needs no recursion.
  void list(const toml::table &root) {
    std::vector<std::pair<const toml::node *, int32_t>> containers{{&root, -1}};
    for (size_t next = 0; next < containers.size(); next++) {
      auto [container, parent] = containers[next];
      auto add = [&, parent = parent](std::string key, toml::source_position place, const toml::node &node) {
        entries.push_back({parent, kind_of(node), std::move(key), text_of(node), place.line, place.column});
        if (node.is_table() || node.is_array()) containers.push_back({&node, static_cast<int32_t>(entries.size() - 1)});
      };
      if (auto table = container->as_table()) {
        for (auto &&[key, node] : *table) add(std::string(key.str()), key.source().begin, node);
      } else if (auto array = container->as_array()) {
        for (auto &&node : *array) add({}, node.source().begin, node);
      }
    }
  }
};

ctoml_document *ctoml_parse(const char *bytes, size_t length) {
  auto document = new (std::nothrow) ctoml_document;
  if (document == nullptr) return nullptr;
  try {
    document->parse(length == 0 ? std::string_view() : std::string_view(bytes, length));
  } catch (const Misread &) {
    document->fail("this isn't TOML", 0, 0);
  } catch (...) {
    delete document;
    return nullptr;
  }
  return document;
}

void ctoml_free(ctoml_document *document) { delete document; }

const char *ctoml_error(const ctoml_document *document, uint32_t *line, uint32_t *column) {
  if (!document->has_failed) return nullptr;
  *line = document->line;
  *column = document->column;
  return document->error.c_str();
}

size_t ctoml_count(const ctoml_document *document) { return document->entries.size(); }

ctoml_entry ctoml_entry_at(const ctoml_document *document, size_t index) {
  auto &entry = document->entries[index];
  return {entry.parent,      entry.kind, entry.key.data(), entry.key.size(), entry.text.data(),
          entry.text.size(), entry.line, entry.column};
}
