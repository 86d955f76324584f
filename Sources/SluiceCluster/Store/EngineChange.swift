import SluiceNATS
import SluiceStore
import SluiceWire

/// The format of a ``TopicChange`` in the messages of a shard's stream, little-endian:
///
///     u64 topic · u8 flags: 1 deletion, 2 row, 4 truncation
///     [u32 size · row] · [u64 first offset · u64 bytes before]
///     u32 states × (u8 kind · u8 key size · key · u32 value size, all ones for none · value)
///     u32 batches × (u32 size · batch)
///
/// A truncation contains the topic's new beginning, so a change can be read without the batches that it drops.
struct EngineChange {
  /// The beginning of a topic.
  struct Beginning: Hashable, Sendable {
    var firstOffset: UInt64
    var bytesBefore: UInt64
  }

  var topic: TopicID
  var isDeletion = false
  var row: StoredTopic?
  var beginning: Beginning?
  var states: [TopicChange.State] = []
  /// The places of the batches in the body, and their headers.
  var batches: [(place: Range<Int>, header: BatchHeader)] = []

  // MARK: Writing

  /// Batches of at least this many bytes are sent without being copied.
  private static let leastInsert = 4_096

  static func size(of change: TopicChange, row: [UInt8]?) -> Int {
    var size = 8 + 1 + 16 + 8 + (row.map { 4 + $0.count } ?? 0)
    for state in change.states { size += 6 + state.key.count + (state.value?.count ?? 0) }
    for batch in change.batches { size += 4 + batch.bytes }
    return size
  }

  /// The messages: one, unless its payload would exceed `most` bytes.
  static func messages(
    of change: TopicChange, _ beginning: Beginning?, to subject: String, fence: UInt64, commit: UInt64,
    atMost most: Int
  ) -> [NATSMessage] {
    let row = change.isDeletion ? nil : change.row?.encoded()
    let size = size(of: change, row: row)
    if EngineEnvelope.size + size <= most {
      var writer = EngineEnvelope(.change, fence: fence, commit: commit).writer()
      var message = NATSMessage(subject: subject)
      write(change, row, beginning, to: &writer) { batch, writer in
        if batch.bytes < leastInsert { return unsafe writer.raw(batch.value) }
        message.inserts.append(unsafe NATSInsert(at: writer.bytes.count, batch.value, of: batch))
      }
      message.payload = writer.bytes
      return [message]
    }
    var writer = ByteWriter()
    writer.bytes.reserveCapacity(size)
    write(change, row, beginning, to: &writer) { batch, writer in unsafe writer.raw(batch.value) }
    return EngineEnvelope(.change, fence: fence, commit: commit).payloads(of: writer.bytes, atMost: most)
      .map { NATSMessage(subject: subject, payload: $0) }
  }

  /// - Parameter add: adds a batch behind its size.
  private static func write(
    _ change: TopicChange, _ row: [UInt8]?, _ beginning: Beginning?, to writer: inout ByteWriter,
    _ add: (BatchBlock, inout ByteWriter) -> Void
  ) {
    writer.integer(change.topic.rawValue)
    writer.integer(
      UInt8(change.isDeletion ? 1 : 0) | (row == nil ? 0 : 2)
        | (beginning == nil || change.isDeletion ? 0 : 4))
    if let row { writer.sized(row) }
    if let beginning, !change.isDeletion {
      writer.integer(beginning.firstOffset)
      writer.integer(beginning.bytesBefore)
    }
    let states = change.isDeletion ? [] : change.states
    writer.integer(UInt32(states.count))
    for state in states { writer.state(state.kind, state.key, state.value) }
    let batches = change.isDeletion ? [] : change.batches
    writer.integer(UInt32(batches.count))
    for batch in batches {
      writer.integer(UInt32(batch.bytes))
      add(batch, &writer)
    }
  }

  // MARK: Reading

  /// - Parameter body: the bytes after the envelope.
  init(_ body: UnsafeRawBufferPointer) throws(StoreError) {
    var reader = unsafe ByteReader(body)
    let size = body.count
    do throws(WireError) {
      topic = TopicID(rawValue: try reader.integer("topic"))
      let flags: UInt8 = try reader.integer("flags")
      isDeletion = flags & 1 != 0
      if flags & 2 != 0 { row = try reader.row() }
      if flags & 4 != 0 {
        beginning = Beginning(
          firstOffset: try reader.integer("first offset"), bytesBefore: try reader.integer("bytes before"))
      }
      for _ in 0..<(try reader.integer("states", as: UInt32.self)) { states.append(try reader.state()) }
      for _ in 0..<(try reader.integer("batches", as: UInt32.self)) {
        let count = Int(try reader.integer("batch's size", as: UInt32.self))
        let start = size - reader.count
        let bytes = try unsafe reader.bytes("batch", count: count)
        guard let header = unsafe BatchHeader(bytes) else {
          throw WireError(.malformedFrame, "a batch has \(count) bytes")
        }
        batches.append((start..<start + count, header))
      }
    } catch {
      throw EngineEnvelope.unreadable(error)
    }
  }
}

