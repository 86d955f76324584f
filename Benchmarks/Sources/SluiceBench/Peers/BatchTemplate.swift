/// A batch of records encoded once, in which only the numbers are written anew for each send.
///
/// Each protocol here gives a record a fixed length, so a batch is a header and `capacity` equal strides:
///
///     header | prefix payload suffix | prefix payload suffix | ...
///
/// A payload begins with a little-endian u64, publisher << 48 | sequence, then a u64 that carries the time of sending
/// where it is measured, then filler.
struct BatchTemplate {
  let buffer: PinnedBuffer
  let headerSize: Int
  let stride: Int
  let payloadOffset: Int

  /// - Parameter payloadSize: at least 16.
  init(header: [UInt8] = [], prefix: [UInt8], payloadSize: Int, suffix: [UInt8] = [], capacity: Int) {
    headerSize = header.count
    stride = prefix.count + payloadSize + suffix.count
    payloadOffset = prefix.count
    buffer = PinnedBuffer(count: headerSize + stride * capacity)
    let payload = (0..<payloadSize).map { UInt8(truncatingIfNeeded: 0x61 + $0 % 26) }
    let record = prefix + payload + suffix
    header.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(start: buffer.base, count: headerSize).copyMemory(from: $0)
    }
    for index in 0..<capacity {
      let place = buffer.base + headerSize + index * stride
      record.withUnsafeBytes { place.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
    }
  }

  /// Writes the numbers of `count` records and returns the bytes of header and records.
  @inline(__always)
  func fill(publisher: Int, first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer {
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
