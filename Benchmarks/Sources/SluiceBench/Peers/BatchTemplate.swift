/// Runs of records that have the same form on the wire: a constant prefix, the payload, and a suffix of constant length.
///
/// Text protocols and MQTT deliver records like this if topic and payload size are constant, so each record needs one comparison and no parsing.
struct FixedRecords {
  let prefix: BytePattern
  let stride: Int

  init(prefix: [UInt8], payloadSize: Int, suffixSize: Int) {
    self.prefix = BytePattern(prefix)
    stride = prefix.count + payloadSize + suffixSize
  }

  /// Passes on the whole records from `position` on, and moves it after the last of them.
  @inline(__always)
  func take(_ bytes: UnsafeRawBufferPointer, from position: inout Int, into sink: inout some RecordSink) {
    let base = bytes.baseAddress!
    var place = position
    while bytes.count - place >= stride, prefix.matches(base + place) {
      sink.record(base + place + prefix.count)
      place += stride
    }
    position = place
  }

  /// Passes on the whole records of a protocol without other messages. Returns how many bytes were used.
  ///
  /// - Parameter describe: describes the bytes at a position at which no record can begin.
  @inline(__always)
  func takeAll(
    _ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink, orFail describe: (Int) -> String
  ) throws -> Int {
    var position = 0
    take(bytes, from: &position, into: &sink)
    guard position == bytes.count || mayBegin(bytes, at: position) else {
      throw BenchError(describe(position))
    }
    return position
  }

  /// Returns whether a record may begin at `position`, so that more bytes are needed.
  func mayBegin(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Bool {
    prefix.couldMatch(bytes.baseAddress! + position, available: bytes.count - position)
  }
}

/// A batch of records that is encoded once. Only the numbers are written for each send.
///
/// Each protocol here gives a record a fixed length, so a batch is a header and `capacity` equal strides:
///
///     header | prefix payload suffix | prefix payload suffix | ...
///
/// A payload begins with a little-endian u64, publisher << 48 | sequence, then a u64 with the time of sending if that is measured, then filler.
struct BatchTemplate {
  let buffer: PinnedBuffer
  /// The publisher's number.
  private let publisher: Int
  let headerSize: Int
  let stride: Int
  let payloadOffset: Int

  init(publisher: Int, _ target: LoadTarget, header: [UInt8] = [], prefix: [UInt8], suffix: [UInt8] = []) {
    self.publisher = publisher
    headerSize = header.count
    stride = prefix.count + target.size + suffix.count
    payloadOffset = prefix.count
    buffer = PinnedBuffer(count: headerSize + stride * target.batch)
    let payload = Self.payload(target)
    let record = prefix + payload + suffix
    header.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(start: buffer.base, count: headerSize).copyMemory(from: $0)
    }
    for index in 0..<target.batch {
      let place = buffer.base + headerSize + index * stride
      record.withUnsafeBytes { place.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
    }
  }

  private static func payload(_ target: LoadTarget) -> [UInt8] {
    func letters(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: 0x61 + $0 % 26) } }
    guard let contained = target.contained else { return letters(target.size) }
    let head = 4 + 16
    var payload: [UInt8] = []
    for number in 0..<(target.size / contained + 1) {
      withUnsafeBytes(of: UInt32(contained - 4).littleEndian) { payload += $0 }
      withUnsafeBytes(of: UInt64(number).littleEndian) { payload += $0 }
      payload += [UInt8](repeating: 0, count: 8) + letters(contained - head)
    }
    return Array(payload.prefix(target.size))
  }

  /// Writes the numbers of `count` records and returns the bytes of header and records.
  @inline(__always)
  func fill(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer {
    var place = buffer.base + headerSize + payloadOffset
    var word = UInt64(publisher) << 48 | first
    for _ in 0..<count {
      place.storeBytes(of: word.littleEndian, as: UInt64.self)
      place.storeBytes(of: stamp.littleEndian, toByteOffset: 8, as: UInt64.self)
      word &+= 1
      place += stride
    }
    return UnsafeRawBufferPointer(start: buffer.base, count: headerSize + count * stride)
  }
}
