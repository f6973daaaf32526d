#include "RepeatedNames.h"

#include <algorithm>
#include <cstring>
#include <endian.h>
#include <vector>

namespace {

using Token = const perennial_json_token *;

/// The token after a value.
Token behind(Token value) {
    bool is_container = value->kind == PERENNIAL_JSON_ARRAY_START || value->kind == PERENNIAL_JSON_OBJECT_START;
    return value + (is_container ? value->length : 1);
}

bool is_same(Token a, Token b) { return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0; }

/// Depends on the length of a name, on its first eight bytes and on its last one. There is memory behind every name.
uint64_t gist(Token name) {
    if (name->length == 0) return 0;
    uint64_t word;
    memcpy(&word, name->bytes, sizeof word);
    word = le64toh(word);
    if (name->length < sizeof word) word <<= 64 - 8 * name->length;
    return word ^ name->length ^ uint64_t(name->bytes[name->length - 1]) << 40;
}

/// Sorted, because comparing each with each takes quadratic time: an attacker could send an object with ten thousand
/// members.
Token repeated_of_many(Token first, Token end) {
    std::vector<Token> names;
    for (auto name = first; name < end; name = behind(name + 1)) names.push_back(name);
    std::sort(names.begin(), names.end(), [](Token a, Token b) {
        if (a->length != b->length) return a->length < b->length;
        auto order = memcmp(a->bytes, b->bytes, a->length);
        return order != 0 ? order < 0 : a < b;
    });
    Token repeated = nullptr;
    for (size_t at = 1; at < names.size(); at++) {
        if (is_same(names[at - 1], names[at]) && (!repeated || names[at] < repeated)) repeated = names[at];
    }
    return repeated;
}

} // namespace

const perennial_json_token *perennial::repeated_name(const perennial_json_token *object) {
    // A name is compared with those before it only if one of them may be the same, judged by its length and some of
    // its bytes: in most objects none is.
    constexpr int limit_compared = 64;
    uint64_t seen[16] = {};
    auto first = object + 1, end = behind(object) - 1;
    int count = 0;
    for (auto name = first; name < end; name = behind(name + 1)) {
        if (++count > limit_compared) return repeated_of_many(first, end);
        // The upper 10 bits of a product with the golden ratio, which depend on all other bits.
        auto hash = gist(name) * 0x9E3779B97F4A7C15u >> 54;
        auto &word = seen[hash / 64];
        auto bit = uint64_t(1) << hash % 64;
        if (word & bit) {
            for (auto other = first; other < name; other = behind(other + 1)) {
                if (is_same(other, name)) return name;
            }
        }
        word |= bit;
    }
    return nullptr;
}
