import ReactiveCore
import SluiceIO
import SluiceWire

/// Whether the broker accepts the records of a ``TopicSubject``.
public enum PublishingState: Hashable, Sendable {
  /// The broker accepts granted records while there is a connection: see ``Client/connectionState``.
  case active
  /// The broker's storage is full or fails; the client retries after this time, with this attempt. The cause is ``ClientError/Code/storageFull`` or
  /// ``ClientError/Code/storageFailed``. Lasts until the broker has accepted a record.
  case waiting(Duration, attempt: Int, cause: ClientError)
}

extension TopicSubject {
  /// Whether the broker accepts the records published here, now and at each change.
  ///
  /// A broker whose storage is full refuses records for durable topics. The subject then retries, with the delays and limits of ``ClientOptions/reconnect``,
  /// or without a limit if ``ReconnectPolicy/limitsStorageWaits`` is false. Unacknowledged records are kept and published again, once and in their order; the
  /// ``Buffer`` keeps its limits, so no more records are requested from a source. Only with ``Acknowledgement/none`` are refused records lost.
  ///
  /// Values are delivered on the client's loop, the first one on the caller's thread. Finishes when the publication has ended; cancelling affects
  /// this subscription only.
  public var state: AnyPublisher<PublishingState, Never> { publication.states.eraseToAnyPublisher() }
}

/// The delays before a publication refused by the broker's storage, or a subscription ended by one of its limits, is reopened. On the loop only.
struct Reopening {
  private var backoff: Reconnect?
  /// Refused, and no record has been accepted since.
  private(set) var isRefused = false

  /// - Returns: the delay before the next attempt; nil to give up.
  mutating func refused(
    _ policy: ReconnectPolicy?, seed: @autoclosure () -> UInt64, at now: MonotonicTime
  ) -> (delay: Duration, attempt: Int)? {
    var backoff = backoff ?? Reconnect(policy?.forStorage, servers: 1, seed: seed())
    defer { self.backoff = backoff }
    // Storage that fails with the first record hasn't recovered: the delays keep growing.
    let step = isRefused ? backoff.failed(at: now) : backoff.lost(at: now)
    isRefused = true
    guard case .wait(let delay) = step else { return nil }
    let attempt = backoff.attempts + 1
    _ = backoff.waited()
    return (delay, attempt)
  }

  /// Notes that the broker has accepted a record.
  mutating func taken(at now: MonotonicTime) {
    isRefused = false
    backoff?.connected(at: now)
  }
}

extension ErrorCode {
  /// Whether publishing fails because of the broker's storage, and may succeed later.
  var isOfStorage: Bool { self == .storageFull || self == .storageFailed }
}

extension ReconnectPolicy {
  /// The policy of a publication that waits for the broker's storage.
  fileprivate var forStorage: ReconnectPolicy {
    guard !limitsStorageWaits else { return self }
    var policy = self
    policy.giveUpAfter = nil
    policy.attempts = nil
    return policy
  }
}
