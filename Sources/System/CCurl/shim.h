#pragma once
// libcurl's type checks are macros around the variadic calls; the functions below replace them.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/// The version of the library that the process uses.
static inline const char *perennial_curl_version(void) { return curl_version_info(CURLVERSION_NOW)->version; }

// Swift does not import variadic functions, so there is one function for each type of argument.

static inline CURLcode perennial_curl_set_number(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode perennial_curl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

/// The library copies the text, except for options whose manual says otherwise.
static inline CURLcode perennial_curl_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode perennial_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

/// The library copies the bytes.
static inline CURLcode perennial_curl_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = { (void *)bytes, count, CURL_BLOB_COPY };
    return curl_easy_setopt(easy, option, &blob);
}

typedef size_t (*perennial_curl_sink)(char *bytes, size_t one, size_t count, void *context);

/// `head` is called with each line of a head, `body` with each piece of a body.
static inline CURLcode perennial_curl_set_sinks(
    CURL *easy, perennial_curl_sink head, perennial_curl_sink body, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, head);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    return code;
}

typedef int (*perennial_curl_leave)(void *context, char *, char *, int, int);

/// `leave` is called when a connection is ready, before anything of the request is written, and again for each retry
/// that the library makes by itself. It returns CURL_PREREQFUNC_OK or CURL_PREREQFUNC_ABORT.
static inline CURLcode perennial_curl_set_leave(CURL *easy, perennial_curl_leave leave, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, leave);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
    return code;
}

static inline long perennial_curl_number(CURL *easy, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

static inline CURLMcode perennial_curl_multi_set_number(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

/// Makes a transfer that waits for a connection look again. The library does so whenever a transfer is removed.
static inline void perennial_curl_wake_waiting(CURLM *multi) {
    CURL *none = curl_easy_init();
    if (!none) return;
    if (curl_multi_add_handle(multi, none) == CURLM_OK) curl_multi_remove_handle(multi, none);
    curl_easy_cleanup(none);
}

/// The next transfer that has ended, and its result; NULL if there is none.
static inline CURL *perennial_curl_next_ended(CURLM *multi, CURLcode *result) {
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        *result = message->data.result;
        return message->easy_handle;
    }
    return NULL;
}

/// Call this once per process, before anything else of the library.
static inline CURLcode perennial_curl_begin(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
