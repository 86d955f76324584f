/// What a connection has for its client to read: bytes of its own, and long texts that it shares with other connections and doesn't copy.
package struct HTTPOutput: Sendable {
  /// A shorter text is copied: that costs less than a write of its own.
  private static let longText = 16 << 10
  /// So many bytes that are written already, and no more, stay in memory in front of others.
  private static let muchWritten = 64 << 10

  /// In order, all before ``last``.
  private var pieces: [[UInt8]] = []
  private var last: [UInt8] = []
  /// Bytes of the first of all that are written.
  private var written = 0
  /// Bytes that wait.
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

  /// Writes as much as the stream takes.
  ///
  /// - Parameter write: returns how many bytes were taken; nil where the stream has failed.
  /// - Returns: whether the stream goes on.
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
      // Memory is kept where there is traffic, and returned where there is little.
      last.removeAll(keepingCapacity: (1025...131_072).contains(last.capacity))
    } else if written >= Self.muchWritten, written * 2 >= last.count {
      last.removeFirst(written)
      written = 0
    }
    return true
  }

  /// Returns whether the rest of a piece was written; nil where the stream has failed.
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
