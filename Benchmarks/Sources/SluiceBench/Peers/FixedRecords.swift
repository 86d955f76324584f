/// Runs of records that all look alike on the wire but for their payload: constant prefix, payload, constant-length suffix.
///
/// Text protocols and MQTT deliver in this way when topic and payload size are constant: one comparison a record and no parsing.
struct FixedRecords {
  let prefix: BytePattern
  let stride: Int

  init(prefix: [UInt8], payloadSize: Int, suffixSize: Int) {
    self.prefix = BytePattern(prefix)
    stride = prefix.count + payloadSize + suffixSize
  }

  /// Hands on the whole records from `position` on, and moves it behind the last of them.
  @inline(__always)
  func take<Sink: RecordSink>(
    _ bytes: UnsafeRawBufferPointer, from position: inout Int, into sink: inout Sink
  ) {
    let base = bytes.baseAddress!
    var place = position
    while bytes.count - place >= stride, prefix.matches(base + place) {
      sink.record(base + place + prefix.count)
      place += stride
    }
    position = place
  }

  /// Whether what stands at `position` may be the beginning of such a record: then more bytes are needed.
  func mayBegin(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Bool {
    prefix.couldMatch(bytes.baseAddress! + position, available: bytes.count - position)
  }
}
