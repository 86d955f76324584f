import SluiceWire
import TestSupport
import Testing

/// The memory ceiling: it holds, and blocks only producers.
@Suite(.onItsOwnThread) struct MemoryLimitTests {
  private static let batch = [[UInt8]](repeating: [UInt8](repeating: 7, count: 8_000), count: 32)

  /// Publishes `batches` batches, and waits until they are acknowledged.
  private static func push(_ broker: BrokerProcess, _ topic: String, batches: Int) throws {
    let client = try broker.client(topic)
    try client.openPublication(topic, stream: 1)
    for _ in 0..<batches { try client.publish(batch, stream: 1) }
    try client.receiveAcknowledgements(stream: 1)
  }

  @Test func producersWaitAtTheCeilingAndGoOnWhenThereIsRoom() throws {
    let ceiling = 64 << 20
    let broker = try BrokerProcess("--memory", "64MiB", "--loops", "2")
    let before = try broker.memory.resident
    for number in 0..<3 { try Self.push(broker, "ballast.\(number)", batches: 48) }

    // Eight topics of 4 MiB each: with the existing topics, more than the ceiling allows.
    let done = Shared(0)
    try meanwhile {
      try concurrently(
        (0..<8).map { number in
          { @Sendable in
            try Self.push(broker, "t.\(number)", batches: 16)
            done.update { $0 += 1 }
          }
        })
    } _: {
      try eventually("producers wait") { try broker.metric("memory_holds") > 0 }
      let admin = try broker.client("admin")
      // Subscribers continue, and so do requests.
      let reader = try broker.client("reader")
      try reader.subscribe("ballast.0", stream: 1)
      reader.subscriptions[1]!.keepsPayloads = false
      try reader.receiveRecords(48 * 32, stream: 1)
      // Memory use stays constant.
      for _ in 0..<20 {
        #expect(try broker.metric("memory_used") < ceiling + ceiling / 4)
        #expect(try broker.memory.resident - before < ceiling + ceiling / 2)
        pause(0.02)
      }
      #expect(done.value < 8)
      #expect(try broker.metric("memory_ceiling_reached") == 1)
      // Freed memory is all that they need.
      for number in 0..<3 { try admin.delete("ballast.\(number)") }
    }
    #expect(done.value == 8)
    for number in 0..<8 {
      #expect(try broker.show("t.\(number)").summary.nextOffset == 16 * 32)
    }
    let log = broker.process.standardError.text
    #expect(log.contains("memory is at its ceiling") && log.contains("there is memory again"))
  }

  @Test func theCeilingIsAnAmountOrAPart() throws {
    func ceiling(_ text: String) throws -> Int {
      try BrokerProcess("--memory", text).metric("memory_ceiling")
    }
    #expect(try ceiling("64MiB") == 64 << 20)
    #expect(try ceiling("0") == 0)
    let (half, whole) = (try ceiling("50%"), try ceiling("100%"))
    #expect(half > 0 && abs(whole - half * 2) < 1 << 20, "\(half) of \(whole)")
  }

  @Test func whatWasGrantedBeforeIsReadWhenThereIsRoom() throws {
    let ceiling = 16 << 20
    let broker = try BrokerProcess("--memory", "16MiB", "--loops", "2")
    let admin = try broker.client("admin")
    // Grants from before the memory was short: a hundred kilobytes for each of 64 publications.
    let early = try broker.client("early")
    for stream in UInt32(1)...64 { try early.openPublication("early.\(stream)", stream: stream) }
    try meanwhile {
      // The ceiling blocks this producer until its topic is deleted.
      #expect(throws: (any Error).self) { try Self.push(broker, "ballast", batches: 200) }
    } _: {
      try eventually("the ceiling") { try broker.metric("memory_ceiling_reached") > 0 }
      let payload = [UInt8](repeating: 1, count: 100_000)
      for stream in UInt32(1)...64 {
        var batch = BatchBuilder()
        payload.withUnsafeBytes { batch.append($0) }
        try require(
          early.publications[stream]!.allows(records: 1, beforeLast: 0),
          "stream \(stream) has no grant")
        try early.enqueue(raw: RawClient.publishFrame(batch, from: 0, stream: stream))
        early.publications[stream]!.sent = 1
        early.publications[stream]!.bytesSent = UInt64(batch.bytes.count)
      }
      try eventually("it isn't read from") {
        try early.pump()
        return try broker.metric("memory_pauses") > 0
      }
      for _ in 0..<10 {
        try early.pump()
        #expect(try broker.metric("memory_used") < ceiling + ceiling / 4)
        pause(0.02)
      }
      try admin.delete("ballast")
      for stream in UInt32(1)...64 { try early.receiveAcknowledgements(stream: stream) }
    }
    try early.roundTrip()
  }

  @Test func whoIsFullDoesntKeepOthersFromBeingServed() throws {
    let broker = try BrokerProcess("--memory", "16MiB", "--replay-bytes", "1MiB")
    let producer = try broker.client("producer")
    try producer.openPublication("small", stream: 1)
    // More bytes than the ceiling pass through a topic that retains little.
    for _ in 0..<128 { try producer.publish(Self.batch, stream: 1) }
    try producer.receiveAcknowledgements(stream: 1)
    #expect(try broker.metric("memory_ceiling_reached") == 0)
  }

  @Test func theNewestOfEachKeyCountsAsWell() throws {
    let broker = try BrokerProcess("--memory", "32MiB")
    let client = try broker.client()
    var settings = TopicSettings()
    settings.compact = true
    try client.create("latest", settings)
    let before = try broker.metric("memory_used")
    try client.openPublication("latest", stream: 1)
    let payload = String(repeating: "x", count: 8000)
    for number in 0..<500 { try client.publish([("\(number)", payload)], stream: 1) }
    try client.receiveAcknowledgements(stream: 1)
    #expect(try broker.metric("memory_used") - before > 500 * 8000)
    try client.cancel(stream: 1)
    try client.delete("latest")
    try eventually("it is given back") { try broker.metric("memory_used") - before < 1 << 20 }
  }
}
