/// The output of a connection: its own bytes, and long texts that it shares with other connections without copying them.
package struct HTTPOutput: Sendable {
  /// Shorter texts are copied, which costs less than a separate write.
  private static let longText = 16 << 10
  /// The most written bytes that stay in memory before others.
  private static let muchWritten = 64 << 10

  /// All bytes before ``last``, in order.
  private var pieces: [[UInt8]] = []
  private var last: [UInt8] = []
  /// The number of bytes of the first piece that are written.
  private var written = 0
  /// The number of pending bytes.
  package private(set) var count = 0

  package var isEmpty: Bool { count == 0 }

  mutating func append(_ bytes: some Collection<UInt8>) {
    last.append(contentsOf: bytes)
    count += bytes.count
  }

  mutating func append(shared text: [UInt8]) {
    guard text.count >= Self.longText else { return append(text) }
    if !last.isEmpty { pieces.append(last) }
    last = []
    pieces.append(text)
    count += text.count
  }

  mutating func removeAll() { self = HTTPOutput() }

  /// Writes as much as the stream accepts.
  ///
  /// - Parameter write: returns how many bytes were accepted; nil if the stream has failed.
  /// - Returns: false if the stream has failed.
  mutating func write(_ write: (UnsafeRawBufferPointer) -> Int?) -> Bool {
    guard !isEmpty else { return true }
    var done = 0
    defer { pieces.removeFirst(done) }
    while done < pieces.count {
      guard let isWhole = unsafe self.write(pieces[done], write) else { return false }
      if !isWhole { return true }
      done += 1
    }
    guard let isWhole = unsafe self.write(last, write) else { return false }
    if isWhole {
      // Keeps the memory of a connection with medium traffic, and frees it otherwise.
      last.removeAll(keepingCapacity: (1025...131_072).contains(last.capacity))
    } else if written >= Self.muchWritten, written * 2 >= last.count {
      last.removeFirst(written)
      written = 0
    }
    return true
  }

  /// Returns whether the rest of a piece was written; nil if the stream has failed.
  private mutating func write(_ piece: [UInt8], _ write: (UnsafeRawBufferPointer) -> Int?) -> Bool? {
    guard written < piece.count else {
      written = 0
      return true
    }
    let count = unsafe piece.withUnsafeBytes {
      unsafe write(UnsafeRawBufferPointer(rebasing: $0[written...]))
    }
    guard let count else { return nil }
    written += count
    self.count -= count
    guard written == piece.count else { return false }
    written = 0
    return true
  }
}
