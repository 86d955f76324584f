/// RabbitMQ's stream protocol: batches published with confirmations, chunks delivered against credit.
struct RabbitStreamsDriver: LoadDriver {
  static let keepsRecords = true
  let target: LoadTarget

  func prepare() throws {
    var handshake = try open()
    defer { handshake.socket.close() }
    try delete(&handshake)
    var create = RabbitFrame(.create, correlation: 1)
    create.string(target.topic)
    if let bytes = target.retainedBytes {
      // At least two segments, since retention drops whole ones, and never the one being written.
      create.integer(UInt32(2))
      create.string("max-length-bytes")
      create.string("\(max(bytes, 1 << 30))")
      create.string("stream-max-segment-size-bytes")
      create.string("\(max(bytes / 2, 1 << 28))")
    } else {
      create.integer(UInt32(0))
    }
    try create.exchange(on: &handshake)
  }

  func cleanUp() throws {
    var handshake = try open()
    defer { handshake.socket.close() }
    try delete(&handshake)
  }

  func openPublisher(_ index: Int) throws -> Opened<RabbitPublisher> {
    var handshake = try open()
    var declare = RabbitFrame(.declarePublisher, correlation: 1)
    declare.integer(UInt8(0))
    declare.string("")
    declare.string(target.topic)
    try declare.exchange(on: &handshake)
    return Opened(handshake, RabbitPublisher(target, index))
  }

  func openSubscriber() throws -> Opened<RabbitSubscriber> {
    var handshake = try open()
    var subscribe = RabbitFrame(.subscribe, correlation: 1)
    subscribe.integer(UInt8(0))
    subscribe.string(target.topic)
    subscribe.integer(UInt16(1))  // from the first record
    subscribe.integer(RabbitSubscriber.credit)
    subscribe.integer(UInt32(0))
    try subscribe.exchange(on: &handshake)
    return Opened(handshake, RabbitSubscriber(target))
  }

  /// Connects and signs in as guest, the only user of a fresh server.
  private func open() throws -> Handshake {
    var handshake = try Handshake(target)
    var properties = RabbitFrame(.peerProperties, correlation: 1)
    properties.integer(UInt32(0))
    try properties.exchange(on: &handshake)
    try RabbitFrame(.saslHandshake, correlation: 2).exchange(on: &handshake)

    var authenticate = RabbitFrame(.saslAuthenticate, correlation: 3)
    authenticate.string("PLAIN")
    authenticate.bytes(Array("\0guest\0guest".utf8))
    try authenticate.exchange(on: &handshake)

    // Accepts the limits that the server proposes, except for heartbeats.
    let tune = try RabbitFrame.next(from: &handshake)
    guard tune.key == RabbitKey.tune.rawValue else {
      throw BenchError("RabbitMQ sent frame \(tune.key) for tune")
    }
    var accept = RabbitFrame(.tune)
    accept.bytes(raw: Array(tune.body.prefix(4)))
    accept.integer(UInt32(0))
    try handshake.send(accept.encoded())

    var vhost = RabbitFrame(.open, correlation: 4)
    vhost.string("/")
    try vhost.exchange(on: &handshake)
    return handshake
  }

  /// Deletes the stream if it exists.
  private func delete(_ handshake: inout Handshake) throws {
    var frame = RabbitFrame(.delete, correlation: 9)
    frame.string(target.topic)
    try frame.exchange(on: &handshake, alsoAllowing: 2)
  }
}
