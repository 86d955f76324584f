import Glibc
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// What one producer sent on one publication, and what it was told of it.
final class PublicationLedger {
  /// A batch that was sent.
  struct Batch {
    var firstSequence: Int
    var count: Int
    /// Its items, and where each one starts.
    var bytes: [UInt8]
    var starts: [Int]
    /// When it was sent, by the wall clock.
    var wallClock: Int64
  }

  /// Every payload that is long enough begins with its publication and its sequence.
  static let nameSize = 8

  let number: UInt32
  let topic: String
  let acknowledges: Bool
  let peer: Int
  private unowned let oracle: Oracle

  private(set) var life: TopicEpoch?
  private(set) var batches: [Batch] = []
  /// The offset of each batch's first record, once known, by the epoch of the topic.
  private var bases: [UInt64: [UInt64?]] = [:]
  /// Records sent, granted and acknowledged.
  private(set) var sent = 0
  private(set) var granted: UInt64 = 0
  private(set) var bytesGranted: UInt64 = 0
  private(set) var bytesSent: UInt64 = 0
  private(set) var acknowledged = 0
  private var lastAcknowledgedOffset: UInt64?
  /// Everything sent is in the log, whether it was acknowledged or not: the broker has answered something later.
  private(set) var isCertain = false
  private(set) var isOver = false
  private var isLeaving = false
  /// What the producer has stated of the topic.
  var statement = TopicSettings()
  /// Sent by the client library, which keeps epochs to itself.
  var isOfLibrary = false
  /// Goes on after a lost connection, in whatever epoch the topic has then.
  var resumes = false

  init(number: UInt32, topic: String, acknowledges: Bool, peer: Int, oracle: Oracle) {
    self.number = number
    self.topic = topic
    self.acknowledges = acknowledges
    self.peer = peer
    self.oracle = oracle
  }

  // MARK: What the producer does

  /// A batch goes out.
  func send(_ bytes: [UInt8], starts: [Int]) {
    batches.append(
      Batch(
        firstSequence: sent, count: starts.count, bytes: bytes, starts: starts, wallClock: oracle.wallClock())
    )
    sent += starts.count
    bytesSent += UInt64(bytes.count)
  }

  /// CANCEL or COMPLETE goes out.
  func leaves() {
    isLeaving = true
  }

  /// Whether the broker has it, as far as its producer knows.
  var isAttached: Bool { life != nil && !isOfLibrary && !isLeaving && !isOver }

  // MARK: What the producer is told

  /// PUBLISH_OPEN is refused because of what it states.
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

  /// It shows in which epoch of its topic its records are.
  func found(in life: TopicEpoch) {
    if self.life == nil, !resumes { self.life = life }
  }

  /// Whether its records may be in that epoch of a topic.
  func publishes(in life: TopicEpoch) -> Bool {
    resumes ? topic == life.name : self.life === life
  }

  /// The library says that all was acknowledged.
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

  /// The broker has confirmed something that was asked of it after all that was sent.
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

  /// What matters where only the newest record of each key does.
  struct Record {
    var key: [UInt8]?
    var isDeletion: Bool
    /// Of its item.
    var bytes: Int
    /// When it was sent, by the wall clock.
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

  /// Whether a filter lets a record through; nil when there is no such record.
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

  /// Whether the body of a record is what was sent.
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

  /// How many records are between the begins of two batches. Records without acknowledgement may be lost with a connection.
  private func room(from first: Int, to second: Int) -> UInt64 {
    if resumes, !acknowledges { return UInt64(batches[first].count) }
    return UInt64(batches[second].firstSequence - batches[first].firstSequence)
  }

  /// Learns the offset of one record.
  ///
  /// - Returns: the place of its batch, when that wasn't known before and is possible.
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
    // Ahead of it and behind it, its own producer's batches keep their order.
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
  /// Comparing bytes one by one takes too long where nothing is optimised.
  func elementsEqualBytes(_ other: UnsafeRawBufferPointer) -> Bool {
    count == other.count && (isEmpty || memcmp(baseAddress!, other.baseAddress!, count) == 0)
  }
}
