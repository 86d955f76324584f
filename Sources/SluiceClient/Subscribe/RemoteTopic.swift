import ReactiveCore

/// A broker's topic as a publisher: the records that it keeps for late subscribers, then new ones, at the subscriber's pace.
///
/// ```swift
/// let client = try await Client.connect(to: "127.0.0.1:7420")
/// let errors = client.topic("logs.web", from: .last(100))
///   .filter { $0.string.contains("ERROR") }
///   .sink { completion in print(completion) } receiveValue: { print($0.string) }
/// ```
///
/// Its values are records, ``TopicRecord``, or values decoded from them: see ``decoded(as:decoder:decodeFailure:)``.
///
/// Every subscriber has its own subscription at the broker, and its own demand: the broker sends it as many records as it has requested,
/// including replay. A subscriber with little or no demand doesn't delay other clients.
///
/// - Threads: values and completions are delivered on the client's loop, one at a time; while a subscriber runs, the client's other
///   subscribers wait, and the connection isn't read. The subscription may be used from any thread.
/// - Order: records come in the order of their offsets. There are gaps only with ``SubscriptionPlan/Lag/skip``, and if the topic keeps only the newest record
///   of each key: records that were replaced before their delivery are skipped, without a lag.
/// - Cancelling ends this subscription at the broker, and no other one. After `cancel()` has returned nothing more is delivered, except
///   that a call which another thread has begun may still be running.
/// - The end: `.finished` when a producer has finished the topic and all requested records are delivered. `.failure` with
///   ``ClientError/Code/topicFailed`` when a producer failed it; with another code when the subscription was refused, the topic deleted,
///   a record can't be decoded, or the client was closed or has given up reconnecting.
/// - A lost connection is a pause. On the next one the subscription continues behind the last received record, with the rest of its demand:
///   without a gap, without duplicates, and within its demand. ``SubscriptionPlan/lag`` decides what happens if records were dropped meanwhile, or the topic
///   was started anew because the broker was restarted and had it in memory; ``Client/notices`` reports both.
public struct RemoteTopic<Output>: Publisher, Sendable {
  public typealias Failure = ClientError

  /// The plan of subscriptions: their requests to the broker.
  public let plan: SubscriptionPlan
  @usableFromInline let core: ClientCore
  /// Nil only if `Output` is `TopicRecord`: records are then delivered as they are.
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
          decoding.deliver(record, for: subscription) { subscriber.receive($0) }
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

  /// The topic with values that `decode` makes of the records.
  ///
  /// ```swift
  /// let lengths = client.topic("lines").decoded { record in (record.offset, record.count) }
  /// ```
  ///
  /// - Parameters:
  ///   - decodeFailure: what happens to the subscription when `decode` throws.
  ///   - decode: called on the client's loop, once for each requested record, right before the delivery of its value.
  public func decoded<Value>(
    decodeFailure: DecodeFailure = .fail, by decode: @escaping @Sendable (TopicRecord) throws -> Value
  ) -> RemoteTopic<Value> {
    RemoteTopic<Value>(plan, core, RecordDecoding(onFailure: decodeFailure, decode))
  }

  /// The topic with values that a decoder makes of the records' payloads.
  ///
  /// - Parameters:
  ///   - type: the values' type.
  ///   - decoder: used on the client's loop.
  ///   - decodeFailure: what happens to the subscription when the decoder throws.
  public func decoded<Value: Decodable & SendableMetatype, Coder: TopLevelDecoder & Sendable>(
    as type: Value.Type, decoder: Coder, decodeFailure: DecodeFailure = .fail
  ) -> RemoteTopic<Value> where Coder.Input == [UInt8] {
    decoded(decodeFailure: decodeFailure) { try decoder.decode(Value.self, from: $0.payload) }
  }
}

/// A subscriber of any type, which the loop calls once for each batch.
///
/// Closures rather than a generic subclass: the compiler specialises a closure for the subscriber's type, but not the overridden methods
/// of a generic class.
@usableFromInline
final class Receiver {
  /// Delivers at most `limit` records of a batch. Returns the resulting demand.
  @usableFromInline typealias Records = (inout DeliveredBatch, _ limit: Int, RemoteSubscription) ->
    Subscribers.Demand
  /// Delivers an event between records. Returns the resulting demand.
  @usableFromInline typealias Mark = (TopicMark) -> Subscribers.Demand
  @usableFromInline typealias Completion = (Subscribers.Completion<ClientError>) -> Void

  let records: Records
  /// Nil if the subscriber gets records only.
  let mark: Mark?
  let completion: Completion

  @usableFromInline
  init(records: @escaping Records, mark: Mark?, completion: @escaping Completion) {
    self.records = records
    self.mark = mark
    self.completion = completion
  }
}
