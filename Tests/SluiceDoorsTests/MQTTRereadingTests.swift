import Glibc
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceDoors
@testable import SluiceMQTT

/// Messages of a resumed session that are read again, from a broker whose answers arrive in the order that the test chooses.
@Suite struct MQTTRereadingTests {
  /// The streams of two topics may answer in any order. The client gets its messages in the order in which they were first sent (MQTT-4.6.0-1).
  @Test func messagesAreSentAgainInTheirOrderWhicheverStreamAnswersFirst() throws {
    let world = SimulatedWorld(seed: 1)
    let loop = world.makeLoop()
    let hub = MQTTHub(DoorBroker())
    let key = MQTTHub.Key(identity: "", clientID: "c")
    let rules = MQTTSessionRules.Shared(MQTTSessionRules())
    hub.open(nil, isStored: false, on: loop) { _ in }
    world.run(for: .milliseconds(10))
    let session = try Self.session(topics: ["a", "b", "c"])
    // An earlier connection has left it.
    loop.perform {
      let earlier = ClientEnd()
      let handle = MQTTHandle(earlier, peer: earlier.peer, MQTTLoop(hub, rules, on: loop))
      hub.sessions?.claim(0, key, by: handle, isClean: false, isKept: true) { _, _ in }
      hub.sessions?.release(session, of: key, 0, at: loop.wallClock)
    }

    let client = ClientEnd()
    let broker = BrokerEnd()
    loop.perform {
      let handle = MQTTHandle(client, peer: client.peer, MQTTLoop(hub, rules, on: loop))
      broker.begin(handle.link)
      var properties = MQTTProperties()
      properties.append(.sessionExpiry, 3600)
      client.send(
        .connect(MQTTConnect(.v5, clientID: "c", cleanStart: false, keepAlive: 0, properties: properties)))
    }
    for _ in 0..<20 {
      world.run(for: .milliseconds(10))
      loop.perform { broker.answerTheLastFirst() }
    }
    #expect(client.texts == ["of a", "of b", "of c"])
    #expect(client.identifiers == [1, 2, 3])
  }

  /// A session with a message in flight in each topic.
  private static func session(topics: [String]) throws -> MQTTKeptSession {
    var state = MQTTSessionState()
    var known: [UInt32: MQTTKnownTopic] = [:]
    for (index, name) in topics.enumerated() {
      let number = UInt32(index + 1)
      state.set(
        index,
        MQTTSessionState.Subscription(
          filter: try MQTTTopicFilter(name), options: MQTTSubscriptionOptions(.atLeastOnce), identifier: 0,
          start: .new))
      state.inFlight.append(
        InFlightTable.Entry(
          packetID: UInt16(number), subscription: UInt16(index), qos: .atLeastOnce, isRetained: false,
          hasCursor: true, isSettled: false, place: MQTTPlace(topic: number, offset: 7)))
      known[number] = MQTTKnownTopic(name: name, epoch: 1)
    }
    return MQTTKeptSession(
      state: state.encoded(), producer: 1, topics: known, positions: [:], exact: [:], expiry: 3600)
  }
}

/// The broker's end of a link, which answers when the test asks for it.
private final class BrokerEnd: ByteStreamHandler {
  private var link: DoorLink?
  private var decoder = FrameDecoder(maximumFrame: 1 << 20)
  /// Unanswered subscriptions to single topics.
  private var waiting: [(stream: UInt32, topic: String)] = []

  func begin(_ link: DoorLink) {
    self.link = link
    link.start(self)
  }

  func streamReadable() {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    guard case .bytes(let count) = buffer.withUnsafeMutableBytes({ link?.read(into: $0) ?? .end }) else {
      return
    }
    var isGreeted = false
    let chunk = Array(buffer[..<count])
    do {
      try chunk.withUnsafeBytes { chunk in
        try decoder.decode(chunk) { header, body throws(WireError) in
          switch header.type {
          case .hello: isGreeted = true
          case .subscribe: waiting.append((header.stream, try Subscribe(body: body).topic))
          default: break
          }
          return true
        }
      }
    } catch {
      Issue.record(error)
    }
    guard isGreeted else { return }
    send(
      Welcome(
        maximumFrame: 1 << 20, maximumRecord: 1 << 20, maximumStreams: 100, keepalive: 0, broker: 1,
        software: "test"
      ).encoded(stream: 0))
  }

  /// Answers all waiting subscriptions, the last one first, each with one record.
  func answerTheLastFirst() {
    for (stream, topic) in waiting.reversed() {
      var record: [UInt8] = []
      let payload = Array("of \(topic)".utf8)
      let word = RecordLayout.word(.plain, length: payload.count)
      withUnsafeBytes(of: word.littleEndian) { record += $0 }
      record += payload
      var frame = [UInt8](repeating: 0, count: FrameHeader.size + DeliverHeader.size)
      frame.withUnsafeMutableBytes {
        DeliverHeader(firstOffset: 7, count: 1).write(
          at: $0.baseAddress!, stream: stream, batchLength: record.count)
      }
      send(Subscribed(epoch: 1, nextOffset: 7, liveOffset: 8).encoded(stream: stream) + frame + record)
    }
    waiting = []
  }

  private func send(_ bytes: [UInt8]) { _ = bytes.withUnsafeBytes { link?.write($0) } }

  func streamWritable() {}
  func streamFailed(_ error: IOError) {}
}

/// The stream of an MQTT client, which keeps the messages that it gets.
private final class ClientEnd: ByteStream {
  let peer = SocketAddress.unix("client")
  var readsPaused = false
  private var handler: (any ByteStreamHandler)?
  private var unread: [UInt8] = []
  private var decoder = MQTTDecoder(maximumPacket: 1 << 20, from: .server)
  private(set) var texts: [String] = []
  private(set) var identifiers: [UInt16] = []

  func start(_ handler: any ByteStreamHandler) { self.handler = handler }

  func send(_ packet: MQTTPacket) {
    packet.encode(into: &unread, .v5)
    handler?.streamReadable()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    guard !unread.isEmpty else { return .wouldBlock }
    let count = min(buffer.count, unread.count)
    buffer.copyBytes(from: unread[..<count])
    unread.removeFirst(count)
    return .bytes(count)
  }

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    var taken = 0
    for vector in vectors {
      let bytes = UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
      taken += bytes.count
      do {
        try decoder.decode(bytes) { header, body throws(MQTTError) in
          if header.type == .publish {
            let message = try MQTTPublish(header, body, .v5, from: .server)
            texts.append(String(decoding: message.payload, as: UTF8.self))
            identifiers.append(message.packetID)
          }
          return true
        }
      } catch {
        Issue.record(error)
      }
    }
    return .wrote(taken)
  }

  func close() {}
  func abort() {}
}
