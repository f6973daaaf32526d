#pragma once
#ifdef __cplusplus
extern "C" {
#endif
const char *perennial_simdjson_version(void);
#ifdef __cplusplus
}
#endif
