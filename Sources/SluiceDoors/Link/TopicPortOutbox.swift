/// The unacknowledged records of a ``TopicPort``, in order. The first ones were sent on the current connection.
struct TopicPortOutbox {
  /// Bytes of records in one batch at most, except for one record.
  private static let longestBatch = 256 << 10

  /// Records of one item each.
  private var records: [[UInt8]] = []
  /// How many of them were sent, and the sequence of the first one.
  private var sentCount = 0
  private var firstSequence: UInt64 = 0
  /// How many records were acknowledged.
  private var acknowledgedCount: UInt64 = 0

  var count: Int { records.count }

  mutating func append(_ record: [UInt8]) { records.append(record) }

  /// Returns the next batch, of at most so many records and about so many bytes; nil if there is none.
  func next(atMost most: Int, bytes: Int) -> (batch: [UInt8], count: Int)? {
    guard most > 0, sentCount < records.count else { return nil }
    let room = min(Self.longestBatch, bytes)
    var batch: [UInt8] = []
    var count = 0
    for record in records[sentCount...].prefix(most) {
      if count > 0, batch.count + record.count > room { break }
      batch += record
      count += 1
    }
    return (batch, count)
  }

  /// Notes that the next records were sent, the first one with that sequence.
  mutating func sent(_ count: Int, from sequence: UInt64) {
    if sentCount == 0 { firstSequence = sequence }
    sentCount += count
  }

  /// Removes the records before a sequence, which are acknowledged. Returns how many they are.
  mutating func acknowledged(through sequence: UInt64) -> Int {
    let count = min(sentCount, Int(clamping: sequence - min(sequence, firstSequence)))
    remove(count)
    (sentCount, firstSequence) = (sentCount - count, firstSequence + UInt64(count))
    return count
  }

  /// Removes the records before a sequence, because the topic reports to have them from the port's producer ID. Returns how many unacknowledged records it
  /// removed.
  mutating func known(before sequence: UInt64) -> Int {
    let count = min(records.count, Int(clamping: sequence - min(sequence, acknowledgedCount)))
    remove(count)
    return count
  }

  private mutating func remove(_ count: Int) {
    records.removeFirst(count)
    acknowledgedCount += UInt64(count)
  }

  /// The connection is lost: all records are sent again.
  mutating func lost() { sentCount = 0 }
}
