import Glibc
import TestSupport
import Testing

/// Mosquitto's clients with a broker, as processes.
@Suite(.onItsOwnThread, .enabled(if: Mosquitto.isInstalled, "mosquitto-clients isn't installed"))
struct MosquittoTests {
  /// A broker with an MQTT address, and the client options to connect to it.
  private func broker(_ options: String...) throws -> (BrokerProcess, client: [String]) {
    let broker = try BrokerProcess(options: ["--listen", "mqtt://127.0.0.1:0"] + options)
    let address = try #require(broker.addresses.first { $0.hasPrefix("mqtt://127.0.0.1:") })
    return (
      broker, ["-h", "127.0.0.1", "-p", String(address.split(separator: ":").last ?? ""), "-V", "mqttv5"]
    )
  }

  private func publish(_ arguments: [String], input: ChildProcess.Input = .nothing) throws {
    let process = try ChildProcess(Mosquitto.publisher, arguments, input: input)
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
  }

  /// A subscriber that prints each line immediately.
  private func subscriber(_ arguments: [String]) throws -> ChildProcess {
    try ChildProcess("/usr/bin/stdbuf", ["-oL", Mosquitto.subscriber] + arguments)
  }

  /// The output of a subscriber that exits after `count` messages.
  private func read(_ arguments: [String], _ count: Int) throws -> [String] {
    let process = try subscriber(arguments + ["-C", "\(count)"])
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    return process.standardOutput.lines
  }

