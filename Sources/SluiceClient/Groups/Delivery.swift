import SluiceIO
import SluiceWire
import Synchronization

/// A record delivered to a group member, which settles it.
///
/// ```swift
/// let jobs = client.group("workers", of: "jobs", options: GroupOptions(acknowledgement: .explicit))
/// let cancellable = jobs.sink { print($0) } receiveValue: { delivery in
///   if work(on: delivery.record) { delivery.acknowledge() } else { delivery.retry() }
/// }
/// ```
///
/// Records may be settled from any thread, at any time, in any order; the settlements of a turn of the client's loop are sent together. Only
/// the first settlement of a delivery counts, except for ``extend()``; none counts after the record was delivered to another member, or the
/// group was created anew. Without a connection settlements are kept, and sent on the next one. After the subscription was cancelled or has
/// ended, records can't be settled: earlier settlements are sent, and the broker delivers the other records to other members.
///
/// In a group with automatic acknowledgement settling has no effect.
public struct Delivery: Sendable {
  public let record: TopicRecord
  /// The number of this delivery of the record, from 1.
  public let count: Int
  let epoch: UInt64
  private let subscription: RemoteSubscription

  init(_ record: TopicRecord, _ subscription: RemoteSubscription) {
    self.record = record
    self.subscription = subscription
    (count, epoch) = (Int(subscription.delivering.delivery), subscription.delivering.epoch)
  }

  /// Settles the record as processed.
  public func acknowledge() { settle(.acknowledge) }

  /// Returns the record to the group to be delivered again, to any member; or makes it a dead letter after ``GroupOptions/deliveries`` deliveries.
  ///
  /// While the record waits, no member has it, and it uses no demand. In a group in order of keys, later records with its key wait, too.
  ///
  /// - Parameter delay: how long the broker waits from when it receives this, in whole milliseconds, at most 49 days; zero for not at all. Nil, the
  ///   default, for the group's ``GroupOptions/retryBackoff``.
  public func retry(after delay: Duration? = nil) {
    let milliseconds = delay.map { UInt32(clamping: max($0.clampedNanoseconds, 0) / 1_000_000) }
    settle(.retry, delay: milliseconds.map { min($0, Settle.byBackoff - 1) } ?? Settle.byBackoff)
  }

  /// Makes the record a dead letter at once: no member can process it.
  public func reject() { settle(.reject) }

  /// Restarts the record's deadline: the member is still processing it.
  public func extend() { settle(.extend) }

  private func settle(_ verdict: Settle.Verdict, delay: UInt32 = Settle.byBackoff) {
    subscription.settle(
      Settlements.Run(
        verdict: verdict, delivery: UInt32(count), epoch: epoch, first: record.offset, count: 1, delay: delay)
    )
  }
}

extension Delivery: CustomStringConvertible {
  /// "jobs 17: 128 bytes, delivery 2"
  public var description: String { "\(record), delivery \(count)" }
}

extension Client {
  /// A topic whose records are shared by the members of a group: the broker delivers each record to one member, the one with demand that
  /// has waited longest.
  ///
  /// Every subscription to the publisher is a member of the group, here and in other clients. The group exists in the broker for as
  /// long as the topic, and keeps its position without members.
  ///
  /// - Order: a member gets records in the order of their offsets, except for those that are delivered again.
  /// - A lost connection is a pause. With explicit acknowledgement the broker delivers this member's records to others as soon as it
  ///   notices; a record that no other member has got yet can be acknowledged on the next connection.
  /// - The end: `.finished`, or a failure, when the topic has ended and all of its records are settled. `.failure` with
  ///   ``ClientError/Code/cursorMoved`` or ``ClientError/Code/cursorDeleted`` when the group was moved, or deleted:
  ///   subscribe again to join the new one.
  ///
  /// - Parameters:
  ///   - name: the group's name, with the rules of a topic's name. The subscription with an invalid name fails with a description of the error.
  ///   - topic: the topic's name.
  ///   - options: how records are shared.
  ///   - start: where the group begins, if this is its first member.
  ///   - filter: which records the group gets; it skips the other ones. All members must give the same filter.
  ///   - prefetch: how far the client requests ahead of a subscriber. The broker delivers these records to no other member.
  public func group(
    _ name: String, of topic: String, options: GroupOptions = GroupOptions(),
    from start: SubscriptionPlan.Start = .replay, where filter: RecordFilter = .all,
    prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<Delivery> {
    group(name, options: options, of: SubscriptionPlan(topic, from: start, where: filter, prefetch: prefetch))
  }

  /// As the other form, with the topic, start, filter, prefetch and ``SubscriptionPlan/ifMissing`` of a plan.
  public func group(
    _ name: String, options: GroupOptions = GroupOptions(), of plan: SubscriptionPlan
  ) -> RemoteTopic<Delivery> {
    var plan = plan
    plan.membership = Membership(group: name, options: options)
    return RemoteTopic(plan, core, RecordDecoding { record, subscription in Delivery(record, subscription) })
  }
}

/// A group member's settlements that weren't sent yet. From any thread.
final class Settlements: Sendable {
  struct Run: Hashable, Sendable {
    var verdict: Settle.Verdict
    var delivery: UInt32
    var epoch: UInt64
    var first: UInt64
    var count: UInt32
    /// As in ``Settle/delay``.
    var delay: UInt32
  }

  private struct State {
    var runs: [Run] = []
    /// Whether a `.settle` command is pending.
    var isLoopNotified = false
  }

  private let state = Mutex(State())

  /// Returns whether a `.settle` command must be posted.
  func add(_ run: Run) -> Bool {
    state.withLock { state in
      if let last = state.runs.last, last.verdict == run.verdict, last.delivery == run.delivery,
        last.epoch == run.epoch, last.delay == run.delay, last.first + UInt64(last.count) == run.first,
        last.count < .max
      {
        state.runs[state.runs.count - 1].count += run.count
      } else {
        state.runs.append(run)
      }
      defer { state.isLoopNotified = true }
      return !state.isLoopNotified
    }
  }

  /// Takes the settlements of this epoch of the topic, and forgets those of earlier ones.
  func take(of epoch: UInt64) -> [Run] {
    state.withLock { state in
      defer { state = State() }
      return state.runs.filter { $0.epoch == epoch }
    }
  }

  /// Keeps the settlements for the next connection, except extended deadlines, which would be outdated.
  func keep() {
    state.withLock { state in
      state.runs.removeAll { $0.verdict == .extend }
      state.isLoopNotified = false
    }
  }
}
