import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire
import Synchronization

/// Keeps retained messages over the end of the process: it follows the topic that has them in memory, and writes each of its records into a journal.
///
/// ```
///  clients, wills ─► mqtt.retained (compact, in memory) ─► MQTTRetainedMirror ─► MQTTRetainedStore ─► mqtt.retained-log (durable)
///                            ▲                                                     │
///                            └────────────── at the start ─────────────────────────┘
/// ```
///
/// In memory it has a key and a place for each message, no messages.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop; what they read is constant.
final class MQTTRetainedStore: MQTTJournalKeeper, @unchecked Sendable {
  /// The topic of the journal: its keys are topics' names, its values ``Value``.
  static let topic = "mqtt.retained-log"
  /// Messages, and bytes of them, that are kept at most. What is retained beyond that is in memory only.
  private static let maximumCount = 1_000_000
  private static let maximumBytes = 256 << 20
  private static let patience = Duration.seconds(10)

  private struct Entry {
    /// Counts this process' writing; 0 for a record of an earlier process.
    var version: UInt64
    /// Where the newest record is that has come back from the topic.
    var offset: UInt64?
    var length: Int
    var isDeleted = false
  }

  let loop: any EventLoop
  private var journal: MQTTJournal?
  private var mirror: MQTTRetainedMirror?
  private var entries: [[UInt8]: Entry] = [:]
  private var bytes = 0
  private var lastVersion: UInt64 = 0
  /// Messages of earlier processes that aren't in `mqtt.retained` yet.
  private var former: [[UInt8]: MQTTRetainedValue] = [:]
  /// Whether they have been given to the mirror.
  private var isRepublished = false
  private var isLoaded = false
  /// Whether clients are served; set on the loop.
  private let isReady = Atomic(false)
  private var waiting: [@Sendable () -> Void] = []

  init(on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void) {
    self.loop = loop
    journal = MQTTJournal(
      Self.topic, of: self, identity: "mqtt-retained", name: "retained messages of MQTT", on: loop,
      accept: accept)
    mirror = MQTTRetainedMirror(self, on: loop, accept: accept)
  }

  /// Reads what earlier processes have kept. Clients wait for it, but not for a store that doesn't answer.
  func open() {
    journal?.open()
    _ = loop.schedule(after: Self.patience) { [weak self] in self?.serve() }
  }

  /// Calls `body` once the messages of earlier processes are there: at once, or on the loop.
  func whenLoaded(_ body: @escaping @Sendable () -> Void) {
    if isReady.load(ordering: .acquiring) { return body() }
    loop.execute { [self] in
      if isReady.load(ordering: .relaxed) { body() } else { waiting.append(body) }
    }
  }

  /// Calls `body`, on the loop, once a record of `mqtt.retained` is kept.
  func whenKept(_ offset: UInt64, _ body: @escaping @Sendable () -> Void) {
    guard let mirror else { return body() }
    mirror.whenKept(offset, body)
  }

  // MARK: What the mirror says

  /// A record of `mqtt.retained`. Calls `completion` once it is kept.
  ///
  /// - Returns: false for one that isn't written: `completion` isn't called.
  func put(
    _ key: UnsafeRawBufferPointer, _ record: BatchIterator.Record, isDeletion: Bool,
    _ completion: @escaping @Sendable () -> Void
  ) -> Bool {
    let key = unsafe Array(key)
    // A message of an earlier process has come back; what it was published for is in the journal.
    if former.removeValue(forKey: key) != nil, isRepublished, !isDeletion { return false }
    if isDeletion {
      guard entries[key].map({ !$0.isDeleted }) ?? false else { return false }
      delete(key, completion)
      return true
    }
    let value = unsafe MQTTRetainedValue(time: record.time, body: Array(record.body))
    let length = entries[key]?.length ?? 0
    guard bytes - length + value.body.count <= Self.maximumBytes,
      length > 0 || entries.count < Self.maximumCount
    else {
      // Not an older message in its place.
      if length > 0 { delete(key) {} }
      return false
    }
    write(key, value, completion)
    return true
  }

  /// The topic was deleted, and its messages with it.
  func deletedAll() {
    for (key, entry) in entries where !entry.isDeleted { delete(key) {} }
  }

  /// The messages of earlier processes that have to be published, the oldest first. What has expired is forgotten.
  func restorable(at time: Int64) -> [BatchBuilder] {
    isRepublished = true
    var batches: [BatchBuilder] = []
    for (key, value) in former.sorted(by: { entries[$0.key]?.offset ?? 0 < entries[$1.key]?.offset ?? 0 }) {
      if let batch = value.record(at: time) {
        batches.append(batch)
      } else {
        former[key] = nil
        delete(key) {}
      }
    }
    return batches
  }

  /// Whether messages of earlier processes aren't back yet.
  var isRestoring: Bool { !former.isEmpty }

