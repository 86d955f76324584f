// OpenSSL, as Debian's libssl-dev has it; what it has as macros are functions here.
#ifndef SLUICE_COPENSSL_SHIM_H
#define SLUICE_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#endif
