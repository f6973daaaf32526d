// OpenSSL's certificates, curves and hashes, and base64 with AVX2: a face of plain functions without OpenSSL's macros.
//
// Objects are made once and then only read, so each may be used from several threads at a time. No function keeps a
// pointer to its arguments' bytes, and none leaves anything in OpenSSL's queue of errors of the thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// MARK: Base64

/// What a text of base64 decodes to in bytes, by its length and padding alone; -1 when no text of that length is canonical.
ptrdiff_t perennial_base64_decoded_count(const uint8_t *text, size_t count, bool is_url);

/// Writes exactly `perennial_base64_decoded_count` bytes; false when the text is not canonical base64 of its alphabet. What
/// was written then means nothing.
bool perennial_base64_decode(const uint8_t *text, size_t count, bool is_url, uint8_t *out);

/// The same without vector instructions; the other must never disagree with it.
bool perennial_base64_decode_scalar(const uint8_t *text, size_t count, bool is_url, uint8_t *out);

/// Writes (count + 2) / 3 * 4 bytes at most and returns how many: without padding in the alphabet for addresses.
size_t perennial_base64_encode(const uint8_t *bytes, size_t count, bool is_url, uint8_t *out);

// MARK: Hashes

/// The state of a SHA-256 under way, copied like a number: what came so far is hashed once, and goes on in many ways.
typedef struct {
    uint32_t words[28];
} perennial_sha256;

void perennial_sha256_begin(perennial_sha256 *state);
void perennial_sha256_add(perennial_sha256 *state, const uint8_t *bytes, size_t count);
/// `state` itself is not changed. `out` takes 32 bytes.
void perennial_sha256_end(const perennial_sha256 *state, uint8_t *out);
/// `out` takes 48 bytes.
void perennial_sha384(const uint8_t *bytes, size_t count, uint8_t *out);

// MARK: Keys. `perennial_key` is a key on a NIST curve, public or private.

typedef struct perennial_key perennial_key;

/// Bytes of a number on the curve: of r, of s, of the private number, of one coordinate.
enum { PERENNIAL_P256 = 32, PERENNIAL_P384 = 48 };

/// A public key on P-256 from 0x04, x, y (65 bytes). NULL when the point is not on the curve.
perennial_key *perennial_key_from_point(const uint8_t *point);
/// NULL unless 0 < number < order.
perennial_key *perennial_key_from_number(int curve, const uint8_t *number);
/// NULL only when the system has no randomness or memory.
perennial_key *perennial_key_random(int curve);

typedef enum {
    PERENNIAL_KEY_OK,
    PERENNIAL_KEY_UNREADABLE,
    PERENNIAL_KEY_ENCRYPTED,
    PERENNIAL_KEY_NOT_A_NIST_CURVE,
    PERENNIAL_KEY_INCONSISTENT,
} perennial_key_result;

/// A private key of PKCS #8 or SEC 1 in PEM.
perennial_key_result perennial_key_from_pem(const uint8_t *pem, size_t count, perennial_key **out, int *curve);
void perennial_key_destroy(perennial_key *key);

/// PKCS #8 in PEM. Writes at most `capacity` bytes and returns how many there are; 0 when there is no memory.
size_t perennial_key_pem(const perennial_key *key, uint8_t *out, size_t capacity);
/// 0x04, x, y. `out` takes 1 + 2 * curve bytes.
bool perennial_key_point(const perennial_key *key, int curve, uint8_t *out);

/// `signature` is r and s, 32 bytes each, of a key on P-256; `digest` has 32 bytes.
bool perennial_key_verify(const perennial_key *key, const uint8_t *signature, const uint8_t *digest);
/// Writes r and s. With `is_deterministic` the nonce is that of RFC 6979 with the hash of the digest's length: 32 or 48.
bool perennial_key_sign(
    const perennial_key *key, int curve, const uint8_t *digest, size_t digest_count, bool is_deterministic, uint8_t *out);

// MARK: Certificates

typedef struct perennial_certificate perennial_certificate;

typedef struct {
    /// Seconds since 1970.
    int64_t not_before, not_after;
    /// basicConstraints says so, and keyUsage does not forbid to sign certificates.
    bool is_authority;
    /// There is no keyUsage, or it has digitalSignature.
    bool may_verify_signatures;
    /// 0x04, x, y of a key on P-256, the curve by name and the point uncompressed.
    bool has_p256_point;
    uint8_t p256_point[65];
} perennial_certificate_facts;

