import ReactiveCore

/// The effect on a subscription when one of its records can't be decoded.
public enum DecodeFailure: Hashable, Sendable {
  /// It ends with ``ClientError/Code/decodeFailed``, and is cancelled at the broker.
  case fail
  /// It continues with the next record. The subscriber isn't notified, and its demand stays: the client requests another record for the skipped one.
  case skip
}

/// How records become values.
@usableFromInline
struct RecordDecoding<Value>: Sendable {
  /// Also gets the subscription, for values that send frames.
  @usableFromInline let decode: @Sendable (TopicRecord, RemoteSubscription) throws -> Value
  let onFailure: DecodeFailure

  init(onFailure: DecodeFailure, _ decode: @escaping @Sendable (TopicRecord) throws -> Value) {
    self.decode = { record, _ in try decode(record) }
    self.onFailure = onFailure
  }

  init(_ decode: @escaping @Sendable (TopicRecord, RemoteSubscription) -> Value) {
    self.decode = decode
    onFailure = .fail
  }

  /// Decodes a record and calls `receive` with the value. Returns the resulting demand.
  @inlinable
  @inline(__always)
  func deliver(
    _ record: TopicRecord, for subscription: RemoteSubscription, to receive: (Value) -> Subscribers.Demand
  ) -> Subscribers.Demand {
    let value: Value
    do {
      value = try decode(record, subscription)
    } catch {
      return failed(record, error, subscription)
    }
    // The decoder is the program's code, and may have cancelled the subscription.
    return subscription.isCancelled ? .none : receive(value)
  }

  /// Returns demand for another record if this one, which was counted as delivered, is skipped.
  @usableFromInline
  func failed(
    _ record: TopicRecord, _ error: any Error, _ subscription: RemoteSubscription
  ) -> Subscribers.Demand {
    switch onFailure {
    case .skip: return .max(1)
    case .fail:
      subscription.abandon(ClientError(undecodable: record, as: Value.self, error))
      return .none
    }
  }
}

extension ClientError {
  init(undecodable record: TopicRecord, as type: Any.Type, _ error: any Error) {
    let reason = (error as? DecodingError)?.sentence ?? "\(error)"
    self.init(
      .decodeFailed,
      "record \(record.offset) of topic \(record.topic) can't be decoded as \(type): \(reason); skip such records with "
        + "decodeFailure: .skip, or correct their producer", topic: record.topic)
    offset = record.offset
  }
}

extension DecodingError {
  /// The place and the reason, on one line.
  fileprivate var sentence: String {
    switch self {
    case .typeMismatch(_, let context), .dataCorrupted(let context): context.sentence
    case .valueNotFound(let type, let context): "there is no \(type)\(context.place)"
    case .keyNotFound(let key, let context): "there is no '\(key.stringValue)'\(context.place)"
    @unknown default: "\(self)"
    }
  }
}

extension DecodingError.Context {
  fileprivate var sentence: String {
    let what = debugDescription.last == "." ? String(debugDescription.dropLast()) : debugDescription
    return what + place
  }

  /// " in items[3].price"
  fileprivate var place: String {
    guard !codingPath.isEmpty else { return "" }
    var path = ""
    for key in codingPath {
      if let index = key.intValue {
        path += "[\(index)]"
      } else {
        path += path.isEmpty ? key.stringValue : "." + key.stringValue
      }
    }
    return " in \(path)"
  }
}
