// Reads TOML with toml++, and tells what is in it as a flat list. No exception leaves it, and nothing in it recurs deeper than its limits.
#ifndef SLUICE_CTOML_H
#define SLUICE_CTOML_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What is refused: longer files; values within values; and more dots in a line than any list of addresses has, which bounds how deep its
// keys nest.
enum {
  CTOML_LARGEST_FILE = 1 << 20,
  CTOML_DEEPEST_VALUE = 16,
  CTOML_MOST_DOTS = 128,
};

enum {
  CTOML_TABLE,
  CTOML_ARRAY,
  CTOML_STRING,
  CTOML_INTEGER,
  CTOML_FLOAT,
  CTOML_BOOLEAN,
  CTOML_TIME,
};

// Valid until the document is freed. Texts are UTF-8, with their lengths, and not terminated.
typedef struct {
  // The entry that it is in; -1 for the document itself. Always before this one in the list.
  int32_t parent;
  int32_t kind;
  // Empty for an element of an array.
  const char *key;
  size_t key_length;
  // Of strings, integers and booleans.
  const char *text;
  size_t text_length;
  // Of the key or, for an element, of the value; both from 1 on, or 0 where it isn't known.
  uint32_t line;
  uint32_t column;
} ctoml_entry;

typedef struct ctoml_document ctoml_document;

// Reads a text. NULL when there is no memory left. The bytes may go afterwards.
ctoml_document *ctoml_parse(const char *bytes, size_t length);
void ctoml_free(ctoml_document *document);

// What is wrong with it, terminated, and where; NULL when it was read.
const char *ctoml_error(const ctoml_document *document, uint32_t *line, uint32_t *column);

// None when there is an error.
size_t ctoml_count(const ctoml_document *document);
// The index must be below the count.
ctoml_entry ctoml_entry_at(const ctoml_document *document, size_t index);

#ifdef __cplusplus
}
#endif

#endif
