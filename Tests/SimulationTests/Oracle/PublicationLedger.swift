import Glibc
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// The records that one producer sent on one publication, and the replies it got.
final class PublicationLedger {
  /// A batch that was sent.
  struct Batch {
    var firstSequence: Int
    var count: Int
    /// Its encoded records, and the start of each.
    var bytes: [UInt8]
    var starts: [Int]
    /// The wall-clock time of sending.
    var wallClock: Int64
  }

  /// The size of the name, publication and sequence, with which every payload begins that is long enough.
  static let nameSize = 8

  let number: UInt32
  let topic: String
  let acknowledges: Bool
  let peer: Int
  private unowned let oracle: Oracle

  private(set) var life: TopicEpoch?
  private(set) var batches: [Batch] = []
  /// The offset of each batch's first record, once known, by topic epoch.
  private var bases: [UInt64: [UInt64?]] = [:]
  /// Records sent, granted and acknowledged.
  private(set) var sent = 0
  private(set) var granted: UInt64 = 0
  private(set) var bytesGranted: UInt64 = 0
  private(set) var bytesSent: UInt64 = 0
  private(set) var acknowledged = 0
  private var lastAcknowledgedOffset: UInt64?
  /// Whether everything sent is in the log, acknowledged or not: the broker has answered a later request.
  private(set) var isCertain = false
  private(set) var isOver = false
  private var isLeaving = false
  /// The settings that the producer has stated for the topic.
  var statement = TopicSettings()
  /// Whether the client library sends it, which doesn't expose epochs.
  var isOfLibrary = false
  /// Whether it resumes after a lost connection, in any epoch that the topic then has.
  var resumes = false

  init(number: UInt32, topic: String, acknowledges: Bool, peer: Int, oracle: Oracle) {
    self.number = number
    self.topic = topic
    self.acknowledges = acknowledges
    self.peer = peer
    self.oracle = oracle
  }

  // MARK: What the producer does

  /// The producer sends a batch.
  func send(_ bytes: [UInt8], starts: [Int]) {
    batches.append(
      Batch(
        firstSequence: sent, count: starts.count, bytes: bytes, starts: starts, wallClock: oracle.wallClock())
    )
    sent += starts.count
    bytesSent += UInt64(bytes.count)
  }

  /// The producer sends CANCEL or COMPLETE.
  func leaves() {
    isLeaving = true
  }

  /// Whether the broker has this publication, as far as its producer knows.
  var isAttached: Bool { life != nil && !isOfLibrary && !isLeaving && !isOver }

  // MARK: Replies to the producer

  /// The broker denied PUBLISH_OPEN because of the stated settings.
  func refusedStatement() {
    oracle.check(
      life == nil && oracle.mayRefuse(statement, of: topic), peer,
      "publication \(number) is refused for its settings, which are the topic's")
  }

  func opened(_ frame: PublishOpened) {
    oracle.check(life == nil && !isOver, peer, "PUBLISH_OPENED came twice for publication \(number)")
    granted = frame.grantedThrough
    bytesGranted = frame.bytesThrough
    let life = oracle.life(of: topic, epoch: frame.epoch, client: peer)
    self.life = life
    oracle.check(granted > 0 || life.mayHold, peer, "publication \(number) begins without demand")
    guard let settings = life.topic?.settings else { return }
    oracle.check(
      Oracle.holds(statement, in: settings), peer,
      "publication \(number) states \(statement), and the topic has \(settings)")
  }

  /// The topic epoch of its records became known.
  func found(in life: TopicEpoch) {
    if self.life == nil, !resumes { self.life = life }
  }

  /// Whether its records may be in that epoch of a topic.
  func publishes(in life: TopicEpoch) -> Bool {
    resumes ? topic == life.name : self.life === life
  }

  /// The library has reported that all records are acknowledged.
  func acknowledgedAll() {
    acknowledged = sent
  }

  func demanded(_ frame: Demand) {
    oracle.check(life != nil && !isOver, peer, "DEMAND for publication \(number), which isn't open")
    oracle.check(
      frame.grantedThrough > granted || frame.bytesThrough > bytesGranted, peer,
      "publication \(number) was granted \(frame.grantedThrough) after \(granted), and \(frame.bytesThrough) bytes after \(bytesGranted)"
    )
    granted = max(granted, frame.grantedThrough)
    bytesGranted = max(bytesGranted, frame.bytesThrough)
  }

  func acknowledged(_ ack: Ack) {
    guard let life, !isOver else {
      return oracle.fail(peer, "ACK for publication \(number), which isn't open")
    }
    oracle.check(acknowledges, peer, "publication \(number) didn't ask for acknowledgements")
    guard ack.through > acknowledged, ack.through <= sent else {
      return oracle.fail(
        peer,
        "publication \(number) is acknowledged through \(ack.through), after \(acknowledged), of \(sent) sent"
      )
    }
    if let lastAcknowledgedOffset {
      oracle.check(
        ack.lastOffset - lastAcknowledgedOffset >= ack.through - UInt64(acknowledged), peer,
        "publication \(number) is acknowledged through \(ack.through)@\(ack.lastOffset) after \(acknowledged)@\(lastAcknowledgedOffset)"
      )
    }
    if let head = life.head {
      oracle.check(
        ack.lastOffset < head, peer,
        "publication \(number) is acknowledged at \(ack.lastOffset), but the head is \(head)")
    }
    acknowledged = Int(ack.through)
    lastAcknowledgedOffset = ack.lastOffset
    life.place(number, acknowledged - 1, at: ack.lastOffset, client: peer)
  }