typedef enum {
    PERENNIAL_CERTIFICATE_OK,
    PERENNIAL_CERTIFICATE_UNREADABLE,
    PERENNIAL_CERTIFICATE_TRAILING,
    PERENNIAL_CERTIFICATE_NOT_DER,
    PERENNIAL_CERTIFICATE_BAD_TIME,
} perennial_certificate_result;

perennial_certificate_result perennial_certificate_create(
    const uint8_t *der, size_t count, perennial_certificate **out, perennial_certificate_facts *facts);
void perennial_certificate_destroy(perennial_certificate *certificate);

/// Its issuer is its subject, and its own key has signed it. Costs a verification: 0.6 ms on P-384.
bool perennial_certificate_is_self_signed(const perennial_certificate *certificate);

/// The key of `issuer` has signed it, whatever else either of them says.
bool perennial_certificate_is_signed_by(
    const perennial_certificate *certificate, const perennial_certificate *issuer);

/// False too when `identifier` is no object identifier with dots.
bool perennial_certificate_has_extension(const perennial_certificate *certificate, const char *identifier);

// The next four write at most `capacity` bytes and return how many there are.

/// The magnitude, big endian; `is_negative` is the rest of it.
size_t perennial_certificate_serial(
    const perennial_certificate *certificate, uint8_t *out, size_t capacity, bool *is_negative);
/// UTF-8, for people.
size_t perennial_certificate_subject(const perennial_certificate *certificate, uint8_t *out, size_t capacity);
size_t perennial_certificate_subject_der(const perennial_certificate *certificate, uint8_t *out, size_t capacity);
/// 0 when there is no such extension.
size_t perennial_certificate_subject_key_identifier(
    const perennial_certificate *certificate, uint8_t *out, size_t capacity);

/// The 4 or 16 bytes of an address; 0 when it is none. `out` takes 16 bytes.
size_t perennial_address_bytes(const char *address, uint8_t *out);

/// A root to which a path may lead.
typedef struct perennial_anchor perennial_anchor;

/// The certificate itself is shared, not copied. NULL when there is no memory.
perennial_anchor *perennial_anchor_create(const perennial_certificate *root);
void perennial_anchor_destroy(perennial_anchor *anchor);

/// Whether leaf, intermediate and this root form a path of exactly three.
bool perennial_anchor_judge(
    const perennial_anchor *anchor, const perennial_certificate *leaf, const perennial_certificate *intermediate);

// MARK: OCSP (RFC 6960). `certificate` is always one that `issuer` has issued; callers have made sure of it.

/// Where the certificate says that it may be asked about, one address after the other, each with a line feed behind it.
/// Writes at most `capacity` bytes and returns how many there are.
size_t perennial_ocsp_addresses(const perennial_certificate *certificate, uint8_t *out, size_t capacity);

/// DER of the request, without a nonce. Writes at most `capacity` bytes and returns how many there are; 0 without memory.
size_t perennial_ocsp_request(
    const perennial_certificate *certificate, const perennial_certificate *issuer, uint8_t *out, size_t capacity);

typedef enum { PERENNIAL_OCSP_GOOD, PERENNIAL_OCSP_UNKNOWN, PERENNIAL_OCSP_REVOKED } perennial_ocsp_status;

/// Seconds since 1970. A responder of its own is valid from `signer_not_before` to `signer_not_after`, both included; of the
/// issuer itself nothing is said here.
typedef struct {
    perennial_ocsp_status status;
    int64_t this_update, next_update;
    int64_t signer_not_before, signer_not_after;
} perennial_ocsp_answer;

typedef enum {
    PERENNIAL_OCSP_READ,
    PERENNIAL_OCSP_UNREADABLE,
    /// The responder refuses: malformed request, internal error, try later, unauthorized.
    PERENNIAL_OCSP_REFUSED,
    /// Not signed by the issuer, nor by a certificate that the issuer has issued for signing such answers.
    PERENNIAL_OCSP_STRANGER,
    PERENNIAL_OCSP_BAD_SIGNATURE,
    /// It says nothing of `certificate`.
    PERENNIAL_OCSP_OF_ANOTHER,
    /// A time is not as RFC 5280 writes it, or there is no nextUpdate.
    PERENNIAL_OCSP_BAD_TIME,
} perennial_ocsp_result;

/// Judges everything but the time: there is no clock here.
perennial_ocsp_result perennial_ocsp_read(
    const uint8_t *der, size_t count, const perennial_certificate *certificate, const perennial_certificate *issuer,
    perennial_ocsp_answer *answer);
