// OpenSSL from Debian's libssl-dev, with functions for its macros.
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

// Contexts

static inline int sluice_ssl_ctx_set_min_version(SSL_CTX *context, int version) {
  return (int)SSL_CTX_set_min_proto_version(context, version);
}

// No renegotiation, no compression; the server chooses the cipher.
static inline void sluice_ssl_ctx_harden(SSL_CTX *context) {
  SSL_CTX_set_options(
    context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
}

static inline void sluice_ssl_ctx_set_mode(SSL_CTX *context, long mode) {
  SSL_CTX_set_mode(context, mode);
}

static inline void sluice_ssl_ctx_set_read_ahead(SSL_CTX *context, int on) {
  SSL_CTX_set_read_ahead(context, on);
}

static inline void sluice_ssl_ctx_set_session_cache_mode(SSL_CTX *context, long mode) {
  SSL_CTX_set_session_cache_mode(context, mode);
}

// Peers can't resume earlier sessions.
static inline void sluice_ssl_ctx_no_tickets(SSL_CTX *context) {
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
}

// The certificates behind the context's own, up to its authority. They belong to the context; NULL for none.
static inline STACK_OF(X509) *sluice_ssl_ctx_chain(SSL_CTX *context) {
  STACK_OF(X509) *chain = NULL;
  SSL_CTX_get0_chain_certs(context, &chain);
  return chain;
}

static inline int sluice_ssl_set_server_name(SSL *ssl, const char *name) {
  return (int)SSL_set_tlsext_host_name(ssl, name);
}

// BIOs

static inline void sluice_bio_retry_read(BIO *bio) {
  BIO_set_retry_read(bio);
}

static inline void sluice_bio_clear_retry(BIO *bio) {
  BIO_clear_retry_flags(bio);
}

// Names in certificates

static inline STACK_OF(X509_NAME) *sluice_x509_names_new(void) {
  return sk_X509_NAME_new_null();
}

static inline GENERAL_NAMES *sluice_x509_alternative_names(const X509 *certificate) {
  return (GENERAL_NAMES *)X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
}

static inline int sluice_general_names_count(const GENERAL_NAMES *names) {
  return sk_GENERAL_NAME_num(names);
}

// The kind (GEN_DNS and so on) of a name, and its string; NULL for kinds that aren't strings.
static inline const ASN1_STRING *sluice_general_name(const GENERAL_NAMES *names, int index, int *kind) {
  const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
  *kind = name->type;
  switch (name->type) {
  case GEN_DNS:
  case GEN_EMAIL:
  case GEN_URI:
    return name->d.ia5;
  case GEN_IPADD:
    return name->d.iPAddress;
  default:
    return NULL;
  }
}

#endif
