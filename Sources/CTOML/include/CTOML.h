// Reads TOML with toml++, and returns the contents as a flat list. No exception leaves it, and no recursion is deeper than its limits.
#ifndef SLUICE_CTOML_H
#define SLUICE_CTOML_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The limits: the size of a file, the depth of nested values, and the dots in a line. The last one limits how deep keys nest, and is more than any list
// of addresses needs.
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

// Valid until the document is freed. Texts are UTF-8 with their lengths, not terminated.
typedef struct {
  // The index of the enclosing entry, which is always lower; -1 for the document itself.
  int32_t parent;
  int32_t kind;
  // Empty for an element of an array.
  const char *key;
  size_t key_length;
  // The value of a string, integer or boolean.
  const char *text;
  size_t text_length;
  // The position of the key or, for an element, of the value; both from 1 on, or 0 if unknown.
  uint32_t line;
  uint32_t column;
} ctoml_entry;

typedef struct ctoml_document ctoml_document;

// Reads a text. Returns NULL if there is no memory left. The bytes aren't used afterwards.
ctoml_document *ctoml_parse(const char *bytes, size_t length);
void ctoml_free(ctoml_document *document);

// The error as a terminated string, and its position; NULL if the text was read without one.
const char *ctoml_error(const ctoml_document *document, uint32_t *line, uint32_t *column);

// 0 if there is an error.
size_t ctoml_count(const ctoml_document *document);
// The index must be below the count.
ctoml_entry ctoml_entry_at(const ctoml_document *document, size_t index);

#ifdef __cplusplus
}
#endif

#endif
