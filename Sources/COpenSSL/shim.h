#pragma once
#include <openssl/crypto.h>
#include <openssl/opensslv.h>
