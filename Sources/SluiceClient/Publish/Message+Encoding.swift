import SluiceWire

extension Message {
  /// The length of the record's body.
  ///
  /// - Throws: ``ClientError/Code/recordTooLarge`` when it can't be said in the protocol.
  func bodyLength() throws(ClientError) -> Int {
    guard isAttributed else { return payload.count }
    var length = 1 + payload.count
    if let key {
      guard key.count <= Int(UInt16.max) else {
        throw ClientError(.recordTooLarge, "the key has \(key.count) bytes; the limit is \(UInt16.max)")
      }
      length += 2 + key.count
    }
    if !headers.isEmpty {
      guard headers.count <= Int(UInt16.max) else {
        throw ClientError(.recordTooLarge, "there are \(headers.count) headers; the limit is \(UInt16.max)")
      }
      length += 2
      for header in headers {
        let name = header.name.utf8.count
        guard name <= Int(UInt16.max) else {
          throw ClientError(.recordTooLarge, "a header's name has \(name) bytes; the limit is \(UInt16.max)")
        }
        length += 6 + name + header.value.count
      }
    }
    return length
  }

  private var isAttributed: Bool { key != nil || !headers.isEmpty }

  /// Appends the record as an item of a batch.
  ///
  /// - Precondition: ``bodyLength()`` has said that it can be.
  func append(to bytes: inout [UInt8]) {
    guard isAttributed else {
      return unsafe payload.withUnsafeBytes { unsafe Self.append($0, to: &bytes) }
    }
    let length = (try? bodyLength()) ?? 0
    func integer<I: FixedWidthInteger & BitwiseCopyable>(_ value: I) {
      unsafe withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }
    integer(RecordLayout.word(.attributed, length: length))
    bytes.append(
      (key == nil ? 0 : RecordAttributes.Flag.key) | (headers.isEmpty ? 0 : RecordAttributes.Flag.headers))
    if let key {
      integer(UInt16(key.count))
      bytes.append(contentsOf: key)
    }
    if !headers.isEmpty {
      integer(UInt16(headers.count))
      for header in headers {
        integer(UInt16(header.name.utf8.count))
        bytes.append(contentsOf: header.name.utf8)
        integer(UInt32(header.value.count))
        bytes.append(contentsOf: header.value)
      }
    }
    bytes.append(contentsOf: payload)
  }

  /// Appends a record without key and headers as an item of a batch.
  static func append(_ payload: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
    let word = RecordLayout.word(.plain, length: payload.count)
    unsafe withUnsafeBytes(of: word.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    unsafe bytes.append(contentsOf: payload)
  }
}
