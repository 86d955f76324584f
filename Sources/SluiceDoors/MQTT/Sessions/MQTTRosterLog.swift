import SluiceIO
import SluiceMQTT
import SluiceWire

/// Performs the effects of a roster. Called on the log's loop.
protocol MQTTRosterLogUser: AnyObject {
  /// Receives the effects of a record, in order; many records have none.
  func rosterHas(_ effects: [MQTTRoster.Effect])

  /// A record of this process was applied.
  ///
  /// - Parameters:
  ///   - counts: whether it counts: see ``MQTTRoster/apply(_:of:_:)``.
  ///   - tally: the count of all sessions before it.
  ///   - cost: the bytes that its session counted before it.
  func rosterTook(
    _ record: MQTTRosterRecord, of key: MQTTHub.Key?, counts: Bool, tally: MQTTSessionTally, cost: Int?)

  /// The records of this process up to that serial are stored, or applied if there is no store.
  func rosterStored(through serial: UInt64)

  /// The log was replaced: no record of this process counts.
  func rosterBeganAnew()

  /// All records that existed in the log have been read.
  func rosterIsCurrent()
}

/// A process' copy of the roster, and the log by which it changes the roster.
///
/// The records are in the durable topic `mqtt.sessions`; without a store they aren't written. On a node of a cluster a record counts once it has been read
/// back, since records of other processes may precede it. The only process of a log applies its records at once, and reads only those of earlier processes.
// @unchecked: belongs to `loop`.
final class MQTTRosterLog: TopicPortUser, @unchecked Sendable {
  static let topic = "mqtt.sessions"

  private static let snapshotPatience = Duration.seconds(60)
  private static let partBytes = 128 << 10

  let loop: any EventLoop
  private weak var user: (any MQTTRosterLogUser)?
  /// The name of this process' node; empty for the only process of a log.
  private let node: String
  private let isAlone: Bool
  /// Nil without a store.
  private var port: TopicPort?
  private var replica = MQTTRosterReplica()
  private var former = MQTTFormerSessions()
  private var effects: [MQTTRoster.Effect] = []
  private var hasBegun = false
  /// For the only process of a log: whether it has read all records.
  private var hasRead = false

  /// This process' number in the log. It changes if the other processes declare this one ended.
  private(set) var process = UInt64.random(in: 1 ... .max)
  /// The serial of the last record of this process.
  private(set) var serial: UInt64 = 0
  /// The serial of the last stored record.
  private var storedSerial: UInt64 = 0
  /// For the only process of a log: records to apply.
  private var local: [(record: MQTTRosterRecord, key: MQTTHub.Key?)] = []
  private var isTakingLocal = false
  private var snapshot: MQTTSnapshotProgress?
  /// Whether the topic was deleted and lacks the state from before.
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

  func open(for user: any MQTTRosterLogUser) {
    self.user = user
    sayHello()
    port?.open()
    if port == nil { portIsCurrent() }
  }

  var roster: MQTTRoster { replica.roster }

  /// Whether the roster includes all records of the log.
  var isLoaded: Bool { isAlone ? hasRead : port?.isCurrent ?? false && replica.isLoaded }

  // MARK: Records out

  func write(_ kind: MQTTRosterRecord.Kind, _ key: MQTTHub.Key? = nil) {
    serial += 1
    let record = MQTTRosterRecord(process: process, serial: serial, kind: kind)
    guard isAlone else { return port?.append(record.item(of: key)) ?? () }
    local.append((record, key))
    takeLocal()
  }

  /// Applies and writes records, including those that are added meanwhile.
  private func takeLocal() {
    guard hasRead, !isTakingLocal else { return }
    isTakingLocal = true
    while !local.isEmpty {
      let records = local
      local = []
      for (record, key) in records where record.process == process {
        take(record, of: key, at: 0)
        if let port { port.append(record.item(of: key)) } else { stored(through: record.serial) }
      }
    }
    isTakingLocal = false
  }

  private func sayHello() {
    write(.hello(node: node, time: loop.wallClock))
  }

  /// Continues as a new process in the log.
  func beginAgain() {
    process = UInt64.random(in: 1 ... .max)
    (serial, storedSerial, snapshot, local) = (0, 0, nil, [])
    sayHello()
  }

  // MARK: Records in

  func portBegan(first: UInt64) {
    if hasRead {
      // An operator has deleted the topic: the new one gets a snapshot of the whole roster after the next stored record, which can then be trimmed.
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

  /// Whether most of the log is outdated.
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

  /// Writes the next part of the snapshot, once the log contains the previous one.
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
