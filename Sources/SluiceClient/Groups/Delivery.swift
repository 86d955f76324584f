import SluiceWire
import Synchronization

/// A record as a member of a group gets it, and what the member says of it.
///
/// ```swift
/// let jobs = client.group("workers", of: "jobs", options: GroupOptions(acknowledgement: .explicit))
/// let cancellable = jobs.sink { print($0) } receiveValue: { delivery in
///   if work(on: delivery.record) { delivery.acknowledge() } else { delivery.refuse() }
/// }
/// ```
///
/// Any thread may say it, at any time, in any order; what is said in a turn of the client's loop travels together. Only the first word about
/// a delivery counts, except for ``extend()``; and none does when the record was given to another member meanwhile, or the group made
/// anew. While there is no connection it is kept, and told to the broker on the next one. When the subscription was cancelled or has ended
/// nothing can be said any more: what was said before is told, and what is left goes to other members.
///
/// In a group with automatic acknowledgement all of this does nothing.
public struct Delivery: Sendable {
  public let record: TopicRecord
  /// For which time the record is delivered, from 1 on.
  public let count: Int
  /// Of the topic's life.
  let epoch: UInt64
  private let subscription: RemoteSubscription

  init(_ record: TopicRecord, _ subscription: RemoteSubscription) {
    self.record = record
    self.subscription = subscription
    (count, epoch) = (Int(subscription.delivering.delivery), subscription.delivering.epoch)
  }

  /// The record is done.
  public func acknowledge() { settle(.done) }

  /// The record should be delivered again, to anybody; or is given up, if it was delivered as often as ``GroupOptions/deliveries`` says.
  public func refuse() { settle(.again) }

  /// Nobody will get the record done: it is given up at once.
  public func reject() { settle(.dead) }

  /// The record is being worked on: its deadline begins anew.
  public func extend() { settle(.working) }

  private func settle(_ verdict: Settle.Verdict) {
    subscription.settle(
      Settlements.Run(
        verdict: verdict, delivery: UInt32(count), epoch: epoch, first: record.offset, count: 1))
  }
}

extension Delivery: CustomStringConvertible {
  /// "jobs 17: 128 bytes, delivery 2"
  public var description: String { "\(record), delivery \(count)" }
}

extension Client {
  /// A topic whose records this client's subscribers share with all others that name the same group: each record goes to one of
  /// them, the one with demand that has waited longest.
  ///
  /// Every subscription to the publisher is a member of the group, here and in other clients. The group lives in the broker for as
  /// long as the topic: one that has no members keeps its place.
  ///
  /// - Order: a member gets records in the order of their offsets, except for those that are delivered again.
  /// - A lost connection is a pause. With explicit acknowledgement the broker gives what this member has to others as soon as it
  ///   notices; when nobody has got it yet, it counts as done if it is acknowledged on the next connection.
  /// - The end: `.finished`, or a failure, when the topic has ended and all of its records are done with. `.failure` with
  ///   ``ClientError/Code/cursorMoved`` or ``ClientError/Code/cursorDeleted`` when somebody has put the group elsewhere, or deleted it:
  ///   subscribe again to be a member of the new one.
  ///
  /// - Parameters:
  ///   - name: the group's, which must be like a topic's. What is wrong with it is told to the subscriber.
  ///   - topic: the topic's name.
  ///   - options: how records are shared.
  ///   - start: where the group begins, if this is its first member.
  ///   - filter: which records the group is for; the others are passed over. All of its members must want the same.
  ///   - prefetch: how far the client asks ahead of a subscriber. What it has asked for isn't given to other members.
  public func group(
    _ name: String, of topic: String, options: GroupOptions = GroupOptions(),
    from start: SubscriptionPlan.Start = .replay, where filter: RecordFilter = .all,
    prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<Delivery> {
    group(name, options: options, of: SubscriptionPlan(topic, from: start, where: filter, prefetch: prefetch))
  }

  /// The same for a plan, of which topic, start, filter, prefetch and ``SubscriptionPlan/ifMissing`` count.
  public func group(
    _ name: String, options: GroupOptions = GroupOptions(), of plan: SubscriptionPlan
  ) -> RemoteTopic<Delivery> {
    var plan = plan
    plan.membership = Membership(group: name, options: options)
    return RemoteTopic(plan, core, RecordDecoding { record, subscription in Delivery(record, subscription) })
  }
}

/// What a member has said of its records and the broker doesn't know yet. From any thread.
final class Settlements: Sendable {
  struct Run: Hashable, Sendable {
    var verdict: Settle.Verdict
    var delivery: UInt32
    var epoch: UInt64
    var first: UInt64
    var count: UInt32
  }

  private struct State {
    var runs: [Run] = []
    /// The loop knows that there is something to take.
    var isNoted = false
  }

  private let state = Mutex(State())

  /// Returns true when the loop must be told.
  func add(_ run: Run) -> Bool {
    state.withLock { state in
      if let last = state.runs.last, last.verdict == run.verdict, last.delivery == run.delivery,
        last.epoch == run.epoch, last.first + UInt64(last.count) == run.first, last.count < .max
      {
        state.runs[state.runs.count - 1].count += run.count
      } else {
        state.runs.append(run)
      }
      defer { state.isNoted = true }
      return !state.isNoted
    }
  }

  /// Takes what is about this life of the topic; the rest means nothing any more.
  func take(of epoch: UInt64) -> [Run] {
    state.withLock { state in
      defer { state = State() }
      return state.runs.filter { $0.epoch == epoch }
    }
  }

  /// There is no connection. That something is being worked on will be old when there is.
  func keep() {
    state.withLock { state in
      state.runs.removeAll { $0.verdict == .working }
      state.isNoted = false
    }
  }
}
