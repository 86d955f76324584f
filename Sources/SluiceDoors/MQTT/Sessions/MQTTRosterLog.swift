import SluiceIO
import SluiceMQTT
import SluiceWire

/// Does what a roster says. Called on the log's loop.
protocol MQTTRosterLogUser: AnyObject {
  /// What a record has come to, in order: often nothing.
  func rosterHas(_ effects: [MQTTRoster.Effect])

  /// A record of this process is taken into account.
  ///
  /// - Parameters:
  ///   - counts: whether it counts: see ``MQTTRoster/apply(_:of:_:)``.
  ///   - tally: what all sessions counted before it.
  ///   - cost: what its session counted before it.
  func rosterTook(
    _ record: MQTTRosterRecord, of key: MQTTHub.Key?, counts: Bool, tally: MQTTSessionTally, cost: Int?)

  /// The records of this process up to that serial are as durable as they get.
  func rosterStored(through serial: UInt64)

  /// The log is another one: nothing that this process has written counts.
  func rosterBeganAnew()

  /// All records that were in the log have been read.
  func rosterIsCurrent()
}

/// The roster, as one process has it, and the records by which the process changes it.
///
/// They are in the durable topic `mqtt.sessions`; without a store they are nowhere. At a node of a cluster a record counts when it has come back: others may
/// stand before it. The only process of a log takes its records into account at once, and reads only what earlier processes have written.
// @unchecked: belongs to `loop`.
final class MQTTRosterLog: TopicPortUser, @unchecked Sendable {
  static let topic = "mqtt.sessions"

  private static let snapshotPatience = Duration.seconds(60)
  private static let partBytes = 128 << 10

  let loop: any EventLoop
  weak var user: (any MQTTRosterLogUser)?
  /// The name of this process' node; empty for the only process of a log.
  private let node: String
  private let isAlone: Bool
  /// Nil without a store.
  private var port: TopicPort?
  private var replica = MQTTRosterReplica()
  private var former = MQTTFormerSessions()
  private var effects: [MQTTRoster.Effect] = []
  private var hasBegun = false
  /// Of the only process: whether it has read all.
  private var hasRead = false

  /// This process, as the log knows it: another one when the others have taken it for gone.
  private(set) var process = UInt64.random(in: 1 ... .max)
  /// That of the last record of this process.
  private(set) var serial: UInt64 = 0
  /// That of the last record that is stored.
  private var storedSerial: UInt64 = 0
  /// Of the only process: records that are to be taken into account.
  private var local: [(record: MQTTRosterRecord, key: MQTTHub.Key?)] = []
  private var isTakingLocal = false
  private var snapshot: MQTTSnapshotProgress?
  /// Whether the topic has nothing of what was before.
  private var isEmpty = false

  /// - Parameters:
  ///   - node: nil for a broker of one node.
  ///   - isStored: whether the broker has a store.
  ///   - accept: passes a connection to the broker, on `loop`.
  init(
    node: String?, isStored: Bool, on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void
  ) {
    self.node = node ?? ""
    isAlone = node == nil
    self.loop = loop
    guard isStored else { return }
    let terms = TopicPort.Terms(
      topic: Self.topic, identity: "mqtt-sessions", name: "sessions of MQTT", settings: .untilTrimmed)
    port = TopicPort(terms, user: self, on: loop, accept: accept)
  }

  func open() {
    sayHello()
    port?.open()
    if port == nil { portIsCurrent() }
  }

  var roster: MQTTRoster { replica.roster }

  /// Whether the roster has everything that is in the log.
  var isLoaded: Bool { isAlone ? hasRead : port?.isCurrent ?? false && replica.isLoaded }

  // MARK: Records out

  func write(_ kind: MQTTRosterRecord.Kind, _ key: MQTTHub.Key? = nil) {
    serial += 1
    let record = MQTTRosterRecord(process: process, serial: serial, kind: kind)
    guard isAlone else { return port?.append(record.item(of: key)) ?? () }
    local.append((record, key))
    takeLocal()
  }

