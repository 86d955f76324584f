import SluiceIO
import SluiceWire

// Writes a roster into its log, so that earlier records can be trimmed.
extension MQTTRoster {
  /// Writes a copy of the current roster, part by part, so that each part needs memory only while it is written.
  struct SnapshotWriter {
    private let roster: MQTTRoster
    private var index: MQTTRosterEntries.Index?

    init(_ roster: MQTTRoster) {
      self.roster = roster
    }

    /// Returns the next part, of about this many bytes; nil after the last one.
    mutating func next(bytes: Int) -> [UInt8]? {
      var writer = ByteWriter()
      var place: MQTTRosterEntries.Index
      if let index {
        guard index < roster.entries.endIndex else { return nil }
        place = index
      } else {
        place = roster.entries.startIndex
        for (number, process) in roster.processes.sorted(by: { $0.key < $1.key }) {
          writer.integer(UInt8(0))
          writer.integer(number)
          writer.string(process.node)
          writer.integer(process.serial)
        }
      }
      while place < roster.entries.endIndex {
        let (key, entry) = roster.entries[place]
        // A part with several entries is at most as long as the record of one entry may be.
        if writer.bytes.count > 0, writer.bytes.count + entry.state.size > bytes { break }
        writer.integer(UInt8(1))
        writer.string(key.identity)
        writer.string(key.clientID)
        entry.encode(into: &writer)
        place = roster.entries.index(after: place)
      }
      index = place
      return writer.bytes
    }
  }

  /// - Throws: ``ErrorCode/malformedFrame`` for malformed parts.
  init(parts: [[UInt8]]) throws(WireError) {
    for part in parts {
      try unsafe part.withUnsafeBufferPointer { part throws(WireError) in
        var reader = unsafe ByteReader(UnsafeRawBufferPointer(part))
        while reader.count > 0 { try self.take(&reader) }
      }
    }
  }

  private mutating func take(_ reader: inout ByteReader) throws(WireError) {
    if try reader.integer("item", as: UInt8.self) == 0 {
      let number: UInt64 = try reader.integer("process")
      restore(Process(node: try reader.string("node"), serial: try reader.integer("serial")), number)
    } else {
      let key = MQTTHub.Key(
        identity: try reader.string("identity"), clientID: try reader.string("client identifier"))
      restore(try Entry(&reader), key)
    }
  }
}

/// A snapshot that a process is writing.
struct MQTTSnapshotProgress {
  /// It contains the state before the record at this offset.
  let offset: UInt64
  /// When its last part was written.
  var time: MonotonicTime
  /// How many parts were written.
  var count: UInt32 = 0
  /// The serial of the last record that was written of it.
  var serial: UInt64 = 0
  /// Whether that was its final record.
  var isComplete = false
  var writer: MQTTRoster.SnapshotWriter
}

extension MQTTRoster.Entry {
  fileprivate func encode(into writer: inout ByteWriter) {
    writer.integer(UInt8((holder == nil ? 0 : 1) | (waiting == nil ? 0 : 2) | (leftAt == nil ? 0 : 4)))
    if let holder { writer.claim(holder) }
    if let waiting {
      writer.claim(waiting.claim)
      writer.integer(UInt8(waiting.isClean ? 1 : 0))
    }
    if let leftAt { writer.integer(leftAt) }
    state.encode(into: &writer)
    writer.integer(UInt16(clamping: due.count))
    for will in due.prefix(Int(UInt16.max)) {
      writer.claim(will.claim)
      writer.integer(will.delay)
      writer.sized(will.bytes)
    }
  }

  fileprivate init(_ reader: inout ByteReader) throws(WireError) {
    let flags: UInt8 = try reader.integer("flags")
    if flags & 1 != 0 { holder = try reader.claim() }
    if flags & 2 != 0 {
      let claim = try reader.claim()
      waiting = MQTTRoster.Waiting(claim: claim, isClean: try reader.integer("clean", as: UInt8.self) != 0)
    }
    if flags & 4 != 0 { leftAt = try reader.integer("time", as: Int64.self) }
    state = try MQTTRosterState(&reader)
    for _ in 0..<(try reader.integer("wills", as: UInt16.self)) {
      let claim = try reader.claim()
      let delay: UInt32 = try reader.integer("delay")
      due.append(MQTTRosterWill(claim: claim, delay: delay, bytes: try reader.sized()))
    }
  }
}
