// Errors that the client throws, with the numeric codes of the protocol.

/** Codes of the protocol's errors, by name. A code that a later broker adds is a number without a name here. */
export const ErrorCode = Object.freeze({
  notSluice: 1, versionMismatch: 2, malformedFrame: 3, frameTooLarge: 4, unsupportedFrame: 5, unexpectedFrame: 6,
  keepaliveTimeout: 7, shuttingDown: 8, tooManyConnections: 9, handshakeTimeout: 10, invalidStream: 11,
  authenticationRequired: 12, authenticationFailed: 13, credentialsExpired: 14, accessRevoked: 15, idleTimeout: 16,
  writeTimeout: 17, tooManyAttempts: 18, closedByOperator: 19,
  invalidTopic: 101, unknownTopic: 102, topicEnded: 103, topicDeleted: 104, topicExists: 105, recordTooLarge: 106,
  malformedBatch: 107, demandExceeded: 108, invalidDemand: 109, lagged: 110, epochChanged: 111, invalidSetting: 112,
  limitReached: 113, unsupported: 114, producerFenced: 115, cursorTaken: 116, cursorMoved: 117, cursorDeleted: 118,
  keyRequired: 119, unknownCursor: 120, groupMismatch: 121, storageFull: 122, storageFailed: 123,
  permissionDenied: 124, noResponders: 125, producerLost: 126, unknownConnection: 127, topicMoved: 128,
  producerFailure: 200,
});

const NAMES = new Map(Object.entries(ErrorCode).map(([name, code]) => [code, name]));

const RETRYABLE = new Set([
  ErrorCode.keepaliveTimeout, ErrorCode.shuttingDown, ErrorCode.tooManyConnections, ErrorCode.handshakeTimeout,
  ErrorCode.idleTimeout, ErrorCode.writeTimeout, ErrorCode.tooManyAttempts, ErrorCode.closedByOperator,
  ErrorCode.limitReached, ErrorCode.storageFull, ErrorCode.storageFailed, ErrorCode.noResponders, ErrorCode.topicMoved,
]);

const REFUSED_CREDENTIALS = new Set([
  ErrorCode.authenticationRequired, ErrorCode.authenticationFailed, ErrorCode.credentialsExpired, ErrorCode.accessRevoked,
]);

/** Whether the same request may succeed later. */
export function isRetryable(code) {
  return RETRYABLE.has(code);
}

/** Whether a broker with this code refuses the client's credentials. */
export function isRefusal(code) {
  return REFUSED_CREDENTIALS.has(code);
}

/** The base of all errors of this package. */
export class SluiceError extends Error {
  /** The protocol's code; 0 for an error that the client detected itself. */
  code;
  /** The code's name, such as `unknownTopic`; undefined for 0 and for codes that this version doesn't know. */
  codeName;
  /** The topic that the error is about; undefined for the connection's errors. */
  topic;
  /** Whether the same call can succeed later. */
  retry;

  constructor(message, { code = 0, topic, retry, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.codeName = NAMES.get(code);
    this.topic = topic;
    this.retry = retry ?? RETRYABLE.has(code);
  }
}

/** The other side sent bytes that contradict the protocol. The connection is closed. */
export class ProtocolError extends SluiceError {}

/** The client could not connect, or it lost the connection and its reconnect policy doesn't allow another attempt. */
export class ConnectionLostError extends SluiceError {
  constructor(message, options = {}) {
    super(message, { retry: true, ...options });
  }
}

/** The broker refuses the client's credentials, or requires some. */
export class AuthenticationError extends SluiceError {}

/** The call was made on a closed client, or the client was closed while the call waited. */
export class ClientClosedError extends SluiceError {}

/** The broker has refused or ended a subscription. */
export class SubscriptionError extends SluiceError {}

/** The broker has refused or ended a publication, or the topic has ended. */
export class PublicationError extends SluiceError {}

/** The topic of a request has no subscribers. The request was not published. */
export class NoRespondersError extends SluiceError {}

/** No reply came in time. */
export class RequestTimeoutError extends SluiceError {}

/** The responder reported that it can't answer the request. */
export class ReplyError extends SluiceError {}

/** The topic ended with a failure that its producer reported. */
export class TopicFailedError extends SluiceError {}

/** The error for an ERROR of the broker on a stream. */
export function streamError(Kind, code, message, topic) {
  const Type = code === ErrorCode.noResponders ? NoRespondersError : Kind;
  return new Type(message, { code, topic });
}

/** The error for an ERROR of the broker that ends the connection. */
export function connectionError(code, message) {
  if (REFUSED_CREDENTIALS.has(code)) return new AuthenticationError(message, { code });
  if (code === ErrorCode.notSluice || code === ErrorCode.malformedFrame || code === ErrorCode.unsupportedFrame) {
    return new ProtocolError(message, { code });
  }
  return RETRYABLE.has(code) ? new ConnectionLostError(message, { code }) : new SluiceError(message, { code });
}

/** The error for a frame that the broker must not send in this state. */
export function misplaced(what, where) {
  return new ProtocolError(`the broker sent ${what} on ${where}`, { code: ErrorCode.unexpectedFrame });
}

/** The error for a frame that contradicts its layout. */
export function malformed(message) {
  return new ProtocolError(message, { code: ErrorCode.malformedFrame });
}
