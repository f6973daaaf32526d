// OpenSSL's certificates, curves and hashes, and base64 with AVX2, as plain functions without OpenSSL's macros.
//
// Objects are made once and then only read, so several threads may use each of them at the same time. No function keeps
// a pointer to the bytes of its arguments, and none leaves an error in OpenSSL's error queue of the thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// MARK: Base64

/// The decoded size in bytes, determined from length and padding alone; -1 if no text of that length is canonical.
ptrdiff_t perennial_base64_decoded_count(const uint8_t *text, size_t count, bool is_url);

/// Writes exactly `perennial_base64_decoded_count` bytes; false if the text is not canonical base64 of its alphabet.
/// Then the written bytes have no meaning.
bool perennial_base64_decode(const uint8_t *text, size_t count, bool is_url, uint8_t *out);

/// The same without vector instructions; both must always agree.
bool perennial_base64_decode_scalar(const uint8_t *text, size_t count, bool is_url, uint8_t *out);

/// Writes at most (count + 2) / 3 * 4 bytes and returns their number: without padding in the URL alphabet.
size_t perennial_base64_encode(const uint8_t *bytes, size_t count, bool is_url, uint8_t *out);

// MARK: Hashes

/// The state of an unfinished SHA-256. It can be copied, so that a common beginning is hashed once and continued in
/// many ways.
typedef struct {
    uint32_t words[28];
} perennial_sha256;

void perennial_sha256_begin(perennial_sha256 *state);
void perennial_sha256_add(perennial_sha256 *state, const uint8_t *bytes, size_t count);
/// `state` itself is not changed. `out` receives 32 bytes.
void perennial_sha256_end(const perennial_sha256 *state, uint8_t *out);
/// All at once, without a state that is copied. `out` receives 32 bytes.
void perennial_sha256_of(const uint8_t *bytes, size_t count, uint8_t *out);
/// `out` receives 48 bytes.
void perennial_sha384(const uint8_t *bytes, size_t count, uint8_t *out);

// MARK: Keys. `perennial_key` is a key on a NIST curve, public or private.

typedef struct perennial_key perennial_key;

/// Size in bytes of a number on the curve: of r, of s, of the private number, of one coordinate.
enum { PERENNIAL_P256 = 32, PERENNIAL_P384 = 48 };

/// Makes a public key on P-256 from 0x04, x, y (65 bytes). NULL if the point is not on the curve.
perennial_key *perennial_key_from_point(const uint8_t *point);
/// NULL unless 0 < number < order.
perennial_key *perennial_key_from_number(int curve, const uint8_t *number);
/// NULL only if the system has no randomness or memory.
perennial_key *perennial_key_random(int curve);

typedef enum {
    PERENNIAL_KEY_OK,
    PERENNIAL_KEY_UNREADABLE,
    PERENNIAL_KEY_ENCRYPTED,
    PERENNIAL_KEY_NOT_A_NIST_CURVE,
    PERENNIAL_KEY_INCONSISTENT,
} perennial_key_result;

/// Reads a private key in PKCS #8 or SEC 1, PEM.
perennial_key_result perennial_key_from_pem(const uint8_t *pem, size_t count, perennial_key **out, int *curve);
void perennial_key_destroy(perennial_key *key);

/// Writes PKCS #8 in PEM, at most `capacity` bytes, and returns the total number; 0 if there is no memory.
size_t perennial_key_pem(const perennial_key *key, uint8_t *out, size_t capacity);
/// Writes 0x04, x, y. `out` receives 1 + 2 * curve bytes.
bool perennial_key_point(const perennial_key *key, int curve, uint8_t *out);

/// `signature` is r and s, 32 bytes each, of a key on P-256; `digest` has 32 bytes.
bool perennial_key_verify(const perennial_key *key, const uint8_t *signature, const uint8_t *digest);
/// Writes r and s. With `is_deterministic` the nonce is that of RFC 6979, with the hash whose length is that of the
/// digest: 32 or 48.
bool perennial_key_sign(
    const perennial_key *key, int curve, const uint8_t *digest, size_t digest_count, bool is_deterministic, uint8_t *out);

// MARK: Keys of servers

typedef struct perennial_server_key perennial_server_key;

/// RSA, or a curve for ECDSA. NULL if it is another key, cannot be read, or is encrypted.
perennial_server_key *perennial_server_key_from_pem(const uint8_t *pem, size_t count);
void perennial_server_key_destroy(perennial_server_key *key);
/// No signature is longer.
size_t perennial_server_key_signature_limit(const perennial_server_key *key);
/// Signs a hash. `pss_hash_bits` is 0, or 256, 384 or 512: RSA with the padding of PSS, for a hash of SHA-2 that is so long, with a
/// salt as long as the hash. With 0 a key of RSA pads as PKCS #1 1.5 says: `digest` is then the DigestInfo, which has the hash in it.
/// A signature of a curve is in DER. Writes at most `capacity` bytes and returns their number; 0: it failed.
size_t perennial_server_key_sign(
    const perennial_server_key *key, int pss_hash_bits, const uint8_t *digest, size_t count, uint8_t *out, size_t capacity);

