// GNU libmicrohttpd, as Debian's libmicrohttpd-dev has it; what it has as functions with any number of arguments are plain ones here.
#ifndef SLUICE_CMICROHTTPD_SHIM_H
#define SLUICE_CMICROHTTPD_SHIM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <microhttpd.h>

// Who is told what happens. Must outlive the server.
struct sluice_http_owner {
  void *object;
  void (*opened)(void *object, struct MHD_Connection *connection);
  void (*closed)(void *object, struct MHD_Connection *connection);
  // A request's first line has come; the target is as it was sent.
  void (*began)(void *object, struct MHD_Connection *connection, const char *target);
  // A part of its body has come.
  void (*body)(void *object, struct MHD_Connection *connection, const void *bytes, size_t size);
  // Its headers have come, and later once more that all of it has: to be answered, or suspended until it can be. 0 to close the connection.
  int (*handle)(void *object, struct MHD_Connection *connection, const char *method, int is_first);
  // It was answered, or the connection is about to close.
  void (*completed)(void *object, struct MHD_Connection *connection);
};

struct sluice_http_limits {
  unsigned int connections;
  unsigned int idle_seconds;
  size_t connection_bytes;
};

// The certificates and the key of TLS, in PEM. Must outlive the server. Both NULL for plain HTTP.
struct sluice_http_tls {
  const char *certificate;
  const char *key;
};

static inline enum MHD_Result sluice_http_handle(
  void *cls, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
  const char *upload_data, size_t *upload_data_size, void **request) {
  const struct sluice_http_owner *owner = (const struct sluice_http_owner *)cls;
  (void)url;
  (void)version;
  int is_first = *request == NULL;
  // Not to be used; tells the first call from later ones.
  *request = cls;
  if (*upload_data_size > 0) {
    owner->body(owner->object, connection, upload_data, *upload_data_size);
    *upload_data_size = 0;
    return MHD_YES;
  }
  return owner->handle(owner->object, connection, method, is_first) ? MHD_YES : MHD_NO;
}

static inline void *sluice_http_began(void *cls, const char *target, struct MHD_Connection *connection) {
  const struct sluice_http_owner *owner = (const struct sluice_http_owner *)cls;
  owner->began(owner->object, connection, target);
  return NULL;
}

static inline void sluice_http_completed(
  void *cls, struct MHD_Connection *connection, void **request, enum MHD_RequestTerminationCode code) {
  const struct sluice_http_owner *owner = (const struct sluice_http_owner *)cls;
  (void)request;
  (void)code;
  owner->completed(owner->object, connection);
}

static inline void sluice_http_notified(
  void *cls, struct MHD_Connection *connection, void **context, enum MHD_ConnectionNotificationCode code) {
  const struct sluice_http_owner *owner = (const struct sluice_http_owner *)cls;
  (void)context;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    owner->opened(owner->object, connection);
  } else {
    owner->closed(owner->object, connection);
  }
}

// A server on a listening socket, which it closes. It has no thread: see sluice_http_descriptor. NULL when it can't be made.
static inline struct MHD_Daemon *sluice_http_start(
  int socket, struct sluice_http_limits limits, struct sluice_http_tls tls, const struct sluice_http_owner *owner) {
  void *cls = (void *)owner;
  int has_tls = tls.certificate != NULL && tls.key != NULL;
  struct MHD_OptionItem security[] = {
    {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)tls.certificate},
    {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)tls.key},
    {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
    {MHD_OPTION_END, 0, NULL},
  };
  struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
  return MHD_start_daemon(
    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (has_tls ? MHD_USE_TLS : 0), 0, NULL, NULL, sluice_http_handle, cls,
    MHD_OPTION_ARRAY, has_tls ? security : none,
    MHD_OPTION_LISTEN_SOCKET, (MHD_socket)socket,
    MHD_OPTION_CONNECTION_LIMIT, limits.connections,
    MHD_OPTION_CONNECTION_TIMEOUT, limits.idle_seconds,
    MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.connection_bytes,
    MHD_OPTION_STRICT_FOR_CLIENT, 1,
    MHD_OPTION_NOTIFY_CONNECTION, sluice_http_notified, cls,
    MHD_OPTION_URI_LOG_CALLBACK, sluice_http_began, cls,
    MHD_OPTION_NOTIFY_COMPLETED, sluice_http_completed, cls,
    MHD_OPTION_END);
}

// Readable when the server has something to do; -1 when there is none.
static inline int sluice_http_descriptor(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
  return info == NULL ? -1 : info->epoll_fd;
}

// The connection's socket; -1 when there is none.
static inline int sluice_http_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? -1 : info->connect_fd;
}

// Does what there is to do. 1 when there is more to do at once.
static inline int sluice_http_work(struct MHD_Daemon *daemon) {
  MHD_run(daemon);
  MHD_UNSIGNED_LONG_LONG timeout = 0;
  return MHD_get_timeout(daemon, &timeout) == MHD_YES && timeout == 0;
}

// Takes one line of a request's head. The texts are valid during the call; NULL for an empty value.
typedef void (*sluice_http_field)(void *context, const char *name, const char *value);

struct sluice_http_fields {
  void *context;
  sluice_http_field take;
};

static inline enum MHD_Result sluice_http_took(
  void *cls, enum MHD_ValueKind kind, const char *name, const char *value) {
  const struct sluice_http_fields *fields = (const struct sluice_http_fields *)cls;
  (void)kind;
  fields->take(fields->context, name, value);
  return MHD_YES;
}

// Calls `take` for each line of the request's head, in their order.
static inline void sluice_http_each_field(struct MHD_Connection *connection, void *context, sluice_http_field take) {
  struct sluice_http_fields fields = {context, take};
  MHD_get_connection_values(connection, MHD_HEADER_KIND, sluice_http_took, &fields);
}

// A response with a copy of these bytes; NULL when it can't be made.
static inline struct MHD_Response *sluice_http_response(size_t size, void *bytes) {
  return MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_COPY);
}

// 0 when it can't be; the connection is of no use then.
static inline int sluice_http_respond(
  struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response) {
  return MHD_queue_response(connection, status, response) == MHD_YES;
}

// What a reader of a response's body returns when there will be no more.
static const ssize_t sluice_http_end_of_stream = MHD_CONTENT_READER_END_OF_STREAM;

// The length of a response that isn't known before it ends.
static const uint64_t sluice_http_unknown_size = MHD_SIZE_UNKNOWN;

#endif
