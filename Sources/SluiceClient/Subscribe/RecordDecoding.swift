import ReactiveCore

/// What becomes of a subscription when a record of it can't be decoded.
public enum DecodeFailure: Hashable, Sendable {
  /// It ends with ``ClientError/Code/decodeFailed``, and the broker forgets it.
  case fail
  /// It goes on with the next record. The subscriber isn't told, and loses nothing of its demand: another record is asked for in place
  /// of the one that was skipped.
  case skip
}

/// How records become values.
@usableFromInline
struct RecordDecoding<Value>: Sendable {
  /// Gets the subscription, too, for values that speak to the broker.
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

  /// Gives `receive` what a record is decoded to. Returns the demand that it brought.
  @inlinable
  @inline(__always)
  func hand(
    _ record: TopicRecord, for subscription: RemoteSubscription, to receive: (Value) -> Subscribers.Demand
  ) -> Subscribers.Demand {
    let value: Value
    do {
      value = try decode(record, subscription)
    } catch {
      return failed(record, error, subscription)
    }
    // The decoder is the user's too, and may have cancelled.
    return subscription.isCancelled ? .none : receive(value)
  }

  /// A skipped record was counted as delivered: one more makes up for it.
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
        + "decodeFailure: .skip, or correct whoever publishes them", topic: record.topic)
    offset = record.offset
  }
}

extension DecodingError {
  /// Where and what, on one line.
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
