import SluiceIO

/// Bytes that repeat only after a prime number of them, so that a loss or a swap shows.
func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(count)
  while bytes.count < count {
    let first = (start + bytes.count) % patternBlock.count
    bytes += patternBlock[first..<min(patternBlock.count, first + count - bytes.count)]
  }
  return bytes
}

private let patternBlock = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }

/// SluiceIO's generator, not that of the wire tests.
typealias SeededRandom = SluiceIO.SeededRandom

extension SeededRandom {
  /// Mostly short, sometimes longer than a record.
  mutating func length() -> Int {
    switch next(below: 8) {
    case 0: 0
    case 1: Int(next(below: 70_000))
    case 2: 16_384
    default: Int(next(below: 300))
    }
  }
}
