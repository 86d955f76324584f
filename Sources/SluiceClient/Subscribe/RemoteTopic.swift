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
/// Every subscriber gets a subscription of its own at the broker, and its own demand: the broker sends a subscriber what it has
/// asked for and no more, replay included, and one that asks for little, or nothing, holds up nobody else.
///
/// - Threads: values and completions are delivered on the client's loop, one at a time; while a subscriber runs, the others of the same
///   client wait, and the connection isn't read. The subscription may be used from any thread.
/// - Order: records come in the order of their offsets, without gaps unless ``Lag/skip`` says so.
/// - Cancelling tells the broker to forget this subscription, and nobody else notices. After `cancel()` has returned nothing more
///   is delivered, except that a call which another thread has begun may still be under way.
/// - The end: `.finished` when a producer has finished the topic and all that was asked for is delivered. `.failure` with
///   ``ClientError/Code/topicFailed`` when a producer failed it; with another code when the subscription was refused, the topic deleted,
///   or the client closed or out of patience.
/// - A lost connection is a pause. On the next one the subscription goes on with the record behind the last one that it has received, and with
///   what is left of its demand: it sees no gap, no record twice, and no more than it asked for. When records were dropped
///   meanwhile, or the topic was started anew, ``Lag`` says what happens.
public struct RemoteTopic: Publisher, Sendable {
  public typealias Output = TopicRecord
  public typealias Failure = ClientError

  /// Where a subscription begins.
  public enum Start: Hashable, Sendable {
    /// At what the topic keeps for late subscribers, then live.
    case replay
    /// At the oldest record that there is.
    case earliest
    /// At the next record to be published.
    case new
    /// That many records before the end, or as many as there are.
    case last(UInt64)
    /// At that offset. If it is gone, the subscription lags from its start; if it isn't there yet, it is waited for.
    case offset(UInt64)
    /// At the first record that isn't older than this, in milliseconds since 1970; when all are older, at the next one.
    case time(Int64)
  }

  /// What happens when the topic drops records before the subscriber asked for them.
  public enum Lag: Hashable, Sendable {
    /// Goes on with the oldest there is. ``RemoteTopic/events`` tells how many were missed. A topic that was started anew while there was
    /// no connection is received from its beginning, with other offsets.
    case skip
    /// Ends with ``ClientError/Code/lagged``, or with ``ClientError/Code/epochChanged`` when the topic was started anew.
    case fail
  }

  /// How far the client asks ahead of the subscriber.
  public enum Prefetch: Hashable, Sendable {
    /// Not at all: the broker may send exactly what the subscriber requested.
    case byRequest
    /// The client asks for so many records more than the subscriber has got, and keeps them until it requests them. Hides the
    /// network's delay from a subscriber that requests little at a time.
    case keepFull(Int)
  }

  /// The topic's name.
  public let name: String
  public let start: Start
  /// Nil for what the topic's settings say.
  public let lag: Lag?
  public let prefetch: Prefetch
  let core: ClientCore

  init(_ name: String, _ core: ClientCore, from start: Start, lag: Lag?, prefetch: Prefetch) {
    self.name = name
    self.core = core
    self.start = start
    self.lag = lag
    self.prefetch = prefetch
  }

  @inlinable
  public func receive<S: Subscriber>(subscriber: S) where S.Input == TopicRecord, S.Failure == ClientError {
    let bridge = DemandBridge(
      self,
      Receiver(
        records: { batch, limit, bridge in
          batch.deliver(atMost: limit, unlessCancelled: bridge) { subscriber.receive($0) }
        },
        mark: nil,
        completion: { subscriber.receive(completion: $0) }))
    subscriber.receive(subscription: bridge)
    bridge.start()
  }
}
