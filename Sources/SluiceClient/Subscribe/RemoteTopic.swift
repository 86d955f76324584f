import ReactiveCore

/// A topic of a broker as a publisher: what it keeps for late subscribers, then what is published, at the subscriber's pace.
///
/// ```swift
/// let client = try await Client.connect(to: "127.0.0.1:7420")
/// let errors = client.topic("logs.web", from: .last(100))
///   .filter { $0.string.contains("ERROR") }
///   .sink { completion in print(completion) } receiveValue: { print($0.string) }
/// ```
///
/// Its values are records as they come, ``TopicRecord``, or what a decoder makes of them: see ``decoded(as:decoder:decodeFailure:)``.
///
/// Every subscriber gets a subscription of its own at the broker, and its own demand: the broker sends a subscriber what it has
/// asked for and no more, replay included, and one that asks for little, or nothing, holds up nobody else.
///
/// - Threads: values and completions are delivered on the client's loop, one at a time; while a subscriber runs, the others of the same
///   client wait, and the connection isn't read. The subscription may be used from any thread.
/// - Order: records come in the order of their offsets, without gaps unless ``SubscriptionPlan/Lag/skip`` says so, or the topic
///   keeps only the newest record of each key: what was replaced before it was delivered is skipped then, and isn't told as a lag.
/// - Cancelling tells the broker to forget this subscription, and nobody else notices. After `cancel()` has returned nothing more
///   is delivered, except that a call which another thread has begun may still be under way.
/// - The end: `.finished` when a producer has finished the topic and all that was asked for is delivered. `.failure` with
///   ``ClientError/Code/topicFailed`` when a producer failed it; with another code when the subscription was refused, the topic deleted,
///   a record can't be decoded, or the client closed or out of patience.
/// - A lost connection is a pause. On the next one the subscription goes on with the record behind the last one that it has received, and with
///   what is left of its demand: it sees no gap, no record twice, and no more than it asked for. When records were dropped
///   meanwhile, or the topic was started anew, ``SubscriptionPlan/Lag`` says what happens.
public struct RemoteTopic<Output>: Publisher, Sendable {
  public typealias Failure = ClientError

  /// What subscriptions ask of the broker.
  public let plan: SubscriptionPlan
  @usableFromInline let core: ClientCore
  /// Nil only where `Output` is `TopicRecord`: records are handed on as they are then.
  @usableFromInline let decoding: RecordDecoding<Output>?

  init(_ plan: SubscriptionPlan, _ core: ClientCore, _ decoding: RecordDecoding<Output>?) {
    self.plan = plan
    self.core = core
    self.decoding = decoding
  }

  /// The same, with another prefetch.
  func prefetching(_ prefetch: SubscriptionPlan.Prefetch) -> RemoteTopic {
    var plan = plan
    plan.prefetch = prefetch
    return RemoteTopic(plan, core, decoding)
  }

  /// The topic's name.
  public var name: String { plan.topic }

  @inlinable
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == ClientError {
    let records: Receiver.Records
    if let decoding {
      records = { batch, limit, subscription in
        batch.deliver(atMost: limit, unlessCancelled: subscription) { record in
          decoding.hand(record, for: subscription) { subscriber.receive($0) }
        }
      }
    } else {
      records = { batch, limit, subscription in
        // The same type, see `decoding`.
        batch.deliver(atMost: limit, unlessCancelled: subscription) {
          unsafe subscriber.receive(unsafeBitCast($0, to: Output.self))
        }
      }
    }
    let subscription = RemoteSubscription(
      plan, core,
      Receiver(records: records, mark: nil, completion: { subscriber.receive(completion: $0) }))
    subscriber.receive(subscription: subscription)
    subscription.start()
  }
}

extension RemoteTopic where Output == TopicRecord {
  init(_ plan: SubscriptionPlan, _ core: ClientCore) {
    self.init(plan, core, nil)
  }

  /// The topic with what `decode` makes of each record.
  ///
  /// ```swift
  /// let lengths = client.topic("lines").decoded { record in (record.offset, record.count) }
  /// ```
  ///
  /// - Parameters:
  ///   - decodeFailure: what becomes of the subscription when `decode` throws.
  ///   - decode: called on the client's loop, once for each record that the subscriber has asked for, right before it gets what comes
  ///     out of it.
  public func decoded<Value>(
    decodeFailure: DecodeFailure = .fail, by decode: @escaping @Sendable (TopicRecord) throws -> Value
  ) -> RemoteTopic<Value> {
    RemoteTopic<Value>(plan, core, RecordDecoding(onFailure: decodeFailure, decode))
  }

  /// The topic with what a decoder makes of each record's payload.
  ///
  /// - Parameters:
  ///   - type: of the values.
  ///   - decoder: used on the client's loop.
  ///   - decodeFailure: what becomes of the subscription when the decoder throws.
  public func decoded<Value: Decodable & SendableMetatype, Coder: TopLevelDecoder & Sendable>(
    as type: Value.Type, decoder: Coder, decodeFailure: DecodeFailure = .fail
  ) -> RemoteTopic<Value> where Coder.Input == [UInt8] {
    decoded(decodeFailure: decodeFailure) { try decoder.decode(Value.self, from: $0.payload) }
  }
}

/// A subscriber as the loop calls it: once per batch, whatever its type.
///
/// Closures rather than a generic subclass: a closure made where the subscriber's type is known is compiled for that type, while a
/// generic class's overridden methods are not.
@usableFromInline
final class Receiver {
  /// Hands over so many records of a batch at the most. Returns the demand that they brought.
  @usableFromInline typealias Records = (inout DeliveredBatch, _ limit: Int, RemoteSubscription) ->
    Subscribers.Demand
  /// Hands over an event between records. Returns the demand that it brought.
  @usableFromInline typealias Mark = (TopicMark) -> Subscribers.Demand
  @usableFromInline typealias Completion = (Subscribers.Completion<ClientError>) -> Void

  let records: Records
  /// Nil when only records are wanted.
  let mark: Mark?
  let completion: Completion

  @usableFromInline
  init(
    records: @escaping Records, mark: Mark?, completion: @escaping Completion
  ) {
    self.records = records
    self.mark = mark
    self.completion = completion
  }
}
