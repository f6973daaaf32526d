// Base64 both ways. Decoding is strict: there is one text for one value.
//
// With vectors 32 characters become 24 bytes at a time; the packing is that of Mula and Lemire, "Faster Base64 Encoding
// and Decoding Using AVX2 Instructions". The end of a text is always decoded with the table, because only that code
// checks left-over bits.
#include "CCrypto.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const char url_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char standard_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Marks an invalid character. It has bits that no value has, so several results can be joined by "or" and checked at
// once.
#define NO 0xff

// The values of the characters below 128; the tests compare them with the alphabets.
static const uint8_t url_values[128] = {
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 62, NO, NO,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, NO, NO, NO, NO, NO, NO,
    NO, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, NO, NO, NO, NO, 63,
    NO, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, NO, NO, NO, NO, NO,
};
static const uint8_t standard_values[128] = {
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 62, NO, NO, NO, 63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, NO, NO, NO, NO, NO, NO,
    NO, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, NO, NO, NO, NO, NO,
    NO, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, NO, NO, NO, NO, NO,
};

static uint32_t value(const uint8_t *values, uint8_t character) { return character < 128 ? values[character] : NO; }

/// The number of characters before the padding, which only the standard alphabet has.
static size_t body_count(const uint8_t *text, size_t count, bool is_url) {
    if (is_url || count == 0 || text[count - 1] != '=') return count;
    return text[count - 2] == '=' ? count - 2 : count - 1;
}

ptrdiff_t perennial_base64_decoded_count(const uint8_t *text, size_t count, bool is_url) {
    if (!is_url && count % 4 != 0) return -1;
    size_t body = body_count(text, count, is_url), rest = body % 4;
    if (rest == 1) return -1;
    return (ptrdiff_t)(body / 4 * 3 + (rest == 0 ? 0 : rest - 1));
}

/// Decodes `count` characters without padding; `count % 4` is not 1.
static bool decode_by_table(const uint8_t *text, size_t count, bool is_url, uint8_t *out) {
    const uint8_t *values = is_url ? url_values : standard_values;
    size_t whole = count / 4 * 4;
    for (size_t i = 0; i < whole; i += 4, out += 3) {
        uint32_t a = value(values, text[i]), b = value(values, text[i + 1]);
        uint32_t c = value(values, text[i + 2]), d = value(values, text[i + 3]);
        if ((a | b | c | d) > 63) return false;
        uint32_t bits = a << 18 | b << 12 | c << 6 | d;
        out[0] = (uint8_t)(bits >> 16);
        out[1] = (uint8_t)(bits >> 8);
        out[2] = (uint8_t)bits;
    }
    if (count == whole) return true;
    uint32_t a = value(values, text[whole]), b = value(values, text[whole + 1]);
    uint32_t c = count - whole == 3 ? value(values, text[whole + 2]) : 0;
    if ((a | b | c) > 63) return false;
    uint32_t bits = a << 18 | b << 12 | c << 6;
    out[0] = (uint8_t)(bits >> 16);
    if (count - whole == 2) return (bits & 0xffff) == 0;
    out[1] = (uint8_t)(bits >> 8);
    return (bits & 0xff) == 0;
}

#if defined(__x86_64__)

/// Sets all bits in each byte of `offset` that is at most `last`, compared as unsigned numbers.
__attribute__((target("avx2"))) static inline __m256i is_at_most(__m256i offset, int8_t last) {
    return _mm256_cmpeq_epi8(_mm256_min_epu8(offset, _mm256_set1_epi8(last)), offset);
}

