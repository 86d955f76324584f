import SluiceWire

/// How a group shares a topic's records. The group is made with what its first member says; the others must say the same, or get
/// ``ClientError/Code/groupMismatch``.
public struct GroupOptions: Hashable, Sendable {
  public enum Acknowledgement: Hashable, Sendable {
    /// A record is done when the broker has sent it. One that is under way while the connection is lost doesn't come again.
    case automatic
    /// A record is done when its member says so, see ``Delivery``. Otherwise it is delivered again: when the member goes away, refuses
    /// it, or lets its deadline pass.
    case explicit
  }

  public enum Order: Hashable, Sendable {
    /// Members work on any records at a time.
    case any
    /// Of the records with one key, only one is with a member at a time, and the next follows when that is done; also after it was
    /// delivered again. Records without a key wait for none. Needs explicit acknowledgement.
    case byKey
  }

  /// Default: automatic.
  public var acknowledgement: Acknowledgement
  /// Default: any.
  public var order: Order
  /// For how long a member may have a record before it is delivered to another one. Up to 49 days, in whole milliseconds; nil, the
  /// default, for ever. Needs explicit acknowledgement.
  public var deadline: Duration?
  /// How many times a record is delivered before it is given up. Nil, the default, for any number. Needs explicit acknowledgement.
  public var deliveries: UInt32?
  /// The topic for records that are given up, made by its first use. They keep key, headers and payload, and get headers that say where
  /// they are from and why: `sluice-dead-topic`, `-group`, `-offset`, `-deliveries` and `-reason` (refused, rejected, deadline or
  /// member-left). Nil, the default: they are dropped. Needs explicit acknowledgement.
  public var deadLetters: String?

  public init(
    acknowledgement: Acknowledgement = .automatic, order: Order = .any, deadline: Duration? = nil,
    deliveries: UInt32? = nil, deadLetters: String? = nil
  ) {
    self.acknowledgement = acknowledgement
    self.order = order
    self.deadline = deadline
    self.deliveries = deliveries
    self.deadLetters = deadLetters
  }
}

/// A member's share in a group: its name and its options.
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
      deadline: options.deadline.map { max(UInt32(clamping: $0.wholeMilliseconds), 1) } ?? 0,
      deliveries: options.deliveries ?? 0, deadLetters: options.deadLetters ?? "",
      filter: filter)
  }
}

extension Duration {
  fileprivate var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? .max : whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000).partialValue
  }
}
