import SluiceIO

@testable import SluiceClient

/// Records the workers' deliveries and acknowledgements.
final class GroupOracle {
  struct Place: Hashable {
    var epoch: UInt64
    var offset: UInt64
  }

  private let plan: GroupPlan
  private(set) var failures: [String] = []
  /// The member that got each delivery of a record, by delivery number.
  private var deliveries: [Place: [Int: Int]] = [:]
  /// The event number at which each record was first acknowledged.
  private(set) var acknowledged: [Place: Int] = [:]
  /// When a record with a key was received.
  /// Until when each retried record has to wait at least, by the number of its next delivery.
  private var retries: [Place: [Int: MonotonicTime]] = [:]
  private var keyed: [(place: Place, key: String, event: Int)] = []
  private var events = 0
  private var hasCrashed = false
  /// Records before this offset may be dropped. A request may reach the topic only after a crash.
  private var trimmedTo: UInt64 = 0
  private(set) var received = 0

  init(_ plan: GroupPlan) {
    self.plan = plan
  }

  func fail(_ what: String) {
    if failures.count < 20 { failures.append(what) }
  }

  func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { fail(what()) }
  }

  func received(_ place: Place, count: Int, key: String?, by worker: Int, at time: MonotonicTime) {
    events += 1
    received += 1
    if plan.showsDelays, let until = retries[place]?[count], time < until {
      fail("delivery \(count) of record \(place.offset) came \(until - time) before its time")
    }
    // Deliveries of a crashed broker may still arrive, and the next broker needn't know of them.
    if let other = deliveries[place]?[count], !hasCrashed || !plan.isDurable {
      fail("delivery \(count) of record \(place.offset) went to worker \(other) and to worker \(worker)")
    }
    deliveries[place, default: [:]][count] = worker
    check(plan.isExplicit || count == 1, "record \(place.offset) came \(count) times without need")
    if let most = plan.options.deliveries {
      check(
        count <= Int(most), "record \(place.offset) came for the \(count)th time, where \(most) was the most")
    }
    if let key { keyed.append((place, key, events)) }
  }

  /// A worker retries a delivery.
  func retried(_ place: Place, count: Int, after delay: Duration, at time: MonotonicTime) {
    retries[place, default: [:]][count + 1] = time + .milliseconds(Int64(delay / .milliseconds(1)))
  }

  /// The broker was killed. In a durable topic, what happened last may not have been on disk: it happens once more.
  func crashed() {
    deliveries = [:]
    hasCrashed = true
  }

  /// The topic is trimmed to that offset.
  func trims(to offset: UInt64) { trimmedTo = max(trimmedTo, offset) }

  func acknowledged(_ place: Place) {
    events += 1
    if acknowledged[place] == nil { acknowledged[place] = events }
  }

  /// Checks that every record of the topic's last epoch is done or dead-lettered.
  ///
  /// - Parameters:
  ///   - keys: the keys of the topic's records, by offset.
  ///   - dead: the offsets of the records in the dead-letter topic, with duplicates.
  func audit(epoch: UInt64, keys: [String?], dead: [UInt64]) {
    check(Set(dead).count == dead.count || hasCrashed, "a record is among the dead letters twice: \(dead)")
    let dead = Set(dead)
    let first = trimmedTo
    for offset in first..<max(first, UInt64(keys.count)) {
      let place = Place(epoch: epoch, offset: offset)
      if plan.isExplicit {
        check(
          acknowledged[place] != nil || dead.contains(offset),
          "record \(offset) counts as done, but no member has done it; its deliveries: \(deliveries[place] ?? [:])"
        )
      } else if plan.isQuiet {
        check(deliveries[place] != nil, "record \(offset) went to no member")
      }
    }
    guard plan.options.order == .byKey else { return }
    for (place, key, event) in keyed where place.epoch == epoch && place.offset > first {
      for before in first..<place.offset where keys[Int(before)] == key {
        let done = acknowledged[Place(epoch: epoch, offset: before)]
        check(
          done.map { $0 < event } ?? false || dead.contains(before),
          "record \(place.offset) with key \(key) came before record \(before) was done")
      }
    }
  }
}
