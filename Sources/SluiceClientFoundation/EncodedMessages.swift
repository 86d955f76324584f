public import Foundation
public import ReactiveCore
import ReactiveFoundation
public import SluiceClient

extension Message {
  /// A message with these bytes.
  public init(_ payload: Data, key: String? = nil, headers: [Header] = []) {
    self.init([UInt8](payload), key: key.map { [UInt8]($0.utf8) }, headers: headers)
  }

  /// A message whose payload is an encoded value; JSON unless another encoder is given.
  ///
  /// - Throws: ``ClientError/Code/encodeFailed``.
  public init<Value: Encodable, Coder: TopLevelEncoder>(
    encoding value: Value, encoder: Coder = JSONEncoder(), key: String? = nil, headers: [Header] = []
  ) throws(ClientError) where Coder.Output == Data {
    let payload: Data
    do {
      payload = try encoder.encode(value)
    } catch {
      throw ClientError(unencodable: value, error)
    }
    self.init(payload, key: key, headers: headers)
  }
}

extension TopicSubject {
  /// Publishes a value as JSON, or in another encoder's format. Never waits: see ``TopicSubject/send(_:)->_``.
  ///
  /// ```swift
  /// try subject.send(encoding: order, key: order.id)
  /// ```
  ///
  /// - Returns: as ``TopicSubject/send(_:)->_``.
  /// - Throws: ``ClientError/Code/encodeFailed``; nothing is sent then.
  @discardableResult
  public func send<Value: Encodable, Coder: TopLevelEncoder>(
    encoding value: Value, encoder: Coder = JSONEncoder(), key: String? = nil,
    headers: [Message.Header] = []
  ) throws(ClientError) -> SendResult where Coder.Output == Data {
    send(try Message(encoding: value, encoder: encoder, key: key, headers: headers))
  }

  /// Publishes a value as JSON, or in another encoder's format; returns when it is acknowledged.
  ///
  /// - Throws: ``ClientError/Code/encodeFailed``; as ``TopicSubject/publish(_:)``.
  @discardableResult
  public func publish<Value: Encodable & Sendable, Coder: TopLevelEncoder>(
    encoding value: Value, encoder: Coder = JSONEncoder(), key: String? = nil,
    headers: [Message.Header] = []
  ) async throws(ClientError) -> Receipt where Coder.Output == Data {
    try await publish(try Message(encoding: value, encoder: encoder, key: key, headers: headers))
  }
}

extension Publisher where Output: Encodable {
  /// Publishes this publisher's values as JSON, or in another encoder's format: see `publish(to:when:failure:)`. A value that can't be encoded ends the
  /// topic with a failure.
  ///
  /// ```swift
  /// let publication = sensor.readings.publish(to: client.subject("readings"), when: .connected)
  /// ```
  ///
  /// - Parameters:
  ///   - key: returns the record's key for a value; nil for none.
  ///   - failure: returns the failure that subscribers get for the publisher's failure, or for a value that can't be encoded; nil for
  ///     ``TopicFailure/init(localized:)``.
  public func publish<Coder: TopLevelEncoder>(
    to subject: TopicSubject, when condition: PublishCondition, encoder: Coder = JSONEncoder(),
    key: ((Output) -> String?)? = nil, failure: ((any Error) -> TopicFailure)? = nil
  ) -> SourcePublication where Coder.Output == Data {
    tryMap { try Message(encoding: $0, encoder: encoder, key: key?($0)) }
      .mapError { error -> any Error in
        failure != nil || error is ClientError ? error : TopicFailure(localized: error)
      }
      .publish(to: subject, when: condition, failure: failure)
  }
}
