import SluiceLog
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// One epoch of a topic, as seen by all peers: the record at each offset, and the terminal event.
final class TopicEpoch {
  let name: String
  let epoch: UInt64
  /// Nil if the broker no longer has it, because it was deleted or lost with its broker.
  weak var topic: Topic?
  private unowned let oracle: Oracle

  /// The record known at an offset.
  private struct Slot {
    /// 0 if it isn't known.
    var publication: UInt32 = 0
    var sequence = 0
    var time: Int64?
  }

  private var slots: [Slot] = []
  /// Records without a name in their payload whose batch isn't known yet.
  private var nameless: [UInt64: [UInt8]] = [:]

  /// The terminal event that a subscriber, or the producer that requested it, received.
  private(set) var ending: Complete.Ending?
  /// The head at which a subscriber received the terminal event.
  private(set) var endOffset: UInt64?

  init(name: String, epoch: UInt64, topic: Topic?, oracle: Oracle) {
    self.name = name
    self.epoch = epoch
    self.topic = topic
    self.oracle = oracle
  }

  /// Whether the broker still has this epoch.
  var isPresent: Bool { oracle.present(name)?.epochNumber == epoch }

  var head: UInt64? { topic?.log.head }

  /// Whether its producers may start without demand. True if the topic no longer exists, so that its settings are unknown.
  var mayHold: Bool {
    guard let settings = topic?.settings else { return true }
    return settings.flow != .free || settings.connect != .immediate
  }

  /// The oldest record in memory. No subscriber can get an earlier one.
  var oldest: UInt64? { topic?.oldest }

  /// The lowest record for a subscriber that resumes after a lost connection.
  var lowestForReturning: UInt64? { topic?.log.lowestForReturning }

  /// Whether the topic was trimmed, or its limits have changed.
  var hasChanged: Bool { oracle.changedTopics.contains(name) }

  /// The first record that a late subscriber gets.
  var firstKept: UInt64? { topic?.kept(at: oracle.wallClock()) }

  // MARK: Records

  /// A subscriber received a record.
  func observe(_ record: BatchIterator.Record, at offset: UInt64, client: Int) {
    reach(offset)
    let index = Int(offset)
    if let time = slots[index].time {
      oracle.check(
        time == record.time, client, "\(name)@\(offset) has time \(record.time), for others it had \(time)")
    } else {
      slots[index].time = record.time
    }
    if slots[index].publication == 0 {
      guard let name = Self.name(in: record) else {
        nameless[offset] = Array(record.body)
        return
      }
      place(name.publication, name.sequence, at: offset, client: client)
      guard slots[index].publication != 0 else { return }
    }
    compare(record.body, isAttributed: record.isAttributed, at: offset, client: client)
  }

  private func compare(_ body: UnsafeRawBufferPointer, isAttributed: Bool?, at offset: UInt64, client: Int) {
    let slot = slots[Int(offset)]
    guard let publication = oracle.publication(slot.publication) else { return }
    if !publication.matches(slot.sequence, body, isAttributed: isAttributed) {
      oracle.fail(
        client,
        "\(name)@\(offset) should be record \(slot.sequence) of publication \(slot.publication); its \(body.count) bytes aren't"
      )
    }
    guard let time = slot.time, let sent = publication.wallClock(of: slot.sequence) else { return }
    oracle.check(
      sent <= time && time <= oracle.wallClock(), client,
      "\(name)@\(offset) has time \(time), was sent at \(sent), and now it is \(oracle.wallClock())")
  }

  /// A peer learned the offset of a publication's record, which also gives the offsets of the rest of its batch.
  func place(_ number: UInt32, _ sequence: Int, at offset: UInt64, client: Int) {
    if let publication = oracle.publication(number), publication.isOfLibrary, publication.topic == name {
      publication.found(in: self)
    }
    guard let publication = oracle.publication(number), publication.publishes(in: self),
      sequence < publication.sent
    else {
      return oracle.fail(
        client,
        "\(name)@\(offset) names record \(sequence) of publication \(number), which no producer sent here")
    }
    guard let batch = publication.place(sequence, at: offset, in: epoch, client: client) else { return }
    reach(batch.base + UInt64(batch.count) - 1)
    for position in 0..<batch.count {
      let offset = batch.base + UInt64(position)
      let index = Int(offset)
      guard slots[index].publication == 0 else {
        oracle.fail(
          client,
          "\(name)@\(offset) is record \(batch.firstSequence + position) of publication \(number) and record \(slots[index].sequence) of publication \(slots[index].publication)"
        )
        continue
      }
      slots[index].publication = number
      slots[index].sequence = batch.firstSequence + position
      if let body = nameless.removeValue(forKey: offset) {
        body.withUnsafeBytes { compare($0, isAttributed: nil, at: offset, client: client) }
      }
    }
  }

  /// The record at `offset`; nil unless a peer has seen it.
  func record(at offset: UInt64) -> PublicationLedger.Record? {
    guard offset < slots.count else { return nil }
    let slot = slots[Int(offset)]
    return oracle.publication(slot.publication)?.record(slot.sequence)
  }

