import SluiceWire

/// A connection's claim to a session: the connection's process, and a number that is unique within the process.
struct MQTTClaim: Hashable, Sendable {
  var process: UInt64
  var number: UInt64

  /// The producer ID for records that are published once for the claim, such as its will.
  var producer: UInt64 {
    // SplitMix64, so that the claims of different processes have different producer IDs.
    var value = process &+ number &* 0x9E37_79B9_7F4A_7C15
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return max(1, value ^ (value >> 31))
  }
}

/// A will in the roster.
struct MQTTRosterWill: Hashable, Sendable {
  /// The claim of the connection that left it.
  var claim: MQTTClaim
  /// In seconds after the end of the connection.
  var delay: UInt32
  var bytes: [UInt8]
}

/// A record of a process in the log of sessions.
///
/// ```
///  +-----------+-----------+-----------+----+------------------+
///  | u8        | u64       | u64       | u8 | the fields of    |
///  | format: 2 | process   | serial    |kind| the kind         |
///  +-----------+-----------+-----------+----+------------------+
/// ```
///
/// The record's key is the session's, empty for records about a process. A process numbers its records, so that a repeated record is recognized by its
/// serial.
struct MQTTRosterRecord: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    /// The process begins at the node of that name, at that time in milliseconds since 1970: an earlier process of that node has ended.
    case hello(node: String, time: Int64)
    /// Another process has ended, at that time in milliseconds since 1970.
    case gone(process: UInt64, time: Int64)
    /// A connection claims the session. Clean: an existing session ends.
    case claim(number: UInt64, isClean: Bool)
    /// The session's state while a connection holds it.
    case state(number: UInt64, MQTTRosterState)
    /// The connection has ended, and leaves that state. `mourns`: whether to publish the will.
    case release(number: UInt64, MQTTRosterState, time: Int64, mourns: Bool)
    /// The connection has waited for long enough.
    case seize(number: UInt64)
    /// A will was published, or must not be.
    case willDone(MQTTClaim)
    /// The session whose connection ended at that time has expired.
    case expired(leftAt: Int64)
    /// A part of the whole roster before the record at that offset.
    case snapshot(offset: UInt64, part: UInt32, bytes: [UInt8])
    /// All parts have been written.
    case snapshotEnd(offset: UInt64, parts: UInt32)
  }

  var process: UInt64
  var serial: UInt64
  var kind: Kind
}

/// The state of a session that its connection stores.
struct MQTTRosterState: Hashable, Sendable {
  /// Empty for a session that ends with its connection.
  var bytes: [UInt8] = []
  /// In seconds; all ones: without limit.
  var expiry: UInt32 = 0
  /// Nil for none.
  var will: [UInt8]?
  var willDelay: UInt32 = 0

  /// The size in bytes.
  var size: Int { bytes.count + (will?.count ?? 0) }
}

// MARK: - Encoding

