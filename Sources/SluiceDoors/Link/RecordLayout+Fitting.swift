import SluiceWire

extension RecordLayout {
  /// How many of the records that stand one behind the other one PUBLISH takes.
  ///
  /// - Parameters:
  ///   - most: how many there are, or the broker grants.
  ///   - bytes: begin with the first record, and have all of them.
  ///   - room: the bytes that they may have together; a single record may have more.
  /// - Returns: their number, at least one unless there is none, and their bytes.
  static func fitting(
    _ most: Int, of bytes: UnsafeRawBufferPointer, in room: Int = .max
  ) -> (count: Int, bytes: Int) {
    guard let base = bytes.baseAddress else { return (0, 0) }
    var length = 0
    for count in 0..<most {
      let size = itemSize(unsafe word(at: base + length))
      if count > 0, length + size > room { return (count, length) }
      length += size
    }
    return (most, length)
  }
}