/// Decodes as much as possible from the start. Returns the number of decoded characters, a multiple of 32, or -1.
__attribute__((target("avx2"))) static ptrdiff_t decode_by_vector(
    const uint8_t *text, size_t count, bool is_url, uint8_t *out) {
    const __m256i character_62 = _mm256_set1_epi8(is_url ? '-' : '+');
    const __m256i character_63 = _mm256_set1_epi8(is_url ? '_' : '/');
    // Takes the three bytes of each of the lane's four 24-bit numbers, the highest first; then puts the two lanes
    // together.
    const __m256i order = _mm256_setr_epi8(
        2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1, 2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    size_t done = 0;
    // A store writes 32 bytes, of which 24 are used. The other 8 must lie within the result, so 11 more characters must
    // follow.
    for (; count - done >= 32 + 11; done += 32, out += 24) {
        __m256i characters = _mm256_loadu_si256((const __m256i *)(text + done));
        __m256i upper = _mm256_sub_epi8(characters, _mm256_set1_epi8('A'));
        __m256i lower = _mm256_sub_epi8(characters, _mm256_set1_epi8('a'));
        __m256i digit = _mm256_sub_epi8(characters, _mm256_set1_epi8('0'));
        __m256i is_upper = is_at_most(upper, 25), is_lower = is_at_most(lower, 25), is_digit = is_at_most(digit, 9);
        __m256i is_62 = _mm256_cmpeq_epi8(characters, character_62);
        __m256i is_63 = _mm256_cmpeq_epi8(characters, character_63);
        __m256i letters = _mm256_or_si256(is_upper, is_lower);
        __m256i others = _mm256_or_si256(is_digit, _mm256_or_si256(is_62, is_63));
        if (_mm256_movemask_epi8(_mm256_or_si256(letters, others)) != -1) return -1;

        __m256i values = _mm256_and_si256(upper, is_upper);
        values = _mm256_or_si256(
            values, _mm256_and_si256(_mm256_add_epi8(lower, _mm256_set1_epi8(26)), is_lower));
        values = _mm256_or_si256(
            values, _mm256_and_si256(_mm256_add_epi8(digit, _mm256_set1_epi8(52)), is_digit));
        values = _mm256_or_si256(values, _mm256_and_si256(_mm256_set1_epi8(62), is_62));
        values = _mm256_or_si256(values, _mm256_and_si256(_mm256_set1_epi8(63), is_63));

        // a * 64 + b in 16 bits, then (ab) * 4096 + (cd) in 32.
        __m256i pairs = _mm256_maddubs_epi16(values, _mm256_set1_epi32(0x01400140));
        __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00011000));
        __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(fours, order), lanes);
        _mm256_storeu_si256((__m256i *)out, bytes);
    }
    return (ptrdiff_t)done;
}

static ptrdiff_t decode_front(const uint8_t *text, size_t count, bool is_url, uint8_t *out) {
    // libgcc or compiler-rt sets a variable with the answer at start, so reading it costs next to nothing.
    return __builtin_cpu_supports("avx2") ? decode_by_vector(text, count, is_url, out) : 0;
}

#else

static ptrdiff_t decode_front(const uint8_t *text, size_t count, bool is_url, uint8_t *out) {
    (void)text, (void)count, (void)is_url, (void)out;
    return 0;
}

#endif

bool perennial_base64_decode(const uint8_t *text, size_t count, bool is_url, uint8_t *out) {
    if (perennial_base64_decoded_count(text, count, is_url) < 0) return false;
    size_t body = body_count(text, count, is_url);
    ptrdiff_t done = decode_front(text, body, is_url, out);
    if (done < 0) return false;
    return decode_by_table(text + done, body - (size_t)done, is_url, out + done / 4 * 3);
}

bool perennial_base64_decode_scalar(const uint8_t *text, size_t count, bool is_url, uint8_t *out) {
    if (perennial_base64_decoded_count(text, count, is_url) < 0) return false;
    return decode_by_table(text, body_count(text, count, is_url), is_url, out);
}

size_t perennial_base64_encode(const uint8_t *bytes, size_t count, bool is_url, uint8_t *out) {
    const char *alphabet = is_url ? url_alphabet : standard_alphabet;
    uint8_t *start = out;
    for (; count >= 3; bytes += 3, count -= 3, out += 4) {
        uint32_t bits = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
        out[0] = (uint8_t)alphabet[bits >> 18];
        out[1] = (uint8_t)alphabet[bits >> 12 & 63];
        out[2] = (uint8_t)alphabet[bits >> 6 & 63];
        out[3] = (uint8_t)alphabet[bits & 63];
    }
    if (count == 0) return (size_t)(out - start);
    uint32_t bits = (uint32_t)bytes[0] << 16 | (count == 2 ? (uint32_t)bytes[1] << 8 : 0);
    *out++ = (uint8_t)alphabet[bits >> 18];
    *out++ = (uint8_t)alphabet[bits >> 12 & 63];
    if (count == 2) *out++ = (uint8_t)alphabet[bits >> 6 & 63];
    if (!is_url) {
        for (size_t i = count; i < 3; i++) *out++ = '=';
    }
    return (size_t)(out - start);
}
