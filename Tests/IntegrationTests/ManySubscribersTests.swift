import Glibc
import SluiceWire
import TestSupport
import Testing

/// One producer, a thousand subscribers, ten of which never read.
@Suite(.onItsOwnThread) struct ManySubscribersTests {
  private static let readers = 990
  private static let recordSize = 2048

  @Test func thoseWhoReadGetEverythingAndMemoryStaysBounded() throws {
    let broker = try BrokerProcess("--replay-bytes", "32MiB", "--keepalive", "0")
    // Small buffers, so that unread bytes wait in the broker instead of the system.
    let stuck = try (0..<10).map { try broker.client("stuck \($0)", receiveBuffer: 4096) }
    for client in stuck { try client.sendSubscribe("t", stream: 1) }
    let crowd = Crowd()
    for number in 0..<Self.readers {
      let client = try broker.client("reader \(number)")
      try client.sendSubscribe("t", stream: 1)
      client.subscriptions[1]!.keepsPayloads = false
      client.subscriptions[1]!.onRecord = { offset, body in
        try require(
          body.count == Self.recordSize && body.loadUnaligned(as: UInt64.self) == offset,
          "the record at \(offset) is another one")
      }
      crowd.clients.append(client)
    }
    try eventually("all have subscribed") { try broker.show("t").summary.subscriptions == 1000 }

    // First deliver more than a gigabyte in all to all of them.
    try publish(broker, 600, from: 0)
    try crowd.receive { $0.subscriptions[1]!.nextOffset == 600 }
    for client in crowd.clients {
      #expect(client.events(1) == [.subscribed(next: 0, live: 0), .live(0), .records(0..<600)])
    }
    let before = try broker.memory

    // Then publish 2 GB, which would be visible if they were buffered for each of the ten.
    for client in crowd.clients[10...] { client.close() }
    crowd.clients.removeLast(Self.readers - 10)
    try meanwhile {
      try publish(broker, 100_000, from: 600)
    } _: {
      try crowd.receive { $0.subscriptions[1]!.nextOffset == 100_600 }
    }
    let after = try broker.memory
    // The topic retains 32 MiB. The rest are freed segments kept for reuse, and the buffers of ten connections.
    let bound = 160 << 20
    #expect(after.peak < bound, "\(after.peak >> 20) MiB; \(before.resident >> 20) MiB before")
    let info = try broker.show("t")
    #expect(info.summary.subscriptions == 20)
    #expect(info.subscriptions.filter { $0.client.hasPrefix("stuck") }.allSatisfy { $0.nextOffset < 100_600 })
    withExtendedLifetime(stuck) {}
  }

  private func publish(_ broker: BrokerProcess, _ count: UInt64, from first: UInt64) throws {
    let client = try broker.client("producer")
    try client.openPublication("t", stream: 1)
    var payload = [UInt8](repeating: 0x2E, count: Self.recordSize)
    var next = first
    while next < first + count {
      var batch = BatchBuilder()
      for _ in 0..<min(50, first + count - next) {
        payload.withUnsafeMutableBytes { $0.storeBytes(of: next, as: UInt64.self) }
        payload.withUnsafeBytes { batch.append($0) }
        next += 1
      }
      try client.publish(batch, stream: 1)
    }
    try client.receiveAcknowledgements(stream: 1)
  }
}

/// Many clients, read by one thread as frames arrive.
private final class Crowd {
  var clients: [RawClient] = []

  /// Reads until `isDone` returns true for each client.
  func receive(
    within seconds: Double = 300, _ isDone: (RawClient) throws -> Bool
  ) throws {
    let deadline = Deadline(in: seconds)
    var left = clients
    while !left.isEmpty {
      var entries = left.map { pollfd(fd: $0.socket.descriptor, events: Int16(POLLIN), revents: 0) }
      let count = poll(&entries, nfds_t(entries.count), deadline.milliseconds)
      if count < 0 && errno == EINTR { continue }
      guard count > 0, !deadline.isOver else {
        throw TestFailure("\(left.count) of \(clients.count) clients didn't get what they should")
      }
      for (entry, client) in zip(entries, left) where entry.revents != 0 {
        try client.pump(reads: 1)
        try client.settle()
      }
      left = try left.filter { try !isDone($0) }
    }
  }
}
