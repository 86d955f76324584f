import SluiceWire

extension RecordLayout {
  /// Determines how many consecutive records fit into one PUBLISH.
  ///
  /// - Parameters:
  ///   - most: the number of records, or the number that the broker grants.
  ///   - bytes: contain all these records, from the first one.
  ///   - room: the most bytes that the records may have together; a single record may have more.
  /// - Returns: the number of records, at least one unless there is none, and their bytes.
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