extension MQTTRosterRecord {
  private static let format: UInt8 = 2

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.integer(Self.format)
    writer.integer(process)
    writer.integer(serial)
    switch kind {
    case .hello(let node, let time):
      writer.integer(UInt8(0))
      writer.string(node)
      writer.integer(time)
    case .gone(let process, let time):
      writer.integer(UInt8(1))
      writer.integer(process)
      writer.integer(time)
    case .claim(let number, let isClean):
      writer.integer(UInt8(2))
      writer.integer(number)
      writer.integer(UInt8(isClean ? 1 : 0))
    case .state(let number, let state):
      writer.integer(UInt8(3))
      writer.integer(number)
      state.encode(into: &writer)
    case .release(let number, let state, let time, let mourns):
      writer.integer(UInt8(4))
      writer.integer(number)
      state.encode(into: &writer)
      writer.integer(time)
      writer.integer(UInt8(mourns ? 1 : 0))
    case .seize(let number):
      writer.integer(UInt8(5))
      writer.integer(number)
    case .willDone(let claim):
      writer.integer(UInt8(6))
      writer.claim(claim)
    case .expired(let time):
      writer.integer(UInt8(7))
      writer.integer(time)
    case .snapshot(let offset, let part, let bytes):
      writer.integer(UInt8(8))
      writer.integer(offset)
      writer.integer(part)
      writer.sized(bytes)
    case .snapshotEnd(let offset, let parts):
      writer.integer(UInt8(9))
      writer.integer(offset)
      writer.integer(parts)
    }
    return writer.bytes
  }

  /// The record as an item of a batch, see ``BatchBuilder``.
  func item(of key: MQTTHub.Key?) -> [UInt8] {
    var batch = BatchBuilder()
    let (key, value) = (key?.encoded ?? [], encoded)
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        // Keys and values are far below the limits of a record.
        try? unsafe batch.append(key: key, headers: [], payload: value)
      }
    }
    return batch.bytes
  }

  /// Nil for bytes that no process of this version writes.
  init?(decoding bytes: UnsafeRawBufferPointer) {
    var reader = unsafe ByteReader(bytes)
    guard (try? reader.integer("format", as: UInt8.self)) == Self.format,
      let process: UInt64 = try? reader.integer("process"),
      let serial: UInt64 = try? reader.integer("serial"), let kind = try? Kind(&reader), reader.count == 0
    else { return nil }
    self.init(process: process, serial: serial, kind: kind)
  }
}

extension MQTTRosterRecord.Kind {
  fileprivate init(_ reader: inout ByteReader) throws(WireError) {
    switch try reader.integer("kind", as: UInt8.self) {
    case 0: self = .hello(node: try reader.string("node"), time: try reader.integer("time"))
    case 1: self = .gone(process: try reader.integer("process"), time: try reader.integer("time"))
    case 2:
      self = .claim(
        number: try reader.integer("number"), isClean: try reader.integer("clean", as: UInt8.self) != 0)
    case 3: self = .state(number: try reader.integer("number"), try MQTTRosterState(&reader))
    case 4:
      self = .release(
        number: try reader.integer("number"), try MQTTRosterState(&reader), time: try reader.integer("time"),
        mourns: try reader.integer("mourns", as: UInt8.self) != 0)
    case 5: self = .seize(number: try reader.integer("number"))
    case 6: self = .willDone(try reader.claim())
    case 7: self = .expired(leftAt: try reader.integer("time"))
    case 8:
      self = .snapshot(
        offset: try reader.integer("offset"), part: try reader.integer("part"), bytes: try reader.sized())
    case 9: self = .snapshotEnd(offset: try reader.integer("offset"), parts: try reader.integer("parts"))
    default: throw WireError(.malformedFrame, "the record of MQTT sessions can't be read")
    }
  }
}

extension MQTTRosterState {
  func encode(into writer: inout ByteWriter) {
    writer.sized(bytes)
    writer.integer(expiry)
    writer.integer(UInt8(will == nil ? 0 : 1))
    guard let will else { return }
    writer.sized(will)
    writer.integer(willDelay)
  }

  init(_ reader: inout ByteReader) throws(WireError) {
    bytes = try reader.sized()
    expiry = try reader.integer("expiry")
    guard try reader.integer("will", as: UInt8.self) == 1 else { return }
    will = try reader.sized()
    willDelay = try reader.integer("will delay")
  }
}

extension ByteWriter {
  /// A `u32` length and the bytes.
  mutating func sized(_ other: [UInt8]) {
    integer(UInt32(other.count))
    bytes.append(contentsOf: other)
  }

  mutating func claim(_ claim: MQTTClaim) {
    integer(claim.process)
    integer(claim.number)
  }
}

extension ByteReader {
  mutating func sized() throws(WireError) -> [UInt8] {
    let count = Int(try integer("length", as: UInt32.self))
    return unsafe Array(try bytes("bytes", count: count))
  }

  mutating func claim() throws(WireError) -> MQTTClaim {
    MQTTClaim(process: try integer("process"), number: try integer("number"))
  }
}
