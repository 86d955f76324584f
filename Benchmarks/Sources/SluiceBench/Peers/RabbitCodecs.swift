/// Publishes batches and counts confirmations.
struct RabbitPublisher: PublisherCodec {
  var replies = Replies()
  var acknowledged: UInt64? { confirmed }
  private var confirmed: UInt64 = 0
  /// Bytes of confirmed numbers that haven't arrived yet: only their count matters.
  private var skipping = 0
  private let template: BatchTemplate

  // Frame header: u32 size, u16 key, u16 version, u8 publisher, u32 count.
  private static let headerSize = 13

  init(_ target: LoadTarget, _ index: Int) {
    let length = withUnsafeBytes(of: UInt32(target.size).bigEndian) { Array($0) }
    template = BatchTemplate(
      publisher: index, target, header: [0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0],
      prefix: [UInt8](repeating: 0, count: 8) + length)
  }

  mutating func encode(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer {
    let bytes = template.fill(first: first, count: count, stamp: stamp)
    let base = template.buffer.base
    base.storeBytes(of: UInt32(bytes.count - 4).bigEndian, as: UInt32.self)
    base.storeBytes(of: UInt32(count).bigEndian, toByteOffset: 9, as: UInt32.self)
    var place = base + Self.headerSize
    for sequence in first..<(first + UInt64(count)) {
      place.storeBytes(of: sequence.bigEndian, as: UInt64.self)
      place += template.stride
    }
    return bytes
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    let base = bytes.baseAddress!
    var position = 0
    while true {
      let skipped = min(skipping, bytes.count - position)
      skipping -= skipped
      position += skipped
      guard bytes.count - position >= Self.headerSize else { return position }
      let size = Int(UInt32(bigEndian: (base + position).loadUnaligned(as: UInt32.self)))
      let key = UInt16(bigEndian: (base + position + 4).loadUnaligned(as: UInt16.self))
      guard key == RabbitKey.publishConfirm.rawValue else {
        throw BenchError("RabbitMQ sent a publisher frame \(key)")
      }
      confirmed += UInt64(UInt32(bigEndian: (base + position + 9).loadUnaligned(as: UInt32.self)))
      position += Self.headerSize
      skipping = size + 4 - Self.headerSize
    }
  }
}

/// Reads chunks as they arrive, record by record, and returns one credit for each.
struct RabbitSubscriber: SubscriberCodec {
  /// The most chunks in flight.
  static let credit: UInt16 = 64

  var replies = Replies()
  private let size: Int
  /// Entries of the present chunk that haven't arrived yet.
  private var entries = 0
  /// Bytes of the present frame that haven't arrived yet, entries included.
  private var remaining = 0

  // Deliver: u32 size, u16 key, u16 version, u8 subscription; then the chunk's own header of 48 bytes.
  private static let frameHeader = 9
  private static let chunkHeader = 48

  init(_ target: LoadTarget) {
    size = target.size
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    let base = bytes.baseAddress!
    let entry = 4 + size
    let length = UInt32(size).bigEndian
    var position = 0
    var chunks: UInt16 = 0
    defer { grant(chunks) }
    while true {
      if entries > 0 {
        let count = min(entries, (bytes.count - position) / entry)
        for _ in 0..<count {
          guard (base + position).loadUnaligned(as: UInt32.self) == length else {
            throw BenchError("RabbitMQ sent an entry that is not a plain record of \(size) bytes")
          }
          sink.record(base + position + 4)
          position += entry
        }
        entries -= count
        remaining -= count * entry
        if entries > 0 { return position }
        chunks += 1
      }
      let skipped = min(remaining, bytes.count - position)
      remaining -= skipped
      position += skipped
      guard remaining == 0, let used = try takeHeader(bytes, at: position) else { return position }
      position += used
    }
  }

  /// Reads the header of a delivery, or a whole heartbeat; nil if it isn't complete.
  private mutating func takeHeader(_ bytes: UnsafeRawBufferPointer, at position: Int) throws -> Int? {
    guard bytes.count - position >= 8 else { return nil }
    let base = bytes.baseAddress! + position
    let frameSize = Int(UInt32(bigEndian: base.loadUnaligned(as: UInt32.self)))
    let key = UInt16(bigEndian: (base + 4).loadUnaligned(as: UInt16.self))
    if key == RabbitKey.heartbeat.rawValue { return 4 + frameSize }
    guard key == RabbitKey.deliver.rawValue else {
      throw BenchError("RabbitMQ sent a subscriber frame \(key)")
    }
    guard bytes.count - position >= Self.frameHeader + Self.chunkHeader else { return nil }
    entries = Int(UInt16(bigEndian: (base + Self.frameHeader + 2).loadUnaligned(as: UInt16.self)))
    remaining = 4 + frameSize - Self.frameHeader - Self.chunkHeader
    guard remaining >= entries * (4 + size) else { throw BenchError("RabbitMQ sent a chunk of another form") }
    return Self.frameHeader + Self.chunkHeader
  }

  private mutating func grant(_ chunks: UInt16) {
    guard chunks > 0 else { return }
    var frame = RabbitFrame(.credit)
    frame.integer(UInt8(0))
    frame.integer(chunks)
    replies.append(frame.encoded())
  }
}
