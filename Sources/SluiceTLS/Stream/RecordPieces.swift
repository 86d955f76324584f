import CLinux
import Glibc

/// Cuts what is to be written into pieces that fill TLS records: long vectors as they are, short ones joined.
@safe
struct RecordPieces {
  /// So much is given to OpenSSL at once, which makes records of it by itself.
  private static let longestPiece = 4 * TLSLoop.recordSize

  private let vectors: UnsafeBufferPointer<iovec>
  private let staging: UnsafeMutableRawBufferPointer
  private var index = 0
  private var offset = 0

  /// - Parameter staging: where short vectors are joined; as long as a record can be.
  init(_ vectors: UnsafeBufferPointer<iovec>, staging: UnsafeMutableRawBufferPointer) {
    unsafe self.vectors = unsafe vectors
    unsafe self.staging = unsafe staging
    skipEmpty()
  }

  /// Whether every byte was in a piece.
  var isAtEnd: Bool { unsafe index == vectors.count }

  /// The next piece, which holds until the one after it; nil at the end.
  mutating func next() -> UnsafeRawBufferPointer? {
    guard unsafe index < vectors.count else { return nil }
    let left = unsafe rest
    // The last vector goes as it is, however short; its copy would gain nothing.
    if unsafe left.count >= TLSLoop.recordSize || index == vectors.count - 1 {
      var count = min(left.count, Self.longestPiece)
      if count > TLSLoop.recordSize, unsafe index < vectors.count - 1 { count -= count % TLSLoop.recordSize }
      advance(count)
      return unsafe UnsafeRawBufferPointer(rebasing: left[..<count])
    }
    var filled = 0
    while unsafe filled < staging.count, unsafe index < vectors.count {
      let part = unsafe UnsafeRawBufferPointer(rebasing: rest.prefix(staging.count - filled))
      unsafe UnsafeMutableRawBufferPointer(rebasing: staging[filled...]).copyMemory(from: part)
      filled += part.count
      advance(part.count)
    }
    return unsafe UnsafeRawBufferPointer(rebasing: staging[..<filled])
  }

  private var rest: UnsafeRawBufferPointer {
    let vector = unsafe vectors[index]
    return unsafe UnsafeRawBufferPointer(
      start: vector.iov_base.map { unsafe UnsafeRawPointer($0) + offset },
      count: unsafe vector.iov_len - offset)
  }

  private mutating func advance(_ count: Int) {
    offset += count
    skipEmpty()
  }

  private mutating func skipEmpty() {
    while unsafe index < vectors.count, unsafe offset == vectors[index].iov_len {
      index += 1
      offset = 0
    }
  }
}
