import SluiceWire
import TestSupport
import Testing

/// An attributed record's parts, copied.
struct Attributes: Equatable {
  var key: [UInt8]?
  var headers: [Header] = []
  var payload: [UInt8] = []

  struct Header: Equatable {
    var name: [UInt8]
    var value: [UInt8]
  }

  init(key: [UInt8]? = nil, headers: [(String, [UInt8])] = [], payload: [UInt8] = []) {
    self.key = key
    self.headers = headers.map { Header(name: Array($0.utf8), value: $1) }
    self.payload = payload
  }

  init(body: UnsafeRawBufferPointer) throws(WireError) {
    let attributes = try RecordAttributes(body)
    key = attributes.key.map { Array($0) }
    payload = Array(attributes.payload)
    var headers: [Header] = []
    attributes.forEachHeader { headers.append(Header(name: Array($0), value: Array($1))) }
    precondition(
      headers.count == attributes.headerCount, "forEachHeader gives another number than headerCount")
    self.headers = headers
  }

  init(body: [UInt8]) throws {
    // Memory of exactly that size, so that reading beyond it is detected.
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: body.count, alignment: 1)
    defer { memory.deallocate() }
    memory.copyBytes(from: body)
    try self.init(body: UnsafeRawBufferPointer(memory))
  }
}

@Suite("Record attributes")
struct RecordAttributesTests {
  private static let table: [(hex: String, attributes: Attributes)] = [
    ("00", Attributes()),
    ("00 0102", Attributes(payload: [1, 2])),
    ("01 0000", Attributes(key: [])),
    ("01 0200 6b79 ff", Attributes(key: [0x6B, 0x79], payload: [0xFF])),
    ("02 0000", Attributes()),
    ("02 0100 0100 6e 00000000", Attributes(headers: [("n", [])])),
    ("02 0100 0000 01000000 09 05", Attributes(headers: [("", [9])], payload: [5])),
    (
      "03 0100 6b 0200 0100 61 02000000 0102 0200 6262 01000000 03 70",
      Attributes(key: [0x6B], headers: [("a", [1, 2]), ("bb", [3])], payload: [0x70])
    ),
    // The same name twice, in order.
    ("02 0200 0100 61 01000000 01 0100 61 01000000 02", Attributes(headers: [("a", [1]), ("a", [2])])),
  ]

  @Test("the bytes become exactly the parts", arguments: table.indices)
  func decoding(_ index: Int) throws {
    let (hex, attributes) = Self.table[index]
    #expect(try Attributes(body: [UInt8](hex: hex)) == attributes)
  }

  @Test("a part that is cut short is a malformed batch, wherever", arguments: table.indices)
  func cutShort(_ index: Int) throws {
    let (hex, attributes) = Self.table[index]
    let body = [UInt8](hex: hex)
    for length in 0..<(body.count - attributes.payload.count) {
      let error = #expect(throws: WireError.self) { try Attributes(body: Array(body[..<length])) }
      #expect(error?.code == .malformedBatch)
      #expect(error?.message.contains("is cut short: it needs ") == true)
    }
  }

  @Test(
    "lies are told apart",
    arguments: [
      ("", "record flags is cut short: it needs 1 bytes where 0 are left"),
      ("04", "record flags 4 aren't defined"),
      ("83 0000", "record flags 131 aren't defined"),
      ("01 ffff 00", "record key is cut short: it needs 65535 bytes where 1 are left"),
      ("02 ffff", "header name length is cut short: it needs 2 bytes where 0 are left"),
      ("02 0100 ffff 61", "header name is cut short: it needs 65535 bytes where 1 are left"),
      ("02 0100 0100 61 ffffffff", "header value is cut short: it needs 4294967295 bytes where 0 are left"),
      ("02 0200 0100 61 00000000", "header name length is cut short: it needs 2 bytes where 0 are left"),
    ])
  func lies(_ hex: String, _ message: String) {
    #expect(throws: WireError(.malformedBatch, message)) { try Attributes(body: [UInt8](hex: hex)) }
  }

  @Test("parts lie in the body itself")
  func inPlace() throws {
    try [UInt8](hex: "03 0100 6b 0100 0100 61 01000000 02 7071").withUnsafeBytes { body in
      let attributes = try RecordAttributes(body)
      #expect(attributes.key?.baseAddress == body.baseAddress! + 3)
      #expect(attributes.payload.baseAddress == body.baseAddress! + 14)
      attributes.forEachHeader { name, value in
        #expect(name.baseAddress == body.baseAddress! + 8)
        #expect(value.baseAddress == body.baseAddress! + 13)
      }
    }
  }
}
