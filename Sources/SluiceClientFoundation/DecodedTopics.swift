public import Foundation
public import ReactiveCore
import ReactiveFoundation
public import SluiceClient

extension Client {
  /// A topic of values that are decoded from the records' payloads, from JSON unless another decoder is given.
  ///
  /// ```swift
  /// struct Order: Codable { var id: String, total: Int }
  ///
  /// let large = client.topic("orders.eu", as: Order.self)
  ///   .filter { $0.total > 1_000 }
  ///   .sink { print($0) } receiveValue: { print($0.id) }
  /// ```
  ///
  /// - Parameters:
  ///   - name: tokens separated by dots: `orders.eu.new`. The subscription to an invalid name fails with a description of the error.
  ///   - type: the values' type.
  ///   - settings: the settings stated for the topic; nil for none.
  ///   - decoder: used on the client's loop.
  ///   - decodeFailure: what happens to the subscription when a record can't be decoded.
  ///   - start: where subscriptions begin.
  ///   - lag: what happens when records are dropped before the subscriber requests them; nil for the topic's setting.
  ///   - prefetch: how far the client requests ahead.
  public func topic<Value: Decodable & SendableMetatype, Coder: TopLevelDecoder & Sendable>(
    _ name: String, as type: Value.Type, settings: TopicSettings? = nil, decoder: Coder = JSONDecoder(),
    decodeFailure: DecodeFailure = .fail, from start: SubscriptionPlan.Start = .replay,
    lag: SubscriptionPlan.Lag? = nil, prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<Value> where Coder.Input == Data {
    topic(name, settings: settings, from: start, lag: lag, prefetch: prefetch)
      .decoded(as: type, decoder: decoder, decodeFailure: decodeFailure)
  }
}

extension RemoteTopic where Output == TopicRecord {
  /// The topic with values that a decoder makes of the records' payloads; from JSON unless another is given.
  ///
  /// - Parameters:
  ///   - decoder: used on the client's loop.
  ///   - decodeFailure: what happens to the subscription when the decoder throws.
  public func decoded<Value: Decodable & SendableMetatype, Coder: TopLevelDecoder & Sendable>(
    as type: Value.Type, decoder: Coder = JSONDecoder(), decodeFailure: DecodeFailure = .fail
  ) -> RemoteTopic<Value> where Coder.Input == Data {
    decoded(decodeFailure: decodeFailure) { try decoder.decode(Value.self, from: Data($0)) }
  }
}

extension Data {
  /// A copy of a record's payload.
  public init(_ record: TopicRecord) {
    self = unsafe record.withUnsafeBytes { unsafe Data($0) }
  }
}
