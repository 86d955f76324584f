import Glibc
import SluiceWire
import TestSupport
import Testing

/// SIGTERM: all clients get GOAWAY, all acknowledged records are delivered to subscribers with demand, and the broker exits with 0.
@Suite(.onItsOwnThread) struct ShutdownTests {
  @Test(arguments: [SIGTERM, SIGINT])
  func everyClientIsToldAndTheBrokerExits(signal: Int32) throws {
    let broker = try BrokerProcess()
    let idle = try broker.client("idle")
    let client = try broker.client()
    try client.publishAll(["a", "b"], to: "t")
    try client.subscribe("t", stream: 1, granted: 1)
    try client.subscribe("u", stream: 2, granted: 0)
    try client.receiveRecords(1, stream: 1)
    // Accepted, or still in the system's queue.
    let stranger = try broker.connect()

    broker.process.signal(signal)
    for client in [idle, client] {
      let goAway = try client.receive("GOAWAY") { $0.type == .goAway }.decode(GoAway.self)
      #expect(goAway.code == .shuttingDown)
      #expect(!goAway.message.isEmpty)
      try client.expectClosed()
    }
    #expect(throws: RawSocket.Closed.self) { try stranger.receive() }
    #expect(try broker.process.waitForExit() == .code(0))
    #expect(throws: RawSocket.Closed.self) { try RawSocket(broker.address) }
  }

  @Test func whoNeverReadsIsNotWaitedForLongerThanTheDrainTime() throws {
    let broker = try BrokerProcess("--drain", "300ms")
    let stuck = try broker.client("stuck", receiveBuffer: 8192)
    try stuck.sendSubscribe("t", stream: 1)
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    for _ in 0..<200 { try producer.publish([[UInt8](repeating: 1, count: 60_000)], stream: 1) }
    try producer.receiveAcknowledgements(stream: 1)
    #expect(try broker.terminate() == .code(0))
  }

  @Test func aSecondSignalStopsItAtOnce() throws {
    let broker = try BrokerProcess("--drain", "1h", "--keepalive", "0")
    let stuck = try broker.client("stuck", receiveBuffer: 8192)
    try stuck.sendSubscribe("t", stream: 1)
    let producer = try broker.client("producer")
    try producer.openPublication("t", stream: 1)
    for _ in 0..<200 { try producer.publish([[UInt8](repeating: 1, count: 60_000)], stream: 1) }
    try producer.receiveAcknowledgements(stream: 1)

    broker.process.signal(SIGTERM)
    try producer.receive(until: "GOAWAY") { producer.goAway != nil }
    pause(0.3)
    try broker.requireRunning()
    broker.process.signal(SIGTERM)
    #expect(try broker.process.waitForExit() == .code(0))
  }

  @Test func nothingAcknowledgedIsLostToThoseWhoWereOwedIt() throws {
    let broker = try BrokerProcess("--loops", "2", "--drain", "10m", "--replay-bytes", "1GiB")
    try broker.client().create("t")
    let between = try (0..<12).map { try broker.client("idle \($0)") }
    let acknowledged = Shared<[UInt64]>([])
    let delivered = Shared<[UInt64]>([])
    let running = Shared(0)

    let producers = (0..<3).map { number in
      return { @Sendable in
        let client = try broker.client("producer \(number)")
        try client.openPublication("t", stream: 1)
        running.update { $0 += 1 }
        let payloads = [[UInt8]](repeating: [UInt8](repeating: UInt8(number), count: 200), count: 100)
        do {
          while client.goAway == nil {
            let ledger = client.publications[1]!
            if ledger.allows(records: 100, beforeLast: 99 * 204), ledger.sent < 1_000_000 {
              try client.publish(payloads, stream: 1)
            } else {
              _ = try client.receive()
            }
          }
          while true { _ = try client.receive() }
        } catch is RawSocket.Closed {
          try client.settle()
        }
        try require(client.goAway?.code == .shuttingDown, "producer \(number) wasn't told")
        // With several producers the offset is more precise than the count.
        acknowledged.update { $0.append((client.publications[1]!.lastOffset).map { $0 + 1 } ?? 0) }
      }
    }
    let subscribers = (0..<6).map { number in
      return { @Sendable in
        let client = try broker.client("subscriber \(number)")
        try client.subscribe("t", stream: 1, granted: number < 2 ? .max : 1000)
        client.subscriptions[1]!.keepsPayloads = false
        var grants: Set<UInt64> = [1000]
        running.update { $0 += 1 }
        do {
          while true {
            _ = try client.receive()
            let ledger = client.subscriptions[1]!
            // Two subscribers are unlimited. The others grant a window ahead; two of these are slow.
            if number >= 2, ledger.granted - ledger.delivered < 500 {
              if number >= 4 { pause(0.002) }
              grants.insert(ledger.delivered + 1000)
              try client.demand(ledger.delivered + 1000, stream: 1)
            }
          }
        } catch is RawSocket.Closed {
          try client.settle()
        }
        try require(client.goAway?.code == .shuttingDown, "subscriber \(number) wasn't told")
        // The broker doesn't wait long for a client that grants no more, but delivers everything in its last grant.
        let ledger = client.subscriptions[1]!
        if number < 2 || !grants.contains(ledger.delivered) {
          delivered.update { $0.append(ledger.nextOffset!) }
        }
      }
    }
    let stopper = { @Sendable in
      try eventually("all are there") { running.value == 9 }
      pause(0.5)
      broker.process.signal(SIGTERM)
    }
    try concurrently(producers + subscribers + [stopper])
    #expect(try broker.process.waitForExit() == .code(0))

    let owed = acknowledged.value.max()!
    #expect(owed > 0)
    #expect(delivered.value.min()! >= owed)
    withExtendedLifetime(between) {}
  }
}
