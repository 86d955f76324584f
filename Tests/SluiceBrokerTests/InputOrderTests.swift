import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A connection processes buffered input before later input.
@Suite struct InputOrderTests {
  @Test func whatWasPutAsideIsNotOvertakenWhenMemoryReturns() throws {
    let setting = try SnapshotSetting()
    let stream = RecordingStream()
    let loop = setting.brokerLoops[0]
    let context = setting.broker.contexts[0]
    var connection: Connection?
    let pings = UInt64(WorkBudget.frameLimit + 10)
    loop.perform {
      let new = Connection(id: 1_000, stream: stream, origin: nil, context: context)
      connection = new
      stream.inbox = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "c").encoded(stream: 0)
      new.streamReadable()
      stream.inbox = PublishOpen(topic: "t", acknowledgement: .received).encoded(stream: 1)
      new.streamReadable()
    }
    setting.run()
    let client = try #require(connection)
    let answered = stream.bytes.count
    loop.perform {
      // More frames than one turn handles: the last ones are buffered, and memory is short when their turn comes.
      stream.capacities = [0]
      for token in 0..<pings { stream.inbox += Ping(token: token).encoded(stream: 0) }
      client.streamReadable()
      #expect(!client.unread.isEmpty)
      client.waitForMemory(true)
      client.flush()
      // The client reads nothing, and more replies wait than the limit allows.
      let limit = setting.broker.core.configuration.limits.answers
      while client.waitingBytes.answers <= limit { client.streams.send(Cancelled(), stream: 1) }
      client.waitForMemory(false)
      stream.inbox = Ping(token: pings).encoded(stream: 0)
      if !stream.readsPaused { client.streamReadable() }
      stream.capacities = []
      client.streamWritable()
    }
    setting.run()
    loop.perform { if !stream.readsPaused { client.streamReadable() } }
    setting.run()
    var tokens: [UInt64] = []
    var decoder = FrameDecoder(maximumFrame: 1 << 24)
    try stream.bytes[answered...].withUnsafeBytes { bytes in
      try decoder.decode(bytes) { header, body throws(WireError) in
        if header.type == .pong { tokens.append(try Pong(body: body).token) }
        return true
      }
    }
    #expect(tokens == Array(0...pings))
    loop.perform { client.close() }
  }
}
