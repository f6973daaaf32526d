// A C interface to simdjson. A document becomes a flat list of tokens: one call per document crosses the language
// border, and no C++ type or exception does.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    PERENNIAL_JSON_NULL,
    PERENNIAL_JSON_FALSE,
    PERENNIAL_JSON_TRUE,
    /// `bytes` are the number as it is written.
    PERENNIAL_JSON_NUMBER,
    /// `bytes` are unescaped UTF-8.
    PERENNIAL_JSON_STRING,
    PERENNIAL_JSON_NAME,
    PERENNIAL_JSON_ARRAY_START,
    PERENNIAL_JSON_ARRAY_END,
    PERENNIAL_JSON_OBJECT_START,
    PERENNIAL_JSON_OBJECT_END,
} perennial_json_kind;

typedef struct {
    const uint8_t *bytes;
    /// Length of `bytes`. For a start token: the number of tokens up to and including its end, so that the value can be
    /// skipped.
    uint32_t length;
    /// Where the token starts in the document.
    uint32_t offset;
    /// Where the name or value that starts here ends, its closing bracket or quotation mark included.
    uint32_t end;
    perennial_json_kind kind;
} perennial_json_token;

typedef enum {
    PERENNIAL_JSON_OK,
    PERENNIAL_JSON_EMPTY,
    PERENNIAL_JSON_NOT_UTF8,
    PERENNIAL_JSON_UNCLOSED_STRING,
    PERENNIAL_JSON_CONTROL_CHARACTER,
    PERENNIAL_JSON_BAD_STRING,
    PERENNIAL_JSON_BAD_NUMBER,
    PERENNIAL_JSON_BAD_WORD,
    PERENNIAL_JSON_BAD_STRUCTURE,
    PERENNIAL_JSON_INCOMPLETE,
    PERENNIAL_JSON_TRAILING,
    PERENNIAL_JSON_TOO_DEEP,
    /// Then there is one token, the second name.
    PERENNIAL_JSON_REPEATED_NAME,
    PERENNIAL_JSON_NO_MEMORY,
} perennial_json_result;

typedef struct perennial_json_parser perennial_json_parser;

/// NULL if there is no memory. `max_depth` is at most 1000, because code that builds a tree from the tokens recurses.
perennial_json_parser *perennial_json_parser_create(uint32_t max_depth, bool refuses_repeated_names);
void perennial_json_parser_destroy(perennial_json_parser *parser);

/// Reads one document of less than 4 GiB. The input is copied, because simdjson reads up to 64 bytes beyond its end and
/// most tokens point into it. Tokens and their bytes belong to the parser and are valid until its next call.
perennial_json_result perennial_json_parse(perennial_json_parser *parser, const uint8_t *bytes, size_t length);

const perennial_json_token *perennial_json_tokens(const perennial_json_parser *parser, size_t *count);

/// The document that the offsets refer to; it is valid as long as the tokens.
const uint8_t *perennial_json_text(const perennial_json_parser *parser);

/// After a failure: a byte at or shortly after which the document is wrong, or -1 if simdjson does not say or the
/// document ends too early.
int64_t perennial_json_fault_offset(const perennial_json_parser *parser);

/// Whether the loaded simdjson reads some documents as expected. This reader uses an internal part of it, which may change with any
/// version. The first call tries it.
bool perennial_json_works(void);

/// The version of the headers.
const char *perennial_json_simdjson_version(void);

#ifdef __cplusplus
}
#endif
