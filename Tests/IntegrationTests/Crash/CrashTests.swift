import Glibc
import SluiceClient
import SluiceWire
import TestSupport
import Testing

/// A broker that is repeatedly killed at any moment and restarted on the same directory keeps its guarantees.
///
/// `SLUICE_CRASHES` sets the number of crashes. `SLUICE_SEED` repeats a run, as far as the test itself is random.
@Suite(.onItsOwnThread) struct CrashTests {
  private static var crashes: Int {
    getenv("SLUICE_CRASHES").flatMap { Int(String(cString: $0)) } ?? 20
  }

  @Test func whatWasAcknowledgedSurvivesEveryCrash() async throws {
    var random = SeededRandom.printed()
    let directory = try TemporaryDirectory()
    let data = directory.file("data")
    defer { removeStore(data) }
    var broker = try BrokerProcess("--data", data)
    let address = broker.address
    let topics = [
      CrashTopic("always", .always, index: 1, random: &random),
      CrashTopic("orders.always", .always, index: 2, random: &random),
      CrashTopic("interval", .interval(20), index: 3, random: &random),
      CrashTopic("os", .os, index: 4, random: &random),
    ]
    var clients: [String: Client] = [:]
    var lives = CrashLives()
    for topic in topics {
      try broker.client().create(topic.name, topic.settings)
      for producer in topic.producers {
        let client = try await connect(to: address)
        clients["\(producer.id)"] = client
        producer.start(on: client, from: 0)
      }
      let client = try await connect(to: address)
      clients[topic.name] = client
      topic.reader.start(on: client)
      let worker = try await connect(to: address)
      clients["group of \(topic.name)"] = worker
      topic.group.start(on: worker)
      try topic.check(broker, wasCut: false, isThorough: true)
    }

    for round in 1...Self.crashes {
      try lives.change(broker, &random)
      try await work(topics, &clients, at: address, &random)
      broker.process.signal(SIGKILL)
      try broker.process.waitForExit()
      if random.next() % 5 == 0 { try crashAtStart(data, &random) }
      broker = try restart(data, at: address)
      for topic in topics { try topic.check(broker, wasCut: true, isThorough: round % 20 == 0) }
      try lives.check(broker)
    }

    // In the end every record is acknowledged, and an orderly shutdown loses none.
    for topic in topics {
      try eventually("everything is acknowledged on \(topic.name)") {
        try topic.requireHealth()
        return topic.producers.allSatisfy(\.isIdle) && topic.reader.marker.isIdle
      }
    }
    try broker.terminate()
    broker = try restart(data, at: address)
    for topic in topics {
      try topic.check(broker, wasCut: false, isThorough: true)
      try eventually("the reader of \(topic.name) has everything") {
        try topic.requireHealth()
        let head = try broker.show(topic.name).summary.nextOffset
        return topic.producers.allSatisfy(\.isIdle) && topic.reader.marker.isIdle
          && topic.reader.count == Int(head)
      }
      try topic.check(broker, wasCut: false, isThorough: true)
      #expect(topic.reader.records.starts(with: topic.stable))
      if topic.isSynchronous { #expect(topic.reader.records == topic.stable) }
      try eventually("the group of \(topic.name) is done") {
        try topic.requireHealth()
        let group = try broker.client().listCursors(of: topic.name).cursors.first {
          $0.name == CrashGroup.name
        }
        return group?.nextOffset == group?.end && group?.outstanding == 0
      }
      #expect(topic.group.missed(of: topic.reader.records) == [])
    }
    for client in clients.values { client.close() }
  }

  /// Lets all clients work until a random number of records is acknowledged. Sometimes a program ends first, and another replaces it.
  private func work(
    _ topics: [CrashTopic], _ clients: inout [String: Client], at address: String,
    _ random: inout SeededRandom
  ) async throws {
    for topic in topics {
      if random.next() % 8 == 0 {
        topic.reader.stop()
        clients[topic.name]?.close()
        let client = try await connect(to: address)
        clients[topic.name] = client
        topic.reader.start(on: client)
      }
      if random.next() % 8 == 0 {
        topic.group.stop()
        clients["group of \(topic.name)"]?.close()
        let client = try await connect(to: address)
        clients["group of \(topic.name)"] = client
        topic.group.start(on: client)
      }
      for producer in topic.producers where random.next() % 8 == 0 {
        producer.stop()
        clients["\(producer.id)"]?.close()
        let client = try await connect(to: address)
        clients["\(producer.id)"] = client
        producer.start(on: client, from: random.next() % (producer.acknowledged + 1))
      }
    }
    let producers = topics.flatMap(\.producers)
    let before = producers.reduce(0) { $0 + $1.acknowledged }
    for producer in producers { producer.allow(40) }
    let wanted = random.next() % 160
    try eventually("\(wanted) acknowledgements", every: 0.002) {
      for topic in topics { try topic.requireHealth() }
      return producers.reduce(0) { $0 + $1.acknowledged } >= before + wanted
    }
    pause(Double(random.next() % 20_000) / 1e6)
  }

  /// Starts a broker and kills it before it is ready, or soon after.
  private func crashAtStart(_ data: String, _ random: inout SeededRandom) throws {
    let process = try ChildProcess(
      BuiltProduct.path("sluiced"), ["--listen", "127.0.0.1:0", "--data", data, "--admin", "off"])
    pause(Double(random.next() % 60_000) / 1e6)
    process.signal(SIGKILL)
    try process.waitForExit()
  }

  private func restart(_ data: String, at address: String) throws -> BrokerProcess {
    try BrokerProcess("--data", data, "--listen", address)
  }

  private func connect(to address: String) async throws -> Client {
    var options = ClientOptions()
    options.keepalive = .zero
    options.connectTimeout = .seconds(600)
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(5)
    policy.maximumDelay = .milliseconds(50)
    policy.includesFirst = true
    options.reconnect = policy
    return try await Client.connect(to: address, options: options)
  }
}

/// Removes a store's files and its directory.
func removeStore(_ path: String) {
  guard let directory = opendir(path) else { return }
  while let entry = readdir(directory) {
    let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    if name != ".", name != ".." { unlink("\(path)/\(name)") }
  }
  closedir(directory)
  rmdir(path)
}
