import ReactiveCore
import SluiceIO
import SluiceWire

/// Whether the broker takes what a ``TopicSubject`` publishes.
public enum PublishingState: Hashable, Sendable {
  /// It does, as far as it grants, and as there is a connection: see ``Client/connectionState``.
  case active
  /// It can't for now: its storage has no room, or fails. It is asked again after that time, for the so-manyth time; the cause is
  /// ``ClientError/Code/storageFull`` or ``ClientError/Code/storageFailed``. Lasts until the broker has taken something.
  case waiting(Duration, attempt: Int, cause: ClientError)
}

extension TopicSubject {
  /// Whether the broker takes what is published here, now and from now on.
  ///
  /// A broker whose storage has no room refuses what is published to durable topics. A subject waits then, and asks again, at the times and for as
  /// long as ``ClientOptions/reconnect`` says of lost connections. What isn't acknowledged is kept and published again, once and in its order; the
  /// ``Buffer`` holds no more than ever, so a source isn't asked for more. Only with ``Acknowledgement/none`` what was refused is lost.
  ///
  /// Values are delivered on the client's loop, the first one on the caller's thread. Finishes when the publication is over; cancelling changes
  /// nothing for others.
  public var state: AnyPublisher<PublishingState, Never> { publication.states.eraseToAnyPublisher() }
}

/// When a publication that was refused for now is tried again. On the loop only.
struct Reopening {
  private var rhythm: Reconnect?
  /// Refused, and nothing was taken since.
  private(set) var isRefused = false

  /// - Returns: how long to wait; nil to give up.
  mutating func refused(
    _ policy: ReconnectPolicy?, seed: @autoclosure () -> UInt64, at now: MonotonicTime
  ) -> (delay: Duration, attempt: Int)? {
    var rhythm = rhythm ?? Reconnect(policy, servers: 1, seed: seed())
    defer { self.rhythm = rhythm }
    // A broker that breaks down under the first record is one that hasn't come back.
    let step = isRefused ? rhythm.failed(at: now) : rhythm.lost(at: now)
    isRefused = true
    guard case .wait(let delay) = step else { return nil }
    let attempt = rhythm.attempts + 1
    _ = rhythm.waited()
    return (delay, attempt)
  }

  /// Something was taken.
  mutating func taken(at now: MonotonicTime) {
    isRefused = false
    rhythm?.connected(at: now)
  }
}

extension ErrorCode {
  /// Whether it says that nothing can be published for now, and may be later.
  var isOfStorage: Bool { self == .storageFull || self == .storageFailed }
}