  /// The messages of earlier processes are in `mqtt.retained`, or can't be.
  func restored() {
    guard !isLoaded else { return }
    isLoaded = true
    former = [:]
    serve()
  }

  private func serve() {
    isReady.store(true, ordering: .releasing)
    let bodies = waiting
    waiting = []
    for body in bodies { body() }
  }

  // MARK: The journal

  private func write(
    _ key: [UInt8], _ value: MQTTRetainedValue, _ completion: @escaping @Sendable () -> Void
  ) {
    lastVersion += 1
    let entry = entries[key]
    bytes += value.body.count - (entry?.length ?? 0)
    entries[key] = Entry(version: lastVersion, offset: entry?.offset, length: value.body.count)
    journal?.append(key, value.encoded(version: lastVersion), completion)
  }

  private func delete(_ key: [UInt8], _ completion: @escaping @Sendable () -> Void) {
    lastVersion += 1
    bytes -= entries[key]?.length ?? 0
    entries[key]?.length = 0
    entries[key]?.isDeleted = true
    entries[key]?.version = lastVersion
    journal?.append(key, MQTTRetainedValue.deletion(version: lastVersion), completion)
  }

  func found(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isOwn: Bool, offset: UInt64) {
    let key = unsafe Array(key)
    guard let (version, value) = unsafe MQTTRetainedValue.decode(value) else { return }
    if isOwn {
      guard entries[key]?.version == version else { return }
      if value == nil { entries[key] = nil } else { entries[key]?.offset = offset }
      return
    }
    // After the start all records are this process' own: two processes don't share a store.
    guard !isLoaded else { return }
    bytes += (value?.body.count ?? 0) - (entries[key]?.length ?? 0)
    former[key] = value
    entries[key] = value.map { Entry(version: 0, offset: offset, length: $0.body.count) }
  }

  func loaded(_ journal: MQTTJournal) { mirror?.open() }

  var extent: (count: Int, first: UInt64?) {
    (entries.count, entries.values.lazy.compactMap(\.offset).min())
  }

  func rewrite(before offset: UInt64, by journal: MQTTJournal) { journal.readAgain(before: offset) }

  func foundAgain(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isOwn: Bool, offset: UInt64,
    by journal: MQTTJournal
  ) {
    let key = unsafe Array(key)
    guard let entry = entries[key], let (version, value) = unsafe MQTTRetainedValue.decode(value), let value,
      isOwn ? entry.version == version : entry.version == 0 && entry.offset == offset
    else { return }
    write(key, value) {}
  }
}

/// A retained message in the journal.
///
/// ```
///  +-----------+-----------+------------------------------------------+
///  | u64       | i64       | the body of the record in mqtt.retained; |
///  | version   | time, ms  | no time and no body for a deletion       |
///  +-----------+-----------+------------------------------------------+
/// ```
struct MQTTRetainedValue {
  /// When it was published, in milliseconds since 1970.
  var time: Int64
  /// Of kind ``RecordLayout/Kind/attributed``.
  var body: [UInt8]

  func encoded(version: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(version)
    writer.integer(time)
    return writer.bytes + body
  }

  static func deletion(version: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(version)
    return writer.bytes
  }

  /// Nil for what no broker has written.
  static func decode(_ bytes: UnsafeRawBufferPointer) -> (version: UInt64, value: MQTTRetainedValue?)? {
    var reader = unsafe ByteReader(bytes)
    guard let version = try? reader.integer("version", as: UInt64.self) else { return nil }
    guard unsafe !reader.remaining.isEmpty else { return (version, nil) }
    guard let time = try? reader.integer("time", as: Int64.self) else { return nil }
    return unsafe (version, MQTTRetainedValue(time: time, body: Array(reader.remaining)))
  }

  /// The record as it is published anew: its expiry counts from `now` on. Nil for one that has expired.
  func record(at now: Int64) -> BatchBuilder? {
    unsafe body.withUnsafeBytes { body -> BatchBuilder? in
      guard let parts = try? unsafe RecordAttributes(body) else { return nil }
      var isExpired = false
      var headers: [(name: [UInt8], value: [UInt8])] = []
      unsafe parts.forEachHeader { name, value in
        var header = unsafe (name: Array(name), value: Array(value))
        if unsafe name.elementsEqual(MQTTRecordHeaders.expiry.utf8),
          let seconds = unsafe UInt32(String(decoding: value, as: UTF8.self))
        {
          let left = Int64(seconds) - max(0, now - time) / 1000
          isExpired = isExpired || left <= 0
          header.value = Array("\(max(0, left))".utf8)
        }
        headers.append(header)
      }
      guard !isExpired else { return nil }
      var batch = BatchBuilder()
      guard (try? unsafe batch.append(key: parts.key, headers: headers, payload: parts.payload)) != nil else {
        return nil
      }
      return batch
    }
  }
}