// MARK: Certificates

typedef struct perennial_certificate perennial_certificate;

typedef struct {
    /// Seconds since 1970.
    int64_t not_before, not_after;
    /// basicConstraints says so, and keyUsage does not forbid signing certificates.
    bool is_authority;
    /// There is no keyUsage, or it contains digitalSignature.
    bool may_verify_signatures;
    /// 0x04, x, y of a key on P-256 with a named curve and an uncompressed point.
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

/// Its issuer is its subject, and its own key has signed it. Costs a signature verification: 0.6 ms on P-384.
bool perennial_certificate_is_self_signed(const perennial_certificate *certificate);

/// The key of `issuer` has signed it; nothing else is checked.
bool perennial_certificate_is_signed_by(
    const perennial_certificate *certificate, const perennial_certificate *issuer);

/// Also false if `identifier` is not a dotted object identifier.
bool perennial_certificate_has_extension(const perennial_certificate *certificate, const char *identifier);

// The next four functions write at most `capacity` bytes and return the total number.

/// The magnitude, big endian; `is_negative` is the sign.
size_t perennial_certificate_serial(
    const perennial_certificate *certificate, uint8_t *out, size_t capacity, bool *is_negative);
/// UTF-8, for people.
size_t perennial_certificate_subject(const perennial_certificate *certificate, uint8_t *out, size_t capacity);
size_t perennial_certificate_subject_der(const perennial_certificate *certificate, uint8_t *out, size_t capacity);
/// 0 if the extension is missing.
size_t perennial_certificate_subject_key_identifier(
    const perennial_certificate *certificate, uint8_t *out, size_t capacity);

/// The 4 or 16 bytes of an address; 0 if the text is not an address. `out` receives 16 bytes.
size_t perennial_address_bytes(const char *address, uint8_t *out);

/// A root at which a path may end.
typedef struct perennial_anchor perennial_anchor;

/// Shares the certificate instead of copying it. NULL if there is no memory.
perennial_anchor *perennial_anchor_create(const perennial_certificate *root);
void perennial_anchor_destroy(perennial_anchor *anchor);

/// Whether leaf, intermediate and this root form a path of exactly three.
bool perennial_anchor_judge(
    const perennial_anchor *anchor, const perennial_certificate *leaf, const perennial_certificate *intermediate);

// MARK: OCSP (RFC 6960). `issuer` must have issued `certificate`; callers have checked this.

/// The responder addresses in the certificate, each followed by a line feed. Writes at most `capacity` bytes and
/// returns the total number.
size_t perennial_ocsp_addresses(const perennial_certificate *certificate, uint8_t *out, size_t capacity);

/// DER of the request, without a nonce. Writes at most `capacity` bytes and returns the total number; 0 without memory.
size_t perennial_ocsp_request(
    const perennial_certificate *certificate, const perennial_certificate *issuer, uint8_t *out, size_t capacity);

typedef enum { PERENNIAL_OCSP_GOOD, PERENNIAL_OCSP_UNKNOWN, PERENNIAL_OCSP_REVOKED } perennial_ocsp_status;

/// Seconds since 1970. A delegated responder's certificate is valid from `signer_not_before` to `signer_not_after`,
/// both included. If the issuer itself answers, the two mean nothing.
typedef struct {
    perennial_ocsp_status status;
    int64_t this_update, next_update;
    int64_t signer_not_before, signer_not_after;
} perennial_ocsp_answer;

typedef enum {
    PERENNIAL_OCSP_READ,
    PERENNIAL_OCSP_UNREADABLE,
    /// The responder refused: malformed request, internal error, try later, unauthorized.
    PERENNIAL_OCSP_REFUSED,
    /// Signed neither by the issuer nor by a certificate that the issuer has issued for signing such answers.
    PERENNIAL_OCSP_STRANGER,
    PERENNIAL_OCSP_BAD_SIGNATURE,
    /// It contains nothing about `certificate`.
    PERENNIAL_OCSP_OF_ANOTHER,
    /// A time is not in the form of RFC 5280, or there is no nextUpdate.
    PERENNIAL_OCSP_BAD_TIME,
} perennial_ocsp_result;

/// Checks everything except the time: there is no clock here.
perennial_ocsp_result perennial_ocsp_read(
    const uint8_t *der, size_t count, const perennial_certificate *certificate, const perennial_certificate *issuer,
    perennial_ocsp_answer *answer);
