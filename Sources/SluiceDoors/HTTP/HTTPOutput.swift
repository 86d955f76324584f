import SluiceIO

/// What a connection has for its client to read: bytes of its own, and long texts that it shares with other connections and doesn't copy.
struct HTTPOutput {
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
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

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
  /// - Returns: whether the stream goes on.
  mutating func write(to stream: any ByteStream) -> Bool {
    var done = 0
    defer { pieces.removeFirst(done) }
    while done < pieces.count {
      guard let isWhole = write(pieces[done], to: stream) else { return false }
      if !isWhole { return true }
      done += 1
    }
    guard let isWhole = write(last, to: stream) else { return false }
    if isWhole {
      last.removeAllKeepingUseful()
    } else if written >= Self.muchWritten, written * 2 >= last.count {
      last.removeFirst(written)
      written = 0
    }
    return true
  }

  /// Returns whether the rest of a piece was written; nil where the stream has failed.
  private mutating func write(_ piece: [UInt8], to stream: any ByteStream) -> Bool? {
    guard written < piece.count else {
      written = 0
      return true
    }
    let result = unsafe piece.withUnsafeBytes {
      unsafe stream.write(UnsafeRawBufferPointer(rebasing: $0[written...]))
    }
    guard case .wrote(let taken) = result else { return nil }
    written += taken
    count -= taken
    guard written == piece.count else { return false }
    written = 0
    return true
  }
}
