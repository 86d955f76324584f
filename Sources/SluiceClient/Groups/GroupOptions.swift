import SluiceIO
import SluiceWire

/// How a group shares a topic's records. The first member's options create the group; members with other options fail with
/// ``ClientError/Code/groupMismatch``.
public struct GroupOptions: Hashable, Sendable {
  public enum Acknowledgement: Hashable, Sendable {
    /// A record is settled when the broker has sent it. A record in flight when the connection is lost isn't delivered again.
    case automatic
    /// A record is settled by its member, see ``Delivery``. It is delivered again when the member leaves, retries it, or lets its deadline
    /// pass.
    case explicit
  }

  public enum Order: Hashable, Sendable {
    /// Members process any records at a time.
    case any
    /// At most one record of each key is with a member at a time, even if it is delivered again; the next follows when it is settled. Records without a key
    /// don't wait. Needs explicit acknowledgement.
    case byKey
  }

  /// Default: automatic.
  public var acknowledgement: Acknowledgement
  /// Default: any.
  public var order: Order
  /// How long a member may hold a record before it is delivered to another one. Up to 49 days, in whole milliseconds; nil, the default, for no limit. Needs
  /// explicit acknowledgement.
  public var deadline: Duration?
  /// How many times a record is delivered before it becomes a dead letter. Nil, the default, for no limit. Needs explicit acknowledgement.
  public var deliveries: UInt32?
  /// The topic for dead letters, which the first one creates. They keep key, headers and payload, and get headers with their origin and
  /// reason: `sluice-dead-topic`, `-group`, `-offset`, `-deliveries` and `-reason` (retried, rejected, deadline or
  /// member-left). Nil, the default: dead letters are dropped. Needs explicit acknowledgement.
  public var deadLetters: String?
  /// How long a record waits for its next delivery if its member retries it without a delay, or misses its deadline. The wait is the lower
  /// bound after the first delivery, and doubles with each further one up to the upper bound. From 1 millisecond to 49 days, in whole
  /// milliseconds. Nil, the default, for no wait. Needs explicit acknowledgement.
  public var retryBackoff: ClosedRange<Duration>?

  public init(
    acknowledgement: Acknowledgement = .automatic, order: Order = .any, deadline: Duration? = nil,
    deliveries: UInt32? = nil, deadLetters: String? = nil, retryBackoff: ClosedRange<Duration>? = nil
  ) {
    self.acknowledgement = acknowledgement
    self.order = order
    self.deadline = deadline
    self.deliveries = deliveries
    self.deadLetters = deadLetters
    self.retryBackoff = retryBackoff
  }
}

/// The group that a subscription joins, and the options that it states.
struct Membership: Hashable, Sendable {
  var group: String
  var options: GroupOptions

  func join(_ plan: SubscriptionPlan, granted: UInt64) -> JoinGroup {
    JoinGroup(
      topic: plan.topic, group: group, start: Subscribe.Start(plan.start),
      settings: settings(plan.filter), ifMissing: Subscribe.IfMissing(plan.ifMissing),
      grantedThrough: granted)
  }

  private func settings(_ filter: RecordFilter) -> JoinGroup.Settings {
    JoinGroup.Settings(
      acknowledgement: options.acknowledgement == .explicit ? .explicit : .automatic,
      order: options.order == .byKey ? .byKey : .any,
      deadline: options.deadline.map(milliseconds) ?? 0,
      deliveries: options.deliveries ?? 0, deadLetters: options.deadLetters ?? "",
      filter: filter,
      retryBackoff: options.retryBackoff.map {
        JoinGroup.Backoff(first: milliseconds($0.lowerBound), longest: milliseconds($0.upperBound))
      } ?? .none)
  }

  private func milliseconds(_ duration: Duration) -> UInt32 {
    max(UInt32(clamping: duration.clampedNanoseconds / 1_000_000), 1)
  }
}
