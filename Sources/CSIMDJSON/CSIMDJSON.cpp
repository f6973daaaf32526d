#include "CSIMDJSON.h"

#include <cstring>
#include <new>
#include <simdjson.h>
#include <string_view>
#include <vector>

using namespace simdjson;

struct perennial_json_parser {
    ondemand::parser reader;
    std::vector<uint8_t> padded;
    std::vector<perennial_json_token> tokens;
    size_t length = 0;
    uint32_t max_depth = 0;
    int64_t fault_offset = -1;
};

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The grammar of RFC 8259. simdjson's own number readers refuse what does not fit a machine number; the text is kept here.
bool is_number(std::string_view text) {
    size_t at = 0;
    auto digits = [&] {
        size_t start = at;
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

perennial_json_result meaning_of(error_code code) {
    switch (code) {
    case SUCCESS: return PERENNIAL_JSON_OK;
    case EMPTY: return PERENNIAL_JSON_EMPTY;
    case UTF8_ERROR: return PERENNIAL_JSON_NOT_UTF8;
    case UNCLOSED_STRING: return PERENNIAL_JSON_UNCLOSED_STRING;
    case UNESCAPED_CHARS: return PERENNIAL_JSON_CONTROL_CHARACTER;
    case STRING_ERROR: return PERENNIAL_JSON_BAD_STRING;
    case INCOMPLETE_ARRAY_OR_OBJECT: return PERENNIAL_JSON_INCOMPLETE;
    case TRAILING_CONTENT: return PERENNIAL_JSON_TRAILING;
    case DEPTH_ERROR: return PERENNIAL_JSON_TOO_DEEP;
    case MEMALLOC: return PERENNIAL_JSON_NO_MEMORY;
    default: return PERENNIAL_JSON_BAD_STRUCTURE;
    }
}

class Walk {
  public:
    Walk(perennial_json_parser &parser, ondemand::document &document) : parser(parser), document(document) {}

    perennial_json_result value(ondemand::value value, uint32_t depth) {
        std::string_view token = value.raw_json_token();
        while (!token.empty() && is_blank(token.back())) token.remove_suffix(1);
        if (token.empty()) return fail(PERENNIAL_JSON_BAD_STRUCTURE);
        auto offset = offset_of(token.data());
        switch (token.front()) {
        case '[': return array(value, offset, depth + 1);
        case '{': return object(value, offset, depth + 1);
        case '"': {
            std::string_view text;
            if (auto code = value.get_string().get(text)) return fail(meaning_of(code), offset);
            add(PERENNIAL_JSON_STRING, text, offset, offset + token.size());
            return PERENNIAL_JSON_OK;
        }
        default: return scalar(token, offset);
        }
    }

    perennial_json_result fail(perennial_json_result result) {
        const char *location = nullptr;
        if (document.current_location().get(location)) return fail(result, -1);
        return fail(result, offset_of(location));
    }

  private:
    perennial_json_parser &parser;
    ondemand::document &document;

    /// The buffer begins with the bracket that `perennial_json_parse` puts around the document.
    int64_t offset_of(const char *location) const {
        auto offset = reinterpret_cast<const uint8_t *>(location) - parser.padded.data() - 1;
        return offset < 0 ? 0 : offset > int64_t(parser.length) ? int64_t(parser.length) : offset;
    }

    /// What is wrong at the wrapper's own closing bracket, or beyond it, is that the document ended too early.
    perennial_json_result fail(perennial_json_result result, int64_t offset) {
        bool at_end = offset < 0 || offset >= int64_t(parser.length);
        if (at_end && (result == PERENNIAL_JSON_BAD_STRUCTURE || result == PERENNIAL_JSON_BAD_WORD)) {
            return PERENNIAL_JSON_INCOMPLETE;
        }
        parser.fault_offset = offset;
        return result;
    }

    void add(perennial_json_kind kind, std::string_view text, int64_t offset, int64_t end) {
        parser.tokens.push_back(
            {reinterpret_cast<const uint8_t *>(text.data()), uint32_t(text.size()), uint32_t(offset), uint32_t(end), kind});
    }

    /// Ends the value whose first token is `start`: simdjson has just stepped over its closing bracket, and between that and
    /// the next token (there is one, if only the wrapper's bracket) are only blanks.
    perennial_json_result close(size_t start, perennial_json_kind kind) {
        const char *next = nullptr;
        if (auto code = document.current_location().get(next)) return fail(meaning_of(code));
        while (is_blank(next[-1])) next--;
        add(kind, {}, offset_of(next) - 1, offset_of(next));
        parser.tokens[start].end = uint32_t(offset_of(next));
        parser.tokens[start].length = uint32_t(parser.tokens.size() - start);
        return PERENNIAL_JSON_OK;
    }

    /// The iterators of simdjson step over a scalar that was only looked at.
    perennial_json_result scalar(std::string_view token, int64_t offset) {
        auto end = offset + int64_t(token.size());
        if (token == "null") add(PERENNIAL_JSON_NULL, token, offset, end);
        else if (token == "true") add(PERENNIAL_JSON_TRUE, token, offset, end);
        else if (token == "false") add(PERENNIAL_JSON_FALSE, token, offset, end);
        else if (is_number(token)) add(PERENNIAL_JSON_NUMBER, token, offset, end);
        else if (strchr("]},:", token.front())) return fail(PERENNIAL_JSON_BAD_STRUCTURE, offset);
        else if (token.front() == '-' || is_digit(token.front())) return fail(PERENNIAL_JSON_BAD_NUMBER, offset);
        else return fail(PERENNIAL_JSON_BAD_WORD, offset);
        return PERENNIAL_JSON_OK;
    }

    perennial_json_result array(ondemand::value value, int64_t offset, uint32_t depth) {
        if (depth > parser.max_depth) return fail(PERENNIAL_JSON_TOO_DEEP, offset);
        auto start = parser.tokens.size();
        add(PERENNIAL_JSON_ARRAY_START, {}, offset, offset);
        ondemand::array elements;
        if (auto code = value.get_array().get(elements)) return fail(meaning_of(code));
        for (auto element : elements) {
            ondemand::value next;
            if (auto code = element.get(next)) return fail(meaning_of(code));
            if (auto result = this->value(next, depth)) return result;
        }
        return close(start, PERENNIAL_JSON_ARRAY_END);
    }

    perennial_json_result object(ondemand::value value, int64_t offset, uint32_t depth) {
        if (depth > parser.max_depth) return fail(PERENNIAL_JSON_TOO_DEEP, offset);
        auto start = parser.tokens.size();
        add(PERENNIAL_JSON_OBJECT_START, {}, offset, offset);
        ondemand::object members;
        if (auto code = value.get_object().get(members)) return fail(meaning_of(code));
        for (auto member : members) {
            ondemand::field field;
            if (auto code = std::move(member).get(field)) return fail(meaning_of(code));
            auto at = offset_of(field.key().raw()) - 1;
            std::string_view name;
            if (auto code = field.unescaped_key().get(name)) return fail(meaning_of(code), at);
            add(PERENNIAL_JSON_NAME, name, at, at);
            if (auto result = this->value(field.value(), depth)) return result;
        }
        return close(start, PERENNIAL_JSON_OBJECT_END);
    }
};

/// A bracket around the document makes a lone number or string an element like any other: simdjson's readers of lone scalars
/// have rules of their own.
void wrap(perennial_json_parser &parser, const uint8_t *bytes, size_t length) {
    parser.padded.resize(length + 2 + SIMDJSON_PADDING);
    parser.padded[0] = '[';
    if (length > 0) memcpy(parser.padded.data() + 1, bytes, length);
    parser.padded[length + 1] = ']';
    memset(parser.padded.data() + length + 2, 0, SIMDJSON_PADDING);
}

perennial_json_result parse(perennial_json_parser &parser, const uint8_t *bytes, size_t length) {
    wrap(parser, bytes, length);
    ondemand::document document;
    if (auto code = parser.reader.iterate(parser.padded.data(), length + 2, parser.padded.size()).get(document)) {
        return meaning_of(code);
    }
    Walk walk(parser, document);
    ondemand::array wrapper;
    if (auto code = document.get_array().get(wrapper)) return walk.fail(meaning_of(code));
    size_t documents = 0;
    for (auto element : wrapper) {
        ondemand::value value;
        if (auto code = element.get(value)) {
            auto result = walk.fail(meaning_of(code));
            return documents == 1 && result == PERENNIAL_JSON_BAD_STRUCTURE ? PERENNIAL_JSON_TRAILING : result;
        }
        if (documents++ == 1) return walk.fail(PERENNIAL_JSON_TRAILING);
        if (auto result = walk.value(value, 0)) return result;
    }
    // The reader has no location only when every token is used up.
    if (document.current_location().error() != OUT_OF_BOUNDS) return walk.fail(PERENNIAL_JSON_TRAILING);
    return documents == 0 ? PERENNIAL_JSON_EMPTY : PERENNIAL_JSON_OK;
}

} // namespace

perennial_json_parser *perennial_json_parser_create(uint32_t max_depth) {
    auto parser = new (std::nothrow) perennial_json_parser;
    if (parser) parser->max_depth = max_depth < 1000 ? max_depth : 1000;
    return parser;
}

void perennial_json_parser_destroy(perennial_json_parser *parser) { delete parser; }

perennial_json_result perennial_json_parse(perennial_json_parser *parser, const uint8_t *bytes, size_t length) {
    parser->tokens.clear();
    parser->length = length;
    parser->fault_offset = -1;
    // Only memory can run out: every simdjson call above returns its error.
    try {
        auto result = parse(*parser, bytes, length);
        if (result != PERENNIAL_JSON_OK) parser->tokens.clear();
        return result;
    } catch (...) {
        parser->tokens.clear();
        return PERENNIAL_JSON_NO_MEMORY;
    }
}

const perennial_json_token *perennial_json_tokens(const perennial_json_parser *parser, size_t *count) {
    *count = parser->tokens.size();
    return parser->tokens.data();
}

const uint8_t *perennial_json_text(const perennial_json_parser *parser) { return parser->padded.data() + 1; }

int64_t perennial_json_fault_offset(const perennial_json_parser *parser) { return parser->fault_offset; }
