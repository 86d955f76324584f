import SluiceWire

/// Sluice with its own protocol and raw sockets, without the client library.
struct SluiceDriver: LoadDriver {
  static let keepsRecords = true
  let target: LoadTarget

  func prepare() throws {
    var connection = try SluiceHandshake(target)
    defer { connection.handshake.socket.close() }
    var settings = TopicSettings(replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited)
    if let bytes = target.retainedBytes { settings.replayBytes = UInt64(max(2 * bytes, 64 << 20)) }
    if target.isDurable { settings.storage = .durable }
    for number in 0..<target.topics {
      try delete(target.name(of: number), &connection)
      try connection.request(
        TopicCreate(topic: target.name(of: number), settings: settings), answer: .topicInfo)
    }
  }

  func cleanUp() throws {
    var connection = try SluiceHandshake(target)
    defer { connection.handshake.socket.close() }
    for number in 0..<target.topics { try delete(target.name(of: number), &connection) }
  }

  func openPublisher(_ index: Int) throws -> Opened<SluicePublisher> {
    var connection = try SluiceHandshake(target)
    let body = try connection.request(
      PublishOpen(
        topic: target.name(of: index),
        acknowledgement: target.isDurable ? .durable : target.isAcknowledged ? .received : .none),
      answer: .publishOpened)
    let opened = try body.withUnsafeBytes { try PublishOpened(body: $0) }
    let publisher = SluicePublisher(target, index, granted: opened.grantedThrough, bytes: opened.bytesThrough)
    return Opened(connection.handshake, publisher)
  }

  func openSubscriber() throws -> Opened<SluiceSubscriber> {
    var connection = try SluiceHandshake(target)
    let subscriber = SluiceSubscriber(target)
    try connection.request(
      Subscribe(topic: target.topic, start: .earliest, lag: .fail, grantedThrough: subscriber.granted),
      answer: .subscribed)
    return Opened(connection.handshake, subscriber)
  }

  /// Deletes a topic if it exists.
  private func delete(_ topic: String, _ connection: inout SluiceHandshake) throws {
    try connection.request(
      TopicDelete(topic: topic), answer: .done, alsoAllowing: ErrorCode.unknownTopic)
  }
}

/// Requests and answers, one at a time, on stream 1 of a connection.
struct SluiceHandshake {
  var handshake: Handshake

  /// Connects and completes the handshake.
  init(_ target: LoadTarget) throws {
    handshake = try Handshake(target)
    try handshake.send(Hello(maximumFrame: 16 << 20, keepalive: 0, name: "sluice-bench").encoded(stream: 0))
    _ = try answer(.welcome)
  }

  /// Sends a request and returns the body of its answer.
  @discardableResult
  mutating func request(
    _ frame: some Frame, answer type: FrameType, alsoAllowing code: ErrorCode? = nil
  ) throws -> [UInt8] {
    try handshake.send(frame.encoded(stream: 1))
    return try answer(type, alsoAllowing: code)
  }

  private mutating func answer(_ type: FrameType, alsoAllowing code: ErrorCode? = nil) throws -> [UInt8] {
    while true {
      let header = try handshake.read(FrameHeader.size).withUnsafeBytes { FrameHeader(at: $0.baseAddress!) }
      let body = try handshake.read(Int(header.length))
      if header.type == type { return body }
      guard header.type == .error else { continue }
      let fault = try body.withUnsafeBytes { try Fault(body: $0) }
      if fault.code == code { return [] }
      throw BenchError("the broker answered: \(fault.message)")
    }
  }
}