/// The state of a topic except its batches, as of the sequence of its message. Little-endian:
///
///     u64 topic · u8 0 for a topic that is deleted, and then nothing more
///     u32 size · row · u64 first offset · u64 head · u64 bytes before · u64 bytes through · i64 last time
///     u64 floor · u64 last · u32 states, as in EngineChange
struct TopicCheckpoint {
  var topic: TopicID
  /// Nil for a deleted topic.
  var state: EngineTopic?

  init(_ topic: TopicID, _ state: EngineTopic?) {
    self.topic = topic
    self.state = state
  }

  func payloads(fence: UInt64, atMost most: Int) -> [[UInt8]] {
    var writer = ByteWriter()
    writer.integer(topic.rawValue)
    writer.integer(UInt8(state == nil ? 0 : 1))
    if let state {
      writer.sized(state.row.encoded())
      writer.integer(state.extent.firstOffset)
      writer.integer(state.extent.head)
      writer.integer(state.extent.bytesBefore)
      writer.integer(state.extent.bytesThrough)
      writer.integer(state.extent.lastTime)
      writer.integer(state.floor)
      writer.integer(state.last)
      writer.integer(UInt32(state.states.reduce(0) { $0 + $1.value.count }))
      for (kind, states) in state.states {
        for (key, value) in states { writer.state(kind, key, value) }
      }
    }
    return EngineEnvelope(.checkpoint, fence: fence).payloads(of: writer.bytes, atMost: most)
  }

  /// - Parameter body: the bytes after the envelope.
  init(_ body: UnsafeRawBufferPointer) throws(StoreError) {
    var reader = unsafe ByteReader(body)
    do throws(WireError) {
      topic = TopicID(rawValue: try reader.integer("topic"))
      guard try reader.integer("presence", as: UInt8.self) != 0 else { return }
      var found = EngineTopic(row: try reader.row())
      found.extent.firstOffset = try reader.integer("first offset")
      found.extent.head = try reader.integer("head")
      found.extent.bytesBefore = try reader.integer("bytes before")
      found.extent.bytesThrough = try reader.integer("bytes through")
      found.extent.lastTime = try reader.integer("last time")
      found.floor = try reader.integer("floor")
      found.last = try reader.integer("last")
      for _ in 0..<(try reader.integer("states", as: UInt32.self)) { found.set(try reader.state()) }
      state = found
    } catch {
      throw EngineEnvelope.unreadable(error)
    }
  }
}

extension EngineEnvelope {
  /// Splits a body into parts of at most `most` bytes each, including envelopes.
  func payloads(of body: [UInt8], atMost most: Int) -> [[UInt8]] {
    let room = most - Self.size
    let parts = max(1, (body.count + room - 1) / room)
    return (0..<parts).map { part in
      let slice = body[part * room..<min(body.count, (part + 1) * room)]
      var writer = EngineEnvelope(kind, fence: fence, commit: commit, part: part, parts: parts)
        .writer(reserving: slice.count)
      writer.bytes.append(contentsOf: slice)
      return writer.bytes
    }
  }
}

extension ByteWriter {
  fileprivate mutating func sized(_ bytes: [UInt8]) {
    integer(UInt32(bytes.count))
    self.bytes.append(contentsOf: bytes)
  }

  fileprivate mutating func state(_ kind: StoredState.Kind, _ key: [UInt8], _ value: [UInt8]?) {
    integer(kind.rawValue)
    integer(UInt8(key.count))
    bytes.append(contentsOf: key)
    if let value { sized(value) } else { integer(UInt32.max) }
  }
}

extension ByteReader {
  fileprivate mutating func row() throws(WireError) -> StoredTopic {
    let size = Int(try integer("row's size", as: UInt32.self))
    let bytes = try unsafe bytes("row", count: size)
    do throws(StoreError) {
      return try unsafe StoredTopic(decoding: bytes)
    } catch {
      throw WireError(error.kind == .newer ? .unsupported : .malformedFrame, error.message)
    }
  }

  fileprivate mutating func state() throws(WireError) -> TopicChange.State {
    let number: UInt8 = try integer("state's kind")
    guard let kind = StoredState.Kind(rawValue: number) else {
      throw WireError(.unsupported, "a state is of kind \(number), which this software doesn't know")
    }
    let keySize: UInt8 = try integer("key's size")
    let key = unsafe Array(try unsafe bytes("key", count: Int(keySize)))
    let size: UInt32 = try integer("value's size")
    guard size != .max else { return TopicChange.State(kind, key: key, value: nil) }
    return TopicChange.State(
      kind, key: key, value: unsafe Array(try unsafe bytes("value", count: Int(size))))
  }
}
