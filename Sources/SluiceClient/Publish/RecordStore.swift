import SluiceWire

/// Encoded records one behind the other. Places count from the first byte that ever was in it, so that they stay when the front is
/// forgotten.
struct RecordStore {
  private var bytes: [UInt8] = []
  /// The place of the first byte.
  private var base = 0

  /// Memory up to this is kept when nothing is in it, and not worth moving what is behind it.
  private static let keptCapacity = 256 << 10

  var end: Int { base + bytes.count }

  /// Lets `body` append a record. Returns how many bytes that were.
  mutating func append(_ body: (inout [UInt8]) -> Void) -> Int {
    let before = bytes.count
    body(&bytes)
    return bytes.count - before
  }

  func copy(_ range: Range<Int>, to output: inout [UInt8]) {
    unsafe bytes.withUnsafeBytes {
      unsafe output.append(contentsOf: $0[(range.lowerBound - base)..<(range.upperBound - base)])
    }
  }

  /// Where the record behind that at `place` begins.
  func next(_ place: Int) -> Int {
    unsafe bytes.withUnsafeBytes {
      unsafe place + RecordLayout.wordSize
        + RecordLayout.length(RecordLayout.word(at: $0.baseAddress! + (place - base)))
    }
  }

  /// Where so many of the `count` records between two places end: at most `records`, about `limit` bytes, but one at least.
  func cut(from start: Int, to end: Int, of count: UInt64, records: UInt64, bytes limit: Int)
    -> (count: UInt64, end: Int)
  {
    if count <= records, end - start <= limit { return (count, end) }
    var place = start
    var taken: UInt64 = 0
    unsafe bytes.withUnsafeBytes { all in
      let first = unsafe all.baseAddress! - base
      while taken < min(records, count) {
        let next =
          unsafe place + RecordLayout.wordSize + RecordLayout.length(RecordLayout.word(at: first + place))
        guard next - start <= limit || taken == 0 else { break }
        place = next
        taken += 1
      }
    }
    return (taken, place)
  }

  /// Everything before `place` isn't needed any more.
  mutating func forget(before place: Int) {
    let count = place - base
    if count == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      base = place
    } else if count > Self.keptCapacity, count * 2 > bytes.count {
      bytes.removeSubrange(..<count)
      base = place
    }
  }
}
