import SluiceIO
import SluiceLog
import Synchronization

/// Which topics of other nodes this node reads once for several subscribers. Shared by all loops.
final class MirrorTable: Sendable {
  /// What becomes of a subscription that has come to the head of its topic.
  enum Place {
    /// It is the only one so far.
    case alone
    case mirror(Mirror)
    /// It is another one: it is to make a mirror.
    case first
  }

  private struct Entry {
    var mirror: Mirror?
    /// Subscriptions of their own at the head.
    var candidates: [StreamContinuation] = []
  }

  private let entries = Mutex<[String: Entry]>([:])

  /// Enters a subscription that has come to the head of its topic.
  func enter(_ candidate: StreamContinuation, of topic: String) {
    entries.withLock { entries in
      var entry = entries[topic] ?? Entry()
      entry.candidates.append(candidate)
      entries[topic] = entry
    }
  }

  /// What is to become of a subscription that was entered.
  func place(in topic: String) -> Place {
    entries.withLock { entries in
      guard let entry = entries[topic] else { return .alone }
      if let mirror = entry.mirror { return .mirror(mirror) }
      return entry.candidates.count > 1 ? .first : .alone
    }
  }

  /// Takes a new mirror in, unless there is another.
  func add(_ mirror: Mirror) -> Bool {
    entries.withLock { entries in
      guard entries[mirror.topic]?.mirror == nil else { return false }
      entries[mirror.topic, default: Entry()].mirror = mirror
      return true
    }
  }

  /// The mirror is open: has the topic's subscriptions join it.
  func opened(_ mirror: Mirror) {
    let candidates = entries.withLock { $0[mirror.topic]?.candidates } ?? []
    for candidate in candidates {
      candidate.resume { (subscription: RelayedSubscription) in subscription.mirrorOpened() }
    }
  }

  func remove(_ mirror: Mirror) {
    entries.withLock { entries in
      guard var entry = entries[mirror.topic], entry.mirror === mirror else { return }
      entry.mirror = nil
      entries[mirror.topic] = entry.candidates.isEmpty ? nil : entry
    }
  }

  /// A subscription has no stream of its own at the head any more.
  func leave(_ candidate: StreamContinuation, of topic: String) {
    entries.withLock { entries in
      guard var entry = entries[topic],
        let index = entry.candidates.firstIndex(where: {
          $0.token == candidate.token && $0.reference === candidate.reference
        })
      else { return }
      entry.candidates.remove(at: index)
      entries[topic] = entry.candidates.isEmpty && entry.mirror == nil ? nil : entry
    }
  }
}
