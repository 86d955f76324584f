// A client for Sluice, a publish/subscribe broker with exact demand, for Node and browsers.

export { Client, connect } from "./client.js";
export {
  AuthenticationError,
  ClientClosedError,
  ConnectionLostError,
  ErrorCode,
  NoRespondersError,
  ProtocolError,
  PublicationError,
  ReplyError,
  RequestTimeoutError,
  SluiceError,
  SubscriptionError,
  TopicFailedError,
} from "./errors.js";
export { hasHeader, hasKey, header, headerPrefix, key, keyPrefix, last, offset, since } from "./plans.js";
export { Producer } from "./publication.js";
export { Delivery, Lag, Live, Matched, Producers, Record, Restarted, Rewound, Unmatched } from "./records.js";
export { Responder } from "./requests.js";
export { Subscription, Topic } from "./subscription.js";

/** Decodes a record's payload as JSON, for the option `decode`. */
export const json = (record) => record.json();