  /// Whether a filter passes the record at `offset`; nil if the record isn't known.
  func wants(_ filter: RecordFilter, at offset: UInt64) -> Bool? {
    guard offset < slots.count else { return nil }
    let slot = slots[Int(offset)]
    return oracle.publication(slot.publication)?.wants(filter, slot.sequence)
  }

  /// The offset after the last known record.
  var reached: UInt64 { UInt64(slots.count) }

  func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    oracle.check(holds, 0, what())
  }

  private func reach(_ offset: UInt64) {
    while slots.count <= offset { slots.append(Slot()) }
    if let endOffset, offset >= endOffset {
      oracle.fail(0, "\(name)@\(offset) comes after the topic's end at \(endOffset)")
    }
  }

  private static func name(in record: BatchIterator.Record) -> (publication: UInt32, sequence: Int)? {
    var payload = record.body
    if record.isAttributed, let attributes = try? RecordAttributes(record.body) {
      payload = attributes.payload
    }
    guard payload.count >= PublicationLedger.nameSize else { return nil }
    return (
      UInt32(littleEndian: payload.loadUnaligned(as: UInt32.self)),
      Int(UInt32(littleEndian: payload.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
    )
  }

  // MARK: The end

  /// A peer received the topic's terminal event; a subscriber, also its offset.
  ///
  /// - Parameter isBeyond: whether the subscriber had requested an offset that the topic didn't reach.
  func told(_ told: Complete.Ending, at offset: UInt64?, isBeyond: Bool = false, client: Int) {
    if case .failure(code: .producerLost, _) = told {
      lostProducers(client: client)
    } else {
      oracle.check(
        oracle.mayHaveEnded(name, with: told), client,
        "\(name) ended with \(told), which no producer requested")
    }
    if let ending {
      oracle.check(ending == told, client, "\(name) ended with \(told), for others with \(ending)")
    }
    ending = told
    guard let offset else { return }
    if let endOffset {
      oracle.check(
        offset == endOffset || isBeyond && offset > endOffset, client,
        "\(name) ended at \(offset), for others at \(endOffset)")
    } else if !isBeyond {
      oracle.check(
        slots.count <= offset, client, "\(name) ended at \(offset), but has \(slots.count) records")
      endOffset = offset
    }
  }

  /// A client learned that the topic has failed without producers. Checks that its settings say so, that the last record is old enough, and that no
  /// publication is open.
  func lostProducers(client: Int) {
    guard let settings = topic?.settings else { return }
    guard case .fail(let patience) = settings.whenProducerLost else {
      return oracle.fail(client, "\(name) has failed without producers, for which it waits")
    }
    if let last = slots.compactMap(\.time).max() {
      oracle.check(
        last + Int64(patience) <= oracle.wallClock(), client,
        "\(name) has failed without producers within \(patience) ms of its last record")
    }
    guard !oracle.excusesTimeouts else { return }
    for publication in oracle.publications where publication.life === self && publication.isAttached {
      oracle.check(
        oracle.isDisturbed(publication.peer), client,
        "\(name) has failed without producers, and publication \(publication.number) is open")
    }
  }

  /// Records all records in the log.
  ///
  /// - Returns: the offset after the last one.
  @discardableResult
  func readLog() -> UInt64 {
    guard let log = topic?.log else { return reached }
    var (cursor, _) = log.cursor(at: .earliest, from: 0)
    var time = cursor.pendingTimeMark ?? .min
    while case .slice(let slice) = log.next(&cursor, bytes: .max) {
      var records = BatchIterator(slice.bytes, count: UInt32(slice.count), time: time)
      var offset = slice.firstOffset
      do {
        while let record = try records.next() {
          observe(record, at: offset, client: 0)
          offset += 1
        }
      } catch {
        oracle.fail(0, "the log of \(name) is malformed: \(error)")
      }
      time = records.time
    }
    return cursor.nextOffset
  }

  /// Checks the final state, when nothing is pending. Reads the log directly, as a last subscriber.
  func audit() {
    guard let log = topic?.log else { return }
    if let endOffset {
      oracle.check(log.head == endOffset, 0, "\(name) ended at \(endOffset), but its head is \(log.head)")
    }
    oracle.check(
      slots.count <= log.head, 0, "\(name) gave out offset \(slots.count - 1), its head is \(log.head)")
    let end = readLog()
    auditNewest()
    oracle.check(end == log.head, 0, "\(name) can be read to \(end), its head is \(log.head)")
    // Some producers of the library may have published here unseen by any subscriber.
    let publications = oracle.publications.filter { $0.life === self || $0.life == nil && $0.topic == name }
    let (sent, acknowledged) = publications.reduce((0, 0)) {
      // Acknowledgements of producers that continue in any epoch may belong to another one.
      let isHere = $1.life === self || $1.resumes && oracle.onlyEpoch(of: name) == epoch
      return ($0.0 + $1.sent, $0.1 + (isHere ? $1.acknowledged : 0))
    }
    oracle.check(
      log.head >= acknowledged && log.head <= sent, 0,
      "\(name) has \(log.head) records; \(sent) were sent, \(acknowledged) acknowledged")
  }
}
