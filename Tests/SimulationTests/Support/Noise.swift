import SluiceIO

/// Bytes from which payloads are cut: random, but the same in every run.
enum Noise {
  static let bytes: [UInt8] = {
    var random = SeededRandom(seed: 0x5EED)
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      let words = UnsafeMutableRawBufferPointer(buffer).bindMemory(to: UInt64.self)
      for index in words.indices { words[index] = random.next() }
      filled = count
    }
  }()

  static let count = 256 << 10
  /// The longest piece that can be cut.
  static let longest = 192 << 10

  /// Passes `length` bytes, at most ``longest``, that depend on `choice`.
  static func piece<Result>(
    of length: Int, choice: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    precondition(length <= longest)
    let start = Int(choice &* 0x9e37_79b9_7f4a_7c15 >> 40) % (count - longest)
    return try bytes.withUnsafeBytes {
      try body(UnsafeRawBufferPointer(rebasing: $0[start..<start + length]))
    }
  }
}