  @Test(arguments: ["0", "1", "2"]) func messagesAreReplayedAtEveryQoS(qos: String) throws {
    let (broker, client) = try broker()
    let lines = (0..<500).map { "line \($0)" }
    try publish(
      client + ["-t", "a/b", "-q", qos, "-l"],
      input: .bytes(Array((lines.joined(separator: "\n") + "\n").utf8)))
    let replay = ["-D", "subscribe", "user-property", "sluice-from", "earliest"]
    #expect(try read(client + ["-t", "a/#", "-q", qos] + replay, 500) == lines)
    #expect(
      try read(
        client + ["-t", "a/b", "-q", qos, "-D", "subscribe", "user-property", "sluice-from", "last:2"], 2)
        == Array(lines.suffix(2)))
    // The native protocol delivers the same records.
    let reader = try ChildProcess.sluice(["sub", "a.b", "--until-live"], server: broker.address)
    #expect(try reader.waitForExit() == .code(0))
    #expect(reader.standardOutput.lines == lines)
  }

  @Test func aClientTooManyIsToldInBothVersions() throws {
    let (broker, client) = try broker("--max-connections-per-address", "1")
    let first = try subscriber(client + ["-t", "t", "-d"])
    try eventually("the first client has subscribed") { first.standardOutput.text.contains("Subscribed") }
    let old = client.dropLast(2) + ["-V", "mqttv311"]
    for (options, told) in [(client, "Quota exceeded"), (Array(old), "broker unavailable")] {
      let second = try subscriber(options + ["-t", "t"])
      #expect(try second.waitForExit() != .code(0))
      #expect(second.messages.contains(told), "\(second.messages)")
    }
    withExtendedLifetime(broker) {}
  }

  @Test func retainedMessagesComeToLateSubscribersInBothVersions() throws {
    let (broker, client) = try broker()
    try publish(client + ["-t", "state/x", "-q", "1", "-r", "-m", "on"])
    #expect(try read(client + ["-t", "state/#", "-F", "%t %p %r"], 1) == ["state/x on 1"])
    let old = client.dropLast(2) + ["-V", "mqttv311"]
    #expect(try read(old + ["-t", "state/x", "-F", "%t %p %r"], 1) == ["state/x on 1"])
    withExtendedLifetime(broker) {}
  }

  @Test func retainedMessagesOutliveABrokerThatIsKilled() throws {
    let directory = try TemporaryDirectory()
    let data = directory.file("data")
    defer { removeStore(data) }
    for round in 1...3 {
      let (broker, client) = try broker("--data", data)
      if round > 1 {
        #expect(
          Set(try read(client + ["-t", "state/#", "-q", "1", "-F", "%t %p %r"], 2))
            == ["state/x on \(round - 1) 1", "state/y still here 1"])
      }
      try publish(client + ["-t", "state/x", "-q", "1", "-r", "-m", "on \(round)"])
      if round == 1 {
        try publish(client + ["-t", "state/y", "-q", "2", "-r", "-m", "still here"])
        try publish(client + ["-t", "state/z", "-q", "1", "-r", "-m", "removed"])
        try publish(client + ["-t", "state/z", "-q", "1", "-r", "-n"])
      }
      // The project's own client sees them in the broker's topic.
      let reader = try ChildProcess.sluice(
        ["sub", "mqtt.retained", "--until-live", "--from", "earliest"], server: broker.address)
      #expect(try reader.waitForExit() == .code(0))
      #expect(Set(reader.standardOutput.lines) == ["still here", "on \(round)"])
      broker.process.signal(SIGKILL)
      try broker.process.waitForExit()
    }
  }

  @Test func aWillIsPublishedWhenItsClientIsKilled() throws {
    let (broker, client) = try broker()
    let watcher = try subscriber(
      client + ["-t", "gone/#", "-q", "1", "-C", "1", "-v", "-d"])
    try eventually("the watcher has subscribed") { watcher.standardOutput.text.contains("Subscribed") }
    let victim = try subscriber(
      client + [
        "-t", "x", "-d", "--will-topic", "gone/victim", "--will-payload", "dead", "--will-qos", "1",
      ])
    try eventually("the victim has subscribed") { victim.standardOutput.text.contains("Subscribed") }
    victim.signal(SIGKILL)
    #expect(try watcher.waitForExit() == .code(0))
    #expect(watcher.standardOutput.lines.contains("gone/victim dead"))
    withExtendedLifetime(broker) {}
  }

  @Test func aSessionIsOwedWhatCameWhileItsClientWasAway() throws {
    let (broker, client) = try broker()
    let session = client + ["-i", "s", "-c", "-x", "600", "-t", "jobs/+", "-q", "1"]
    let first = try subscriber(session + ["-d", "-E"])
    #expect(try first.waitForExit() == .code(0))
    try publish(client + ["-t", "jobs/a", "-q", "1", "-m", "one"])
    try publish(client + ["-t", "jobs/b", "-q", "2", "-m", "two"])
    #expect(Set(try read(session, 2)) == ["one", "two"])
    withExtendedLifetime(broker) {}
  }

  @Test func clientsAuthenticateAndAreListedByTheirDoor() throws {
    let directory = try TemporaryDirectory()
    let (users, permissions) = (directory.file("users"), directory.file("permissions"))
    let user = try ChildProcess(
      BuiltProduct.path("sluice"), ["user", "add", "alice", "--file", users],
      input: .bytes(Array("secret words\n".utf8)))
    #expect(try user.waitForExit() == .code(0), "\(user.messages)")
    try writeFile(permissions, Array("alice publish,subscribe,create mine.>\n".utf8))
    let (broker, client) = try broker("--users", users, "--permissions", permissions)
    let refused = try ChildProcess(
      Mosquitto.publisher, client + ["-t", "mine/a", "-m", "x", "-u", "alice", "-P", "no"])
    #expect(try refused.waitForExit() != .code(0))
    let alice = client + ["-u", "alice", "-P", "secret words"]
    try publish(alice + ["-t", "mine/a", "-q", "1", "-m", "x"])
    let denied = try ChildProcess(
      Mosquitto.publisher, alice + ["-t", "other", "-q", "1", "-m", "x", "-d"])
    _ = try denied.waitForExit()
    #expect(
      denied.standardOutput.text.contains("RC:135") || denied.messages.contains("uthorized"),
      "\(denied.messages)")
    // In both versions, a filter is denied if alice may read none of its topics, and granted if she may read some.
    let old = Array(alice.dropLast(6)) + ["-V", "mqttv311", "-u", "alice", "-P", "secret words"]
    for options in [alice, old] {
      let refused = try subscriber(options + ["-t", "other/#", "-t", "mine", "-d"])
      _ = try refused.waitForExit()
      #expect(refused.messages.contains("All subscription requests were denied"), "\(refused.messages)")
    }
    let replay = ["-t", "#", "-q", "1", "-D", "subscribe", "user-property", "sluice-from", "earliest"]
    #expect(try read(alice + replay, 1) == ["x"])
    withExtendedLifetime(broker) {}
  }

  @Test func theBrokersOwnValuesCanBeRead() throws {
    let (broker, client) = try broker()
    let old = client.dropLast(2) + ["-V", "mqttv311"]
    for client in [client, Array(old)] {
      // A retained value, and one that comes because it has changed.
      let uptimes = try read(client + ["-t", "$SYS/broker/uptime", "-q", "2", "-F", "%r %p"], 2)
      #expect(uptimes.map { $0.split(separator: " ").count } == [3, 3])
      #expect(uptimes[0].hasPrefix("1 ") && uptimes[1].hasPrefix("0 "), "\(uptimes)")
    }
    #expect(try read(client + ["-t", "$SYS/broker/version"], 1)[0].hasPrefix("sluice version "))
    #expect(Set(try read(client + ["-t", "$SYS/broker/load/+/1min", "-F", "%t"], 2)).count == 2)
    withExtendedLifetime(broker) {}
  }

  @Test func mqttGoesOverTLS() throws {
    let certificates = try TestCertificates()
    let broker = try BrokerProcess(
      "--listen", "mqtts://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
      certificates.serverKey)
    let address = try #require(broker.addresses.first { $0.hasPrefix("mqtts://127.0.0.1:") })
    let client = [
      "-h", "127.0.0.1", "-p", String(address.split(separator: ":").last ?? ""), "--cafile",
      certificates.authority, "--insecure",
    ]
    try publish(client + ["-t", "t", "-q", "1", "-r", "-m", "secret"])
    #expect(try read(client + ["-t", "t"], 1) == ["secret"])
    withExtendedLifetime(broker) {}
  }
}

/// The command line clients of Mosquitto.
enum Mosquitto {
  static let publisher = "/usr/bin/mosquitto_pub"
  static let subscriber = "/usr/bin/mosquitto_sub"
  static var isInstalled: Bool { access(publisher, X_OK) == 0 && access(subscriber, X_OK) == 0 }
}
