import Foundation

/// NATS JetStream with one message per record, each confirmed when the stream's servers have stored it. Only publishes: `--workload publish`.
struct JetStreamDriver: LoadDriver {
  let target: LoadTarget

  private var inbox: String { "_INBOX.\(target.topic)" }

  /// One stream per topic, so that the streams have different leaders.
  private func stream(_ topic: Int) -> String { "BENCH-\(target.name(of: topic))" }

  func prepare() throws {
    for topic in 0..<target.topics {
      try request(
        "STREAM.CREATE.\(stream(topic))",
        """
        {"name":"\(stream(topic))","subjects":["\(target.name(of: topic)).r"],"retention":"limits","storage":"file",\
        "num_replicas":\(target.replicas),"max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"discard":"old"}
        """)
    }
  }

  func cleanUp() throws {
    for topic in 0..<target.topics { try request("STREAM.DELETE.\(stream(topic))", "") }
  }

  func openPublisher(_ index: Int) throws -> Opened<JetStreamPublisher> {
    var handshake = try NatsDriver(target: target).greet()
    let inbox = "\(inbox).\(index)"
    try handshake.send("SUB \(inbox) 1\r\nPING\r\n")
    try NatsDriver.expectPong(&handshake)
    return Opened(handshake, JetStreamPublisher(target, index, inbox: inbox))
  }

  func openSubscriber() throws -> Opened<NatsSubscriber> {
    throw UsageError("jetstream only publishes here: use --workload publish")
  }

  /// Sends a request to JetStream, and throws its answer if that is an error.
  private func request(_ subject: String, _ body: String) throws {
    var handshake = try NatsDriver(target: target).greet()
    defer { handshake.socket.close() }
    try handshake.send(
      "SUB \(inbox) 1\r\nPUB $JS.API.\(subject) \(inbox) \(body.utf8.count)\r\n\(body)\r\n")
    while true {
      let line = try handshake.readLine()
      if line == "PING" {
        try handshake.send("PONG\r\n")
        continue
      }
      guard line.hasPrefix("MSG "), let size = line.split(separator: " ").last.flatMap({ Int($0) }) else {
        if line.hasPrefix("INFO ") { continue }
        throw BenchError("NATS said \(line)")
      }
      let answer = String(decoding: try handshake.read(size), as: UTF8.self)
      guard !answer.contains("\"error\"") else { throw BenchError("JetStream answered \(answer)") }
      return
    }
  }
}

/// `PUB subject inbox size`, confirmed by a message to the inbox for each record.
struct JetStreamPublisher: TemplateCodec {
  var replies = Replies()
  private(set) var confirmed: UInt64 = 0
  var acknowledged: UInt64? { confirmed }
  let template: BatchTemplate

  init(_ target: LoadTarget, _ index: Int, inbox: String) {
    template = BatchTemplate(
      publisher: index, target,
      prefix: Array("PUB \(target.name(of: index)).r \(inbox) \(target.size)\r\n".utf8), suffix: [13, 10])
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    var position = 0
    while true {
      position = try NatsControl.take(bytes, from: position, replies: &replies)
      guard position < bytes.count, let line = TextLine.length(bytes, at: position) else { return position }
      let text = TextLine.text(bytes, at: position)
      guard let size = text.split(separator: " ").last.flatMap({ Int($0) }) else {
        throw BenchError("NATS said \(text)")
      }
      let end = position + line + size + 2
      guard end <= bytes.count else { return position }
      let answer = UnsafeRawBufferPointer(rebasing: bytes[(position + line)..<(end - 2)])
      // {"stream":…,"seq":…} or {"error":…}
      guard answer.count > 3, answer[2] == UInt8(ascii: "s") else {
        throw BenchError("JetStream answered \(String(decoding: answer, as: UTF8.self))")
      }
      confirmed += 1
      position = end
    }
  }
}
