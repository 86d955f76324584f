import SluiceAccess
import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceStore

/// A broker with an HTTP gateway, and requests to it, each on a connection of its own.
struct HTTPStage {
  struct Answer {
    var text: String

    var status: Int { Int(text.dropFirst(9).prefix(3)) ?? 0 }

    /// The bytes after the head, as they were sent.
    var body: String {
      text.firstRange(of: "\r\n\r\n").map { (end: Range<String.Index>) in String(text[end.upperBound...]) }
        ?? ""
    }

    func field(_ name: String) -> String? {
      let line = text.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
      return line.map { String($0.dropFirst(name.utf8.count + 2)) }
    }
  }

  let door: DoorWorld

  init(
    options: DoorOptions = DoorOptions(), store: MemoryStore? = nil, access: AccessPolicy? = nil,
    _ configure: (inout BrokerConfiguration) -> Void = { _ in }
  ) throws {
    door = try DoorWorld([.http], options: options, store: store, access: access, configure)
  }

  /// Sends a request, and gives the broker some time to serve it.
  func begin(_ line: String, _ body: String = "", _ fields: [String] = []) -> ByteClient {
    begin(line, body, bytes: fields.map { Array($0.utf8) })
  }

  /// Like the other form, with fields of any bytes.
  func begin(_ line: String, _ body: String = "", bytes fields: [[UInt8]]) -> ByteClient {
    let client = door.connect(1)
    let end = Array("\r\n".utf8)
    let head = Array(
      "\(line) HTTP/1.1\r\nHost: b\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n".utf8)
    client.send(head + fields.flatMap { $0 + end } + end + Array(body.utf8))
    door.settle(.milliseconds(200))
    return client
  }

  func ask(_ line: String, _ body: String = "", _ fields: String...) -> Answer {
    Answer(text: begin(line, body, fields).text)
  }

  func publish(_ topic: String, _ body: String, _ fields: String...) -> Answer {
    Answer(text: begin("POST /topics/\(topic)", body, fields).text)
  }
}
