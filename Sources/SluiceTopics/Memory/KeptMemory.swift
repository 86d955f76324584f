import SluiceWire
import Synchronization

/// Counts and bounds the bytes that the broker keeps for its clients besides records: the sum of all accounts.
///
/// All memory that a client's frame uses beyond the frame's turn is charged to a ``KeptAccount``; the object owns its ``KeptAccount/Charge``:
///
/// | added by clients | bounded by |
/// |---|---|
/// | topics, groups, durable cursors, remembered producers | charged to the identity or address that has made them; `--max-topics`, `--max-cursors`, `--max-producers` |
/// | outstanding records of groups | charged with the group; beyond the limit a group has few of them |
/// | removed names of a durable topic that aren't deleted on disk yet | charged with the topic |
/// | subscriptions, members of groups, publications, requests, with their filters and positions | charged to the connection; `--max-subscriptions`, `--max-publications` |
/// | topics that patterns match, numbers of streams | charged to the connection; `--max-matches`, `--max-streams` |
/// | connections | `--max-connections` |
/// | partial frames, answers, copied records, bytes waiting in gateways and in links to other nodes | ``BrokerMetric/bufferedBytes`` |
/// | records in memory | the pool of segments |
/// | records that wait for the disk | `--storage-backlog` |
/// | credentials that wait to be verified | `--max-authentications` |
/// | identities | only those that are connected, own objects, or were connected a quarter of a second ago |
///
/// ```
///  0 ────────────────────────── 7/8 ──────── limit: half of the memory ceiling
///    all objects, up to each      │ topics, plain subscriptions and publications, requests,
///    account's share              │ of which each account may have an eighth of this part
/// ```
///
/// Existing objects stay. The numbers are estimates of the memory that such an object uses.
///
/// From any thread.
package final class KeptMemory: Sendable {
  /// Bytes of a topic without records, besides its name.
  package static let topic = 3_072
  /// Bytes of a group without outstanding records, besides its settings.
  package static let group = 2_048
  /// Bytes of an outstanding record of a group with explicit acknowledgement.
  static let groupRecord = 160
  /// Bytes of a cursor, besides its name.
  package static let cursor = 400
  package static let producer = 320
  /// Bytes of a topic in a pattern's subscription.
  package static let match = 1_024

  /// The most outstanding records of a group when memory is used up: few, so that its members make progress.
  static let leastGroupRecords = 16

  /// In bytes; 0 for none.
  package let limit: Int
  private let bytes = Atomic(0)
  private let metrics: BrokerMetrics

  init(limit: Int, metrics: BrokerMetrics) {
    self.limit = limit
    self.metrics = metrics
  }

  package var used: Int { bytes.load(ordering: .relaxed) }

  /// The part of the limit that only plain objects use.
  package var reserve: Int { limit / 8 }

  /// Bytes of plain objects that an account may have when its share, or everything but the reserve, is used up.
  package var plainAllowance: Int { reserve / 8 }

  /// Whether objects that may not use the reserve are refused to all accounts.
  package var isFull: Bool { limit > 0 && used >= limit - reserve }

  /// Whether another object would exceed the limit.
  func isExceeded(by size: Int, isPlain: Bool) -> Bool {
    limit > 0 && used + size > (isPlain ? limit : limit - reserve)
  }

  package func add(_ count: Int) {
    bytes.add(count, ordering: .relaxed)
  }

  /// The error with which all accounts are refused new objects. Callers that ask at the same moment may each make one more.
  func refusal() -> WireError {
    metrics.add(.refusedKept)
    return WireError(
      .limitReached,
      "the broker keeps \(used) bytes for its clients besides records, and half of --memory is the limit; delete unneeded topics, groups and cursors, cancel unneeded subscriptions, or have --memory raised"
    )
  }

  /// The error with which one account is refused new objects.
  func refusal(of account: KeptAccount) -> WireError {
    metrics.add(.refusedKept)
    return WireError(
      .limitReached,
      "topics, groups, cursors and subscriptions of \(account.owner) take \(account.used) bytes of memory, and its share of --memory is \(account.share) bytes; delete or cancel those that aren't needed, or raise \(account.owner.setting)"
    )
  }
}
