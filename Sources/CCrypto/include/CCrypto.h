// What OpenSSL offers only as macros or needs in C: a face of plain functions.
#pragma once

#include <stddef.h>
#include <stdint.h>
