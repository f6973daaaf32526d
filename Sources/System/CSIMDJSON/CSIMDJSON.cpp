#include "RepeatedNames.h"

#include <cstring>
#include <memory>
#include <new>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <vector>

using namespace simdjson;

static_assert(
    SIMDJSON_VERSION_MAJOR == 3 && (SIMDJSON_VERSION_MINOR == 0 || SIMDJSON_VERSION_MINOR == 12),
    "simdjson is neither 3.0 nor 3.12: this file uses its internal parser. Run the tests of JSON and `make fuzz TARGET=json` with the "
    "new version, then name it here.");

/// Only the parts of simdjson that scan with vector instructions, which it selects at run time, are used: the index of
/// a document's tokens (making it checks UTF-8, quotation marks and control characters) and the unescaping of strings.
/// The walk is our own: simdjson's readers are templates, so they would be compiled here for the oldest processor and
/// take four times as long.
struct perennial_json_parser {
    std::unique_ptr<internal::dom_parser_implementation> simd;
    std::vector<uint8_t> padded;
    std::vector<uint8_t> unescaped;
    /// As many as the largest document had; the first `token_count` belong to this document.
    std::vector<perennial_json_token> tokens;
    size_t token_count = 0;
    size_t length = 0;
    uint32_t max_depth = 0;
    bool refuses_repeated_names = false;
    int64_t fault_offset = -1;
};

namespace {

bool is_blank(uint8_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether all of the next eight bytes are digits.
bool are_digits(const char *text) {
    uint64_t word;
    memcpy(&word, text, sizeof word);
    word ^= 0x3030303030303030;
    return ((word | (word + 0x7676767676767676)) & 0x8080808080808080) == 0;
}

/// The grammar of RFC 8259. simdjson's own number readers refuse numbers that do not fit a machine number; here the
/// text is kept.
bool is_number(std::string_view text) {
    size_t at = 0;
    auto digits = [&] {
        size_t start = at;
        while (at + 8 <= text.size() && are_digits(text.data() + at)) at += 8;
        while (at < text.size() && is_digit(text[at])) at++;
        return at > start;
    };
    if (at < text.size() && text[at] == '-') at++;
    if (at < text.size() && text[at] == '0') at++;
    else if (!digits()) return false;
    if (at < text.size() && text[at] == '.') {
        at++;
        if (!digits()) return false;
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < text.size() && (text[at] == '+' || text[at] == '-')) at++;
        if (!digits()) return false;
    }
    return at == text.size();
}

/// Newer versions ask whether half of a surrogate pair is replaced. It is an error, as in 3.0. The last argument prefers the first form.
template <typename Parser>
auto unescape(const Parser &parser, const uint8_t *from, uint8_t *to, int) -> decltype(parser.parse_string(from, to)) {
    return parser.parse_string(from, to);
}
template <typename Parser>
auto unescape(const Parser &parser, const uint8_t *from, uint8_t *to, long) -> decltype(parser.parse_string(from, to, false)) {
    return parser.parse_string(from, to, false);
}

perennial_json_result meaning_of(error_code code) {
    switch (code) {
    case SUCCESS: return PERENNIAL_JSON_OK;
    case EMPTY: return PERENNIAL_JSON_EMPTY;
    case UTF8_ERROR: return PERENNIAL_JSON_NOT_UTF8;
    case UNCLOSED_STRING: return PERENNIAL_JSON_UNCLOSED_STRING;
    case UNESCAPED_CHARS: return PERENNIAL_JSON_CONTROL_CHARACTER;
    case MEMALLOC: return PERENNIAL_JSON_NO_MEMORY;
    default: return PERENNIAL_JSON_BAD_STRUCTURE;
    }
}

/// Goes through simdjson's index, which has the place of each bracket, comma and colon and of the first byte of each
/// other token. After its last entry comes the document's length, where the text is 0. That matches no token, so no
/// test for the end is needed. It is a loop, not a recursion: then both places stay in registers, which saves a quarter
/// of the time.
class Walk {
  public:
    explicit Walk(perennial_json_parser &parser)
        : parser(parser), text(parser.padded.data()), entry(parser.simd->structural_indexes.get()),
          token(parser.tokens.data()), backslash(text), unescaped(parser.unescaped.data()) {}

    perennial_json_result document() {
        for (;;) {
            // A value, or the bracket that opens one.
            bool opens = here() == '{' || here() == '[';
            if (auto fault = opens ? open() : single()) return fault;
            if (!opens || here() == closing) {
                while (container && here() == closing) {
                    if (auto fault = close()) return fault;
                }
                if (!container) break;
                if (here() != ',') return fail(PERENNIAL_JSON_BAD_STRUCTURE);
                entry++;
            }
            if (closing == '}') {
                if (auto fault = name()) return fault;
            }
        }
        if (*entry < parser.length) return fail(PERENNIAL_JSON_TRAILING);
        parser.token_count = size_t(token - parser.tokens.data());
        return PERENNIAL_JSON_OK;
    }

