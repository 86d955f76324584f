/// The entries of a roster, by key.
///
/// In most brokers most sessions have no connection. These are packed, and share one table of the topics in which they have positions.
struct MQTTRosterEntries: Equatable, Sendable {
  typealias Key = MQTTHub.Key
  typealias Entry = MQTTRoster.Entry

  fileprivate enum Stored: Sendable {
    case packed(Packed)
    case whole(Whole)
  }

  /// An entry that contains only a session without a connection.
  fileprivate struct Packed: Sendable {
    /// The bytes of ``MQTTPackedSession``.
    var bytes: [UInt8]
    var expiry: UInt32
    /// The size of the unpacked session, in bytes, which is the same on all nodes of a cluster.
    var size: UInt32
    var leftAt: Int64
  }

  fileprivate final class Whole: Sendable {
    let entry: Entry

    init(_ entry: Entry) {
      self.entry = entry
    }
  }

  private var stored: [Key: Stored] = [:]
  private var topics = MQTTSharedTopics()

  var count: Int { stored.count }

  func contains(_ key: Key) -> Bool { stored[key] != nil }

  subscript(key: Key) -> Entry? {
    get { stored[key].map(entry) }
    set {
      let former = stored[key]
      // Before the former entry releases its topics, because both usually have the same.
      stored[key] = newValue.map { pack($0) }
      if case .packed(let packed) = former { MQTTPackedSession(packed: packed.bytes).release(from: &topics) }
    }
  }

  private mutating func pack(_ entry: Entry) -> Stored {
    guard entry.holder == nil, entry.waiting == nil, entry.due.isEmpty, entry.state.will == nil,
      let leftAt = entry.leftAt, let session = try? MQTTKeptSession(decoding: entry.state.bytes)
    else { return .whole(Whole(entry)) }
    let bytes = MQTTPackedSession(session, &topics).bytes
    return .packed(
      Packed(
        bytes: bytes, expiry: entry.state.expiry, size: UInt32(clamping: entry.state.size), leftAt: leftAt))
  }

  private func entry(_ stored: Stored) -> Entry {
    switch stored {
    case .whole(let whole): return whole.entry
    case .packed(let packed):
      var entry = Entry()
      entry.state.bytes = MQTTPackedSession(packed: packed.bytes).session(topics)?.encoded ?? []
      entry.state.expiry = packed.expiry
      entry.leftAt = packed.leftAt
      return entry
    }
  }

  /// The bytes of a session's stored state; nil without one.
  func size(of key: Key) -> Int? {
    switch stored[key] {
    case .packed(let packed): Int(packed.size)
    case .whole(let whole) where !whole.entry.state.bytes.isEmpty: whole.entry.state.size
    default: nil
    }
  }

  /// Returns whether a session is stored and has no connection.
  func isAway(_ key: Key) -> Bool {
    switch stored[key] {
    case .packed: true
    case .whole(let whole): whole.entry.holder == nil && !whole.entry.state.bytes.isEmpty
    case nil: false
    }
  }

  /// The sessions that connections of a process hold or wait for, in order.
  func keys(of process: UInt64) -> [Key] {
    stored.filter { _, stored in
      guard case .whole(let whole) = stored else { return false }
      return whole.entry.holder?.process == process || whole.entry.waiting?.claim.process == process
    }.keys.sorted()
  }

  /// The expired sessions, and when their connections ended.
  func expired(at time: Int64) -> [(key: Key, leftAt: Int64)] {
    stored.compactMap { key, stored in
      let (leftAt, expiry): (Int64?, UInt32)
      switch stored {
      case .packed(let packed): (leftAt, expiry) = (packed.leftAt, packed.expiry)
      case .whole(let whole):
        guard !whole.entry.state.bytes.isEmpty else { return nil }
        (leftAt, expiry) = (whole.entry.leftAt, whole.entry.state.expiry)
      }
      guard let leftAt, expiry != .max, time >= leftAt + Int64(expiry) * 1000 else { return nil }
      return (key, leftAt)
    }
  }

  static func == (left: Self, right: Self) -> Bool {
    left.count == right.count && left.stored.keys.allSatisfy { left[$0] == right[$0] }
  }
}

extension MQTTRosterEntries: Collection {
  struct Index: Comparable {
    fileprivate var place: Dictionary<Key, Stored>.Index

    static func < (left: Self, right: Self) -> Bool { left.place < right.place }
  }

  var startIndex: Index { Index(place: stored.startIndex) }
  var endIndex: Index { Index(place: stored.endIndex) }
  func index(after index: Index) -> Index { Index(place: stored.index(after: index.place)) }

  subscript(index: Index) -> (key: Key, entry: Entry) {
    let (key, stored) = stored[index.place]
    return (key, entry(stored))
  }
}
