import SluiceWire
import TestSupport
import Testing

/// Decodes with the type of `example`, from memory of exactly that size.
func decode<F: Frame>(_ body: [UInt8], like example: F) throws(WireError) -> F {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: body.count, alignment: 1)
  defer { memory.deallocate() }
  memory.copyBytes(from: body)
  return try F(body: UnsafeRawBufferPointer(memory))
}

/// The error of decoding; nil if it succeeds.
func decodingError(_ body: [UInt8], like example: some Frame) -> WireError? {
  do throws(WireError) {
    _ = try decode(body, like: example)
    return nil
  } catch {
    return error
  }
}

@Suite("Frames")
struct FrameTableTests {
  @Test("a value becomes exactly its bytes", arguments: goldenFrames)
  func encoding(_ golden: GoldenFrame) {
    #expect(golden.frame.encoded(stream: 5).hex == golden.bytes(stream: 5).hex)
  }

  @Test("the bytes become exactly the value", arguments: goldenFrames)
  func decoding(_ golden: GoldenFrame) throws {
    func check<F: Frame>(_ frame: F) throws {
      #expect(try decode(golden.body, like: frame) == frame)
      #expect(F.type.rawValue == golden.type)
    }
    try check(golden.frame)
  }

  @Test("bytes behind the fields that this version knows are ignored", arguments: goldenFrames)
  func trailingBytes(_ golden: GoldenFrame) throws {
    // The bytes after a frame that omits its last fields are these fields.
    if let open = golden.frame as? PublishOpen, open.known.epoch == 0 { return }
    if let opened = golden.frame as? PublishOpened, opened.lostFrom == nil { return }
    if let join = golden.frame as? JoinGroup, join.settings.retryBackoff == .none { return }
    if let settle = golden.frame as? Settle, settle.delay == Settle.byBackoff { return }
    func check(_ frame: some Frame) throws {
      #expect(try decode(golden.body + [0xFF, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9], like: frame) == frame)
    }
    try check(golden.frame)
  }

  @Test("a body that is cut short anywhere is malformed", arguments: goldenFrames)
  func cutShort(_ golden: GoldenFrame) {
    for length in golden.body.indices {
      let error = decodingError(Array(golden.body[..<length]), like: golden.frame)
      #expect(error?.code == .malformedFrame, "\(length) bytes")
      #expect(error?.message.contains("is cut short: it needs ") == true, "\(length) bytes")
    }
  }

  @Test("encoding appends to what is there")
  func appending() {
    var output: [UInt8] = [9]
    Ping(token: 1).encode(stream: 0, into: &output)
    Cancel().encode(stream: 2, into: &output)
    #expect(
      output.hex
        == [UInt8](hex: "09 08000000 03 00 0000 00000000 0100000000000000 00000000 16 00 0000 02000000").hex)
  }

  @Test("a frame's header is twelve bytes, little-endian")
  func header() {
    let header = FrameHeader(length: 0x0102_0304, type: .deliver, flags: 0xF0, stream: 0x0506_0708)
    var bytes = [UInt8](repeating: 0xEE, count: 13)
    // At an odd address, since frames may begin anywhere in a chunk.
    bytes.withUnsafeMutableBytes { header.write(at: $0.baseAddress! + 1) }
    #expect(bytes.hex == [UInt8](hex: "ee 04030201 13 f0 0000 08070605").hex)
    #expect(bytes.withUnsafeBytes { FrameHeader(at: $0.baseAddress! + 1) } == header)
  }

  @Test("every type has a name and a number of its own")
  func names() {
    let types = Set(goldenFrames.map(\.type) + [0x13, 0x22])
    #expect(types.count == 65)
    #expect(Set(types.map { FrameType(rawValue: $0).description }).count == 65)
    #expect(FrameType.publishOpened.description == "PUBLISH_OPENED")
    #expect(FrameType(rawValue: 0xAB).description == "frame type 0xab")
    for golden in goldenFrames {
      let name = golden.name.prefix { $0.isUppercase || $0 == "_" }
      #expect(FrameType(rawValue: golden.type).description == name)
    }
  }
}

@Suite("Batch frames")
struct BatchFrameTests {
  @Test("DELIVER's header and front are 24 bytes; the rest is the batch")
  func deliver() throws {
    var bytes = [UInt8](repeating: 0xEE, count: 24)
    bytes.withUnsafeMutableBytes {
      DeliverHeader(firstOffset: 0x0102, count: 3).write(at: $0.baseAddress!, stream: 4, batchLength: 5)
    }
    #expect(bytes.hex == [UInt8](hex: "11000000 13 00 0000 04000000 0201000000000000 03000000").hex)
    try (bytes[12...] + [1, 2, 3, 4, 5]).withUnsafeBytes { body in
      let (header, batch) = try DeliverHeader.decode(body)
      #expect(header == DeliverHeader(firstOffset: 0x0102, count: 3))
      #expect(Array(batch) == [1, 2, 3, 4, 5])
    }
  }

  @Test("PUBLISH's header and front are 24 bytes; the rest is the batch")
  func publish() throws {
    var bytes = [UInt8](repeating: 0xEE, count: 24)
    bytes.withUnsafeMutableBytes {
      PublishHeader(firstSequence: .max, count: .max).write(at: $0.baseAddress!, stream: 1, batchLength: 0)
    }
    #expect(bytes.hex == [UInt8](hex: "0c000000 22 00 0000 01000000 ffffffffffffffff ffffffff").hex)
    try bytes[12...].withUnsafeBytes { body in
      let (header, batch) = try PublishHeader.decode(body)
      #expect(header == PublishHeader(firstSequence: .max, count: .max))
      #expect(batch.isEmpty)
    }
    bytes.withUnsafeMutableBytes {
      PublishHeader(firstSequence: 7, count: 1).write(
        at: $0.baseAddress!, stream: 1, batchLength: 0, flags: StreamFlag.unhurried)
    }
    #expect(bytes.hex == [UInt8](hex: "0c000000 22 20 0000 01000000 0700000000000000 01000000").hex)
  }

  @Test("a front that is cut short is malformed")
  func cutShort() {
    for length in 0..<12 {
      let body = [UInt8](repeating: 1, count: length)
      let deliver = #expect(throws: WireError.self) {
        try body.withUnsafeBytes { try DeliverHeader.decode($0) }
      }
      #expect(deliver?.code == .malformedFrame)
      let publish = #expect(throws: WireError.self) {
        try body.withUnsafeBytes { try PublishHeader.decode($0) }
      }
      #expect(publish?.code == .malformedFrame)
    }
  }

  @Test("DELIVER without a record, or beyond the last offset, is malformed")
  func impossibleCounts() {
    for (body, message) in [
      ("0500000000000000 00000000", "DELIVER announces 0 records from offset 5"),
      ("ffffffffffffffff 01000000", "DELIVER announces 1 records from offset 18446744073709551615"),
    ] {
      #expect(throws: WireError(.malformedFrame, message)) {
        try [UInt8](hex: body).withUnsafeBytes { try DeliverHeader.decode($0) }
      }
    }
  }
}
