#pragma once
#include <zlib.h>

// Swift does not import macros with arguments.

/// Compresses all of `input` into `output` in the format of gzip. Returns the number of bytes; 0 when they do not fit or memory is
/// missing.
static inline size_t perennial_gzip(const unsigned char *input, size_t count, unsigned char *output, size_t room, int level) {
    z_stream stream = {0};
    // 15: the largest window. 16: gzip instead of zlib's own format. 8: the usual memory, 256 KiB.
    if (deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    stream.next_in = (unsigned char *)input;
    stream.avail_in = (unsigned int)count;
    stream.next_out = output;
    stream.avail_out = (unsigned int)room;
    int ended = deflate(&stream, Z_FINISH);
    size_t written = stream.total_out;
    deflateEnd(&stream);
    return ended == Z_STREAM_END ? written : 0;
}
