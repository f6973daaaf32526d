#include "CCrypto.h"

typedef int perennial_crypto_placeholder;