  /// The broker has confirmed a request that followed everything sent.
  func confirmed() {
    isCertain = true
  }

  /// The stream has ended.
  func ended() {
    isOver = true
  }

  // MARK: Records

  private func batchIndex(of sequence: Int) -> Int {
    var low = 0
    var high = batches.count - 1
    while low < high {
      let middle = (low + high + 1) / 2
      if batches[middle].firstSequence <= sequence { low = middle } else { high = middle - 1 }
    }
    return low
  }

  /// The attributes that matter in a compacted topic.
  struct Record {
    var key: [UInt8]?
    var isDeletion: Bool
    /// The bytes of the encoded record.
    var bytes: Int
    /// The wall-clock time of sending.
    var wallClock: Int64
  }

  func record(_ sequence: Int) -> Record? {
    guard sequence < sent else { return nil }
    let batch = batches[batchIndex(of: sequence)]
    let item = batch.bytes[batch.starts[sequence - batch.firstSequence]...]
    return item.withUnsafeBytes { bytes in
      let word = RecordLayout.word(at: bytes.baseAddress!)
      let size = RecordLayout.wordSize + RecordLayout.length(word)
      let body = UnsafeRawBufferPointer(rebasing: bytes[RecordLayout.wordSize..<size])
      guard RecordLayout.kind(word) == .attributed, let attributes = try? RecordAttributes(body) else {
        return Record(key: nil, isDeletion: false, bytes: size, wallClock: batch.wallClock)
      }
      return Record(
        key: attributes.key.map { Array($0) }, isDeletion: attributes.payload.isEmpty, bytes: size,
        wallClock: batch.wallClock)
    }
  }

  /// Whether a filter passes a record; nil if there is no such record.
  func wants(_ filter: RecordFilter, _ sequence: Int) -> Bool? {
    guard sequence < sent else { return nil }
    let batch = batches[batchIndex(of: sequence)]
    return batch.bytes[batch.starts[sequence - batch.firstSequence]...].withUnsafeBytes { bytes in
      var records = BatchIterator(bytes, count: 1, time: 0)
      return (try? records.next()).flatMap { $0 }.map(filter.wants)
    }
  }

  func wallClock(of sequence: Int) -> Int64? {
    sequence < sent ? batches[batchIndex(of: sequence)].wallClock : nil
  }

  /// Whether the body of a record equals the one sent.
  func matches(_ sequence: Int, _ body: UnsafeRawBufferPointer, isAttributed: Bool?) -> Bool {
    let batch = batches[batchIndex(of: sequence)]
    let start = batch.starts[sequence - batch.firstSequence]
    return batch.bytes.withUnsafeBytes { bytes in
      let word = RecordLayout.word(at: bytes.baseAddress! + start)
      if let isAttributed, isAttributed != (RecordLayout.kind(word) == .attributed) { return false }
      guard RecordLayout.length(word) == body.count else { return false }
      let expected = bytes[(start + RecordLayout.wordSize)...].prefix(body.count)
      return body.elementsEqualBytes(UnsafeRawBufferPointer(rebasing: expected))
    }
  }

  /// The number of records between the starts of two batches. Records without acknowledgement may be lost with a connection.
  private func room(from first: Int, to second: Int) -> UInt64 {
    if resumes, !acknowledges { return UInt64(batches[first].count) }
    return UInt64(batches[second].firstSequence - batches[first].firstSequence)
  }

  /// Records the offset of one record.
  ///
  /// - Returns: the position of its batch, if it was unknown so far and is valid.
  func place(
    _ sequence: Int, at offset: UInt64, in epoch: UInt64, client: Int
  ) -> (base: UInt64, firstSequence: Int, count: Int)? {
    var bases = self.bases.removeValue(forKey: epoch) ?? []
    defer { self.bases[epoch] = bases }
    if bases.count < batches.count {
      bases += [UInt64?](repeating: nil, count: batches.count - bases.count)
    }
    let index = batchIndex(of: sequence)
    let batch = batches[index]
    let position = UInt64(sequence - batch.firstSequence)
    guard offset >= position else {
      oracle.fail(
        client, "record \(sequence) of publication \(number) is at \(offset), the middle of its batch")
      return nil
    }
    let base = offset - position
    if let known = bases[index] {
      oracle.check(
        known == base, client,
        "record \(sequence) of publication \(number) is at \(offset) and at \(known + position)")
      return nil
    }
    // Batches of one producer keep their order.
    if let before = bases[..<index].lastIndex(where: { $0 != nil }) {
      let room = room(from: before, to: index)
      oracle.check(
        base >= bases[before]! + room, client,
        "record \(sequence) of publication \(number) is at \(offset), ahead of what was sent before")
    }
    if let after = bases[(index + 1)...].firstIndex(where: { $0 != nil }) {
      let room = room(from: index, to: after)
      oracle.check(
        base + room <= bases[after]!, client,
        "record \(sequence) of publication \(number) is at \(offset), behind what was sent after")
    }
    bases[index] = base
    return (base, batch.firstSequence, batch.count)
  }
}

extension UnsafeRawBufferPointer {
  /// In unoptimised builds, comparing bytes one by one takes too long.
  func elementsEqualBytes(_ other: UnsafeRawBufferPointer) -> Bool {
    count == other.count && (isEmpty || memcmp(baseAddress!, other.baseAddress!, count) == 0)
  }
}
