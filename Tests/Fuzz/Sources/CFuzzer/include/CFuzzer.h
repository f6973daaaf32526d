// libFuzzer's own entry for programs that bring their `main`.
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*target)(const uint8_t *bytes, size_t count));