  /// Takes records into account, and writes them. Those that are written meanwhile follow.
  private func takeLocal() {
    guard hasRead, !isTakingLocal else { return }
    isTakingLocal = true
    while !local.isEmpty {
      let (record, key) = local.removeFirst()
      take(record, of: key, at: 0)
      if let port { port.append(record.item(of: key)) } else { stored(through: record.serial) }
    }
    isTakingLocal = false
  }

  private func sayHello() {
    write(.hello(node: node, time: loop.wallClock))
  }

  /// The process is another one from now on.
  func beginAgain() {
    process = UInt64.random(in: 1 ... .max)
    (serial, storedSerial, snapshot, local) = (0, 0, nil, [])
    sayHello()
  }

  // MARK: Records in

  func portBegan(first: UInt64) {
    if hasRead {
      // An operator has deleted the topic: the next one gets all that it had, behind a record that is trimmed.
      replica.forgetSnapshots()
      (snapshot, isEmpty) = (nil, true)
      return sayHello()
    }
    replica.begin(first: first)
    former = MQTTFormerSessions()
    if hasBegun { user?.rosterBeganAnew() }
    hasBegun = true
  }

  func portHas(_ record: BatchIterator.Record, at offset: UInt64) {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let name = unsafe attributes.key
    else { return }
    let key = unsafe MQTTHub.Key(decoding: name)
    if let entry = unsafe MQTTRosterRecord(decoding: attributes.payload) {
      return take(entry, of: key, at: offset)
    }
    guard let key, isAlone else { return }
    for entry in unsafe former.records(of: key, attributes.payload) { take(entry, of: key, at: offset) }
  }

  private func take(_ record: MQTTRosterRecord, of key: MQTTHub.Key?, at offset: UInt64) {
    let (tally, cost) = (replica.roster.tally, key.flatMap(replica.roster.cost(of:)))
    let counts = replica.take(record, of: key, at: offset, &effects)
    reportEffects()
    guard record.process == process else { return }
    user?.rosterTook(record, of: key, counts: counts, tally: tally, cost: cost)
    if !isAlone { stored(through: record.serial) }
  }

  func portStored(_ count: Int) {
    if isAlone { stored(through: storedSerial + UInt64(count)) }
  }

  private func stored(through serial: UInt64) {
    storedSerial = max(storedSerial, serial)
    user?.rosterStored(through: storedSerial)
    if let snapshot, snapshot.serial <= storedSerial { continueSnapshot(snapshot) }
    guard isEmpty else { return }
    isEmpty = false
    shorten()
  }

  func portIsCurrent() {
    guard !hasRead else { return }
    replica.isCurrent(&effects)
    reportEffects()
    if isAlone {
      hasRead = true
      port?.stopReading()
      takeLocal()
    }
    user?.rosterIsCurrent()
  }

  private func reportEffects() {
    let now = effects
    effects = []
    user?.rosterHas(now)
  }

  // MARK: Snapshots

  /// Whether most of the log is out of date.
  var isLong: Bool {
    guard let port, isLoaded else { return false }
    let length = port.nextOffset - min(port.nextOffset, max(port.firstOffset, replica.snapshotOffset))
    return length > UInt64(replica.roster.entries.count * 4 + 1024)
  }

  /// Begins a snapshot, so that the log can be trimmed.
  func shorten() {
    guard let port else { return }
    if let snapshot, loop.now < snapshot.time + Self.snapshotPatience { return }
    let progress = MQTTSnapshotProgress(
      offset: port.nextOffset, time: loop.now, writer: .init(replica.roster))
    continueSnapshot(progress)
  }

  /// Writes the next part of the snapshot: the one before is in the log.
  private func continueSnapshot(_ progress: MQTTSnapshotProgress) {
    if progress.isComplete {
      snapshot = nil
      port?.trim(before: progress.offset)
      return
    }
    var next = progress
    (next.time, next.serial) = (loop.now, serial + 1)
    let part = next.writer.next(bytes: Self.partBytes)
    if part == nil { next.isComplete = true } else { next.count += 1 }
    snapshot = next
    if let part {
      write(.snapshot(offset: next.offset, part: next.count - 1, bytes: part))
    } else {
      write(.snapshotEnd(offset: next.offset, parts: next.count))
    }
  }
}
