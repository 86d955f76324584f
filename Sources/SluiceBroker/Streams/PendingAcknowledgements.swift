import SluiceTopics
import SluiceWire

/// The acknowledgements of one publication: those that were sent, and those that are due.
struct PendingAcknowledgements {
  let waitsForDisk: Bool
  private let isWanted: Bool
  /// The producer's sequence up to which records are in the log, and the offset of the last record appended on this publication.
  private var appended: UInt64
  private var lastOffset: UInt64 = 0
  private(set) var acknowledged: UInt64
  /// Batches that may be acknowledged only when they are on disk: the producer's sequence after each, and the offset of its last record.
  private var unstored = ReadyQueue<(through: UInt64, lastOffset: UInt64)>()

  init(_ wanted: PublishOpen.Acknowledgement, waitsForDisk: Bool, startingAt sequence: UInt64) {
    isWanted = wanted != .none
    self.waitsForDisk = waitsForDisk
    appended = sequence
    acknowledged = sequence
  }

  /// Whether records must be on disk before they can be acknowledged, and aren't yet.
  var areOwed: Bool { waitsForDisk && unstored.first != nil }

  mutating func appended(_ count: UInt32, lastOffset: UInt64) {
    appended += UInt64(count)
    if !waitsForDisk {
      self.lastOffset = lastOffset
    } else if isWanted {
      unstored.append((appended, lastOffset))
    }
  }

  /// Returns the acknowledgement that is due, once; nil when everything was acknowledged, or no acknowledgement is wanted.
  ///
  /// - Parameter committed: the offset after the last record on disk; nil for a topic in memory.
  mutating func take(committed: UInt64?) -> Ack? {
    guard waitsForDisk else {
      guard isWanted, acknowledged < appended else { return nil }
      acknowledged = appended
      return Ack(through: appended, lastOffset: lastOffset)
    }
    guard let committed else { return nil }
    var through: UInt64?
    while let next = unstored.first, next.lastOffset < committed {
      (through, lastOffset) = (next.through, next.lastOffset)
      _ = unstored.popFirst()
    }
    guard let through else { return nil }
    acknowledged = through
    return Ack(through: through, lastOffset: lastOffset)
  }
}
