import SluiceIO
import SluiceLog
import Synchronization

/// The topics of other nodes that this node reads once for several subscribers. Shared by all loops.
final class MirrorTable: Sendable {
  /// The mirror of a subscription that has reached the head of its topic.
  enum Place {
    /// No mirror, since it is the only subscription.
    case alone
    case mirror(Mirror)
    /// No mirror yet; the subscription should create one, since there are others.
    case first
  }

  private struct Entry {
    var mirror: Mirror?
    /// Subscriptions at the head with a stream of their own.
    var candidates: [StreamContinuation] = []
  }

  private let entries = Mutex<[String: Entry]>([:])

  /// Adds a subscription that has reached the head of its topic.
  func enter(_ candidate: StreamContinuation, of topic: String) {
    entries.withLock { entries in
      var entry = entries[topic] ?? Entry()
      entry.candidates.append(candidate)
      entries[topic] = entry
    }
  }

  /// Returns the mirror that an added subscription should use.
  func place(in topic: String) -> Place {
    entries.withLock { entries in
      guard let entry = entries[topic] else { return .alone }
      if let mirror = entry.mirror { return .mirror(mirror) }
      return entry.candidates.count > 1 ? .first : .alone
    }
  }

  /// Adds a new mirror. Returns false if the topic has one.
  func add(_ mirror: Mirror) -> Bool {
    entries.withLock { entries in
      guard entries[mirror.topic]?.mirror == nil else { return false }
      entries[mirror.topic, default: Entry()].mirror = mirror
      return true
    }
  }

  /// Called when a mirror is open: lets the topic's subscriptions join it.
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

  /// Removes a subscription that no longer has a stream of its own at the head.
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