  private:
    perennial_json_parser &parser;
    const uint8_t *const text;
    /// The next entry of the index.
    const uint32_t *entry;
    /// Where the next token is written.
    perennial_json_token *token;
    /// The innermost open container, and the bracket that will close it. Until it is closed, its `length` leads back to
    /// the container around it.
    perennial_json_token *container = nullptr;
    uint8_t closing = 0;
    uint32_t depth = 0;
    /// The first backslash that is not before the string read last.
    const uint8_t *backslash;
    uint8_t *unescaped;

    uint8_t here() const { return text[*entry]; }

    /// An error at the end means that the document ended too early.
    perennial_json_result fail(perennial_json_result result) const {
        if (*entry >= parser.length) return PERENNIAL_JSON_INCOMPLETE;
        parser.fault_offset = *entry;
        return result;
    }

    void add(perennial_json_kind kind, const uint8_t *bytes, uint32_t length, uint32_t end) {
        *token++ = {bytes, length, *entry++, end, kind};
    }

    perennial_json_result open() {
        if (depth == parser.max_depth) return fail(PERENNIAL_JSON_TOO_DEEP);
        depth++;
        bool is_object = here() == '{';
        closing = is_object ? '}' : ']';
        auto outer = container;
        container = token;
        add(is_object ? PERENNIAL_JSON_OBJECT_START : PERENNIAL_JSON_ARRAY_START, nullptr,
            outer ? uint32_t(container - outer) : 0, 0);
        return PERENNIAL_JSON_OK;
    }

    perennial_json_result close() {
        bool is_object = closing == '}';
        auto outer = container->length > 0 ? container - container->length : nullptr;
        container->end = *entry + 1;
        container->length = uint32_t(token + 1 - container);
        add(is_object ? PERENNIAL_JSON_OBJECT_END : PERENNIAL_JSON_ARRAY_END, nullptr, 0, container->end);
        if (is_object && parser.refuses_repeated_names) {
            if (auto repeated = perennial::repeated_name(container)) {
                parser.fault_offset = repeated->offset;
                parser.tokens[0] = *repeated;
                parser.token_count = 1;
                return PERENNIAL_JSON_REPEATED_NAME;
            }
        }
        depth--;
        container = outer;
        if (outer) closing = outer->kind == PERENNIAL_JSON_OBJECT_START ? '}' : ']';
        return PERENNIAL_JSON_OK;
    }

    perennial_json_result name() {
        if (here() != '"') return fail(PERENNIAL_JSON_BAD_STRUCTURE);
        if (auto fault = string(PERENNIAL_JSON_NAME)) return fault;
        if (here() != ':') return fail(PERENNIAL_JSON_BAD_STRUCTURE);
        entry++;
        return PERENNIAL_JSON_OK;
    }

    /// A value that contains no others.
    perennial_json_result single() {
        if (here() == '"') return string(PERENNIAL_JSON_STRING);
        if (here() == 0) return fail(PERENNIAL_JSON_BAD_WORD);
        uint32_t end = end_of_token();
        std::string_view word(reinterpret_cast<const char *>(text + *entry), end - *entry);
        perennial_json_kind kind;
        if (is_number(word)) kind = PERENNIAL_JSON_NUMBER;
        else if (word == "null") kind = PERENNIAL_JSON_NULL;
        else if (word == "true") kind = PERENNIAL_JSON_TRUE;
        else if (word == "false") kind = PERENNIAL_JSON_FALSE;
        else if (strchr("]},:", word.front())) return fail(PERENNIAL_JSON_BAD_STRUCTURE);
        else if (word.front() == '-' || is_digit(word.front())) return fail(PERENNIAL_JSON_BAD_NUMBER);
        else return fail(PERENNIAL_JSON_BAD_WORD);
        add(kind, text + *entry, end - *entry, end);
        return PERENNIAL_JSON_OK;
    }

    /// The index has made sure that the string ends with a quotation mark.
    perennial_json_result string(perennial_json_kind kind) {
        auto start = text + *entry;
        uint32_t end = end_of_token();
        if (backslash < start) backslash = find_backslash(start);
        if (backslash >= text + end) {
            add(kind, start + 1, end - *entry - 2, end);
            return PERENNIAL_JSON_OK;
        }
        auto bytes = unescaped;
        unescaped = unescape(*parser.simd, start + 1, bytes, 0);
        if (!unescaped) return fail(PERENNIAL_JSON_BAD_STRING);
        add(kind, bytes, uint32_t(unescaped - bytes), end);
        return PERENNIAL_JSON_OK;
    }

    /// Between a token and the next there are only blanks.
    uint32_t end_of_token() const {
        uint32_t end = entry[1];
        while (is_blank(text[end - 1])) end--;
        return end;
    }

