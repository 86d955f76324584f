import Testing

/// An HTTP client that repeats a request, with the same `Idempotency-Key`, until it is answered.
final class HTTPStoryWriter: StoryWriter {
  private let door: DoorWorld
  private let index: Int
  private let topic: String
  private let name: String
  private var client: ByteClient
  private var count = 0
  private var pending: DoorRecord?

  init(_ door: DoorWorld, at index: Int, topic: String, name: String) {
    self.door = door
    self.index = index
    self.topic = topic
    self.name = name
    client = door.connect(index)
  }

  var isIdle: Bool { pending == nil }

  func publish(_ record: DoorRecord) {
    pending = record
    count += 1
    send(record)
  }

  private func send(_ record: DoorRecord) {
    let head =
      "POST /topics/\(topic) HTTP/1.1\r\nHost: b\r\nIdempotency-Key: \(name)-\(count)\r\n\(record.fields)\r\n"
    client.send(Array(head.utf8) + record.payload)
  }

  func look() {
    guard pending != nil, client.text.contains("\r\n\r\n{"), client.text.hasSuffix("}\n") else { return }
    let answer = String(decoding: client.take(), as: UTF8.self)
    #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
    pending = nil
  }

  func lose() {
    client.abort()
    client = door.connect(index)
    if let pending { send(pending) }
  }
}

/// An HTTP client that streams a topic as lines of JSON, from its next offset on.
final class HTTPStoryReader: StoryReader {
  private let door: DoorWorld
  private let index: Int
  private let topic: String
  private var client: ByteClient
  private var bytes: [UInt8] = []
  private(set) var records: [DoorRecord] = []
  private(set) var lines: [String] = []
  /// The number of records that arrived on earlier connections.
  private var before = 0

  init(_ door: DoorWorld, at index: Int, topic: String) {
    self.door = door
    self.index = index
    self.topic = topic
    client = door.connect(index)
    open()
  }

  private func open() {
    bytes = []
    before = records.count
    client.send("GET /topics/\(topic)?from=offset:\(records.count) HTTP/1.1\r\nHost: b\r\n\r\n")
    door.settle()
  }

  func look() {
    bytes += client.take()
    let text = Self.body(bytes)
    let whole = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    for line in whole.dropFirst(records.count - before) {
      #expect(line.hasPrefix("{\"offset\":\(records.count),"), "records are missing or come again: \(line)")
      lines.append(String(line))
      guard let record = DoorRecord(json: String(line)) else {
        Issue.record("isn't a record: \(line)")
        return
      }
      records.append(record)
    }
  }

  /// The part of the chunked body that has arrived.
  private static func body(_ bytes: [UInt8]) -> String {
    guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return "" }
    var rest = bytes[end.upperBound...]
    var body: [UInt8] = []
    while let line = rest.firstIndex(of: 0x0A),
      let size = Int(String(decoding: rest[..<line].dropLast(), as: UTF8.self), radix: 16)
    {
      rest = rest[(line + 1)...]
      body += rest.prefix(size)
      guard rest.count >= size + 2 else { break }
      rest = rest.dropFirst(size + 2)
    }
    return String(decoding: body, as: UTF8.self)
  }

  func lose() {
    look()
    client.abort()
    client = door.connect(index)
    open()
  }
}