    const uint8_t *find_backslash(const uint8_t *start) const {
        auto end = text + parser.length;
        auto found = static_cast<const uint8_t *>(memchr(start, '\\', size_t(end - start)));
        return found ? found : end;
    }
};

/// Reserves space for everything that the walk writes, so that it need not check: a token for each entry of the index,
/// and as many bytes for strings as the document has, because unescaping never makes a string longer.
perennial_json_result parse(perennial_json_parser &parser, const uint8_t *bytes, size_t length) {
    if (length == 0) return PERENNIAL_JSON_EMPTY;
    parser.padded.resize(length + SIMDJSON_PADDING);
    memcpy(parser.padded.data(), bytes, length);
    memset(parser.padded.data() + length, 0, SIMDJSON_PADDING);
    if (parser.unescaped.size() < parser.padded.size()) parser.unescaped.resize(parser.padded.size());

    error_code code = SUCCESS;
    // The depth is for simdjson's readers, which are not used.
    if (!parser.simd) code = get_active_implementation()->create_dom_parser_implementation(length, 1, parser.simd);
    else if (parser.simd->capacity() < length) code = parser.simd->set_capacity(parser.padded.capacity());
    if (!code) code = parser.simd->stage1(parser.padded.data(), length, stage1_mode::regular);
    if (code) return meaning_of(code);
    auto count = parser.simd->n_structural_indexes;
    parser.simd->structural_indexes[count] = uint32_t(length);
    if (parser.tokens.size() < count) parser.tokens.resize(count);
    return Walk(parser).document();
}

} // namespace

perennial_json_parser *perennial_json_parser_create(uint32_t max_depth, bool refuses_repeated_names) {
    auto parser = new (std::nothrow) perennial_json_parser;
    if (parser) {
        parser->max_depth = max_depth < 1000 ? max_depth : 1000;
        parser->refuses_repeated_names = refuses_repeated_names;
    }
    return parser;
}

void perennial_json_parser_destroy(perennial_json_parser *parser) { delete parser; }

perennial_json_result perennial_json_parse(perennial_json_parser *parser, const uint8_t *bytes, size_t length) {
    parser->token_count = 0;
    parser->length = length;
    parser->fault_offset = -1;
    // Only memory can run out: every simdjson call above returns its error.
    try {
        return parse(*parser, bytes, length);
    } catch (...) {
        parser->token_count = 0;
        return PERENNIAL_JSON_NO_MEMORY;
    }
}

const perennial_json_token *perennial_json_tokens(const perennial_json_parser *parser, size_t *count) {
    *count = parser->token_count;
    return parser->tokens.data();
}

const uint8_t *perennial_json_text(const perennial_json_parser *parser) { return parser->padded.data(); }

int64_t perennial_json_fault_offset(const perennial_json_parser *parser) { return parser->fault_offset; }

static bool tries_well() {
    std::unique_ptr<perennial_json_parser> parser(perennial_json_parser_create(3, true));
    auto parse = [&](std::string_view text) {
        return perennial_json_parse(parser.get(), reinterpret_cast<const uint8_t *>(text.data()), text.size());
    };
    auto is = [&](size_t token, perennial_json_kind kind, std::string_view bytes) {
        auto &found = parser->tokens[token];
        return found.kind == kind && found.length == bytes.size() && !memcmp(found.bytes, bytes.data(), bytes.size());
    };
    // Longer than one block of 64 bytes, and with a backslash at a block's end.
    std::string long_text(63, 'x');
    std::string text = "{\"a\":[1,-2.5e3,\"\\u00e9\\n\",true,null],\"b\":{},\"c\":\"" + long_text + "\\\"\"}";
    return parser && parse(text) == PERENNIAL_JSON_OK && parser->token_count == 15
        && is(1, PERENNIAL_JSON_NAME, "a") && is(3, PERENNIAL_JSON_NUMBER, "1")
        && is(4, PERENNIAL_JSON_NUMBER, "-2.5e3") && is(5, PERENNIAL_JSON_STRING, "\u00e9\n")
        && is(13, PERENNIAL_JSON_STRING, long_text + "\"") && parse("{\"a\":1,}") == PERENNIAL_JSON_BAD_STRUCTURE
        && parse("\"\xff\"") == PERENNIAL_JSON_NOT_UTF8 && parse("[\"a]") == PERENNIAL_JSON_UNCLOSED_STRING
        && parse("[1] 2") == PERENNIAL_JSON_TRAILING;
}

bool perennial_json_works(void) {
    static const bool works = tries_well();
    return works;
}

const char *perennial_json_simdjson_version(void) {
    // SIMDJSON_VERSION is a string in some versions, but not in others.
    static const std::string version = std::to_string(int(SIMDJSON_VERSION_MAJOR)) + "."
        + std::to_string(int(SIMDJSON_VERSION_MINOR)) + "." + std::to_string(int(SIMDJSON_VERSION_REVISION));
    return version.c_str();
}
