import SluiceBroker
import SluiceCommand
import SluiceDoors
import SluiceIO
import SluiceWire
import Testing

@testable import SluiceDaemon

@Suite("The daemon's settings")
struct DaemonSettingsTests {
  private func settings(_ arguments: [String], environment: [String: String] = [:]) throws(UsageError)
    -> DaemonSettings
  {
    try DaemonSettings(
      ArgumentParser(DaemonPage.page()).parse(arguments, environment: { environment[$0] }))
  }

  @Test("Told nothing, the daemon runs the broker's own defaults")
  func defaults() throws {
    let configuration = try settings([]).broker
    #expect(configuration.listen == [.host("127.0.0.1", port: 7420)])
    #expect(configuration.topicDefaults == BrokerConfiguration().topicDefaults)
    #expect(configuration.limits.frame == BrokerLimits().frame)
  }

  @Test("Every default in the help reads back as itself")
  func defaultsRoundTrip() throws {
    for option in DaemonPage.page().options where option.unavailable == nil {
      guard let standard = option.standard else { continue }
      let configuration = try settings(["--\(option.name)=\(standard)"]).broker
      let untouched = BrokerConfiguration()
      #expect(configuration.listen == untouched.listen)
      #expect(configuration.topicDefaults == untouched.topicDefaults)
      #expect(configuration.drainTime == untouched.drainTime)
      #expect(Self.numbers(configuration.limits) == Self.numbers(untouched.limits), "\(option.name)")
    }
  }

  private static func numbers(_ limits: BrokerLimits) -> [UInt64] {
    [
      limits.connections, limits.record, limits.frame, limits.topics, limits.writeBatch, limits.answers,
      limits.pooledMemory, limits.patterns, limits.patternsPerConnection, limits.matches,
    ].map { UInt64($0) } + [
      UInt64(limits.streams), limits.producerWindow, UInt64(limits.keepalive),
      UInt64(limits.handshake.components.seconds),
    ]
  }

  @Test("Options reach the configuration")
  func options() throws {
    let settings = try settings([
      "--listen", "127.0.0.1:0", "--listen=unix:/tmp/x", "--loops", "3", "--replay-records", "10k",
      "--replay-bytes", "everything", "--replay-age", "24h", "--max-connections", "7", "--max-streams", "9",
      "--max-topics", "11", "--producer-window", "100", "--keepalive", "2s", "--handshake", "1s",
      "--write-batch",
      "64KiB", "--max-patterns", "12", "--max-patterns-per-connection", "13", "--max-matches", "14",
      "--answers", "32KiB", "--pooled-memory", "1MiB", "--drain", "250ms", "--log-level", "debug",
      "--log-format",
      "json", "--admin", "[::1]:0", "--admin-topics", "7", "--flow", "lossless", "--buffer-records", "0",
      "--buffer-bytes", "1MiB",
      "--without-subscribers", "hold", "--connect", "auto:3", "--scope", "while-connected", "--lag", "fail",
      "--data", "/data", "--storage-limit", "50GiB", "--auto-delete", "on", "--compact", "--storage",
      "durable", "--sync", "50ms", "--when-producer-lost", "fail:30s",
      "--topic-rule", "a.* flow=free connect=manual", "--topic-rule",
      "> replay-records=everything compact=false storage=memory sync=os",
    ])
    let configuration = settings.broker
    #expect(configuration.listen == [.host("127.0.0.1", port: 0), .unix("/tmp/x")])
    #expect(configuration.loops == 3)
    #expect(settings.admin.address == .host("::1", port: 0))
    #expect(settings.admin.topics == 7)
    var topic = TopicSettings(
      replayRecords: 10_000, replayBytes: TopicSettings.unlimited, replayAge: 86_400_000)
    topic.flow = .lossless
    topic.bufferRecords = 0
    topic.bufferBytes = 1 << 20
    topic.withoutSubscribers = .hold
    topic.connect = .auto(3)
    topic.scope = .whileConnected
    topic.lag = .fail
    topic.compact = true
    topic.autoDelete = true
    topic.storage = .durable
    topic.sync = .interval(50)
    topic.whenProducerLost = .fail(after: 30_000)
    #expect(configuration.topicDefaults == topic)
    var first = TopicSettings()
    first.flow = .free
    first.connect = .manual
    var second = TopicSettings(replayRecords: TopicSettings.unlimited)
    second.compact = false
    second.storage = .memory
    second.sync = .os
    #expect(
      configuration.topicRules == [
        TopicRule(pattern: try TopicPattern("a.*"), settings: first),
        TopicRule(pattern: try TopicPattern(">"), settings: second),
      ])
    let expected: [UInt64] = [
      7, 1_048_576, 2_097_152, 11, 65_536, 32_768, 1_048_576, 12, 13, 14, 9, 100, 2000, 1,
    ]
    #expect(Self.numbers(configuration.limits) == expected)
    #expect(configuration.drainTime == .milliseconds(250))
    #expect(settings.logLevel == .debug)
    #expect(settings.logFormat == .json)
    #expect(settings.data == "/data" && settings.storageLimit == 50 << 30)
  }

  @Test("Limits of attempts, of the admin listener and of the log are settings of their own")
  func otherLimits() throws {
    // Values as written, and as applied.
    let values: [(option: String, text: String, result: String)] = [
      ("attempts-free", "1", "1"), ("attempts-delay", "2s", "2s"), ("attempts-ceiling", "3s", "3s"),
      ("attempts-memory", "4m", "4m"), ("attempts-tracked", "5", "5"),
      ("attempts-shared-ceiling", "6s", "6s"),
      ("admin-connections", "7", "7"), ("admin-watchers", "0", "0"), ("admin-idle-timeout", "9s", "9s"),
      ("admin-request-timeout", "10500ms", "11s"), ("admin-answer-timeout", "1ms", "1s"),
      ("admin-broker-timeout", "1m", "1m"), ("admin-connection-bytes", "13KiB", "13KiB"),
      ("admin-list-topics", "14", "14"), ("admin-list-connections", "15", "15"),
      ("admin-list-streams", "16", "16"), ("admin-list-records", "17", "17"),
      ("admin-list-bytes", "18KiB", "18KiB"), ("admin-payload-bytes", "19", "19B"),
      ("log-buffer", "20MiB", "20MiB"),
    ]
    let settings = try settings(values.map { "--\($0.option)=\($0.text)" })
    for (option, _, result) in values {
      let setting = try #require(DaemonSettings.all().first { $0.option.name == option })
      #expect(setting.write(settings) == result, "\(option)")
    }
  }

  @Test("The environment sets the same, and an option overrides it")
  func environment() throws {
    let environment = ["SLUICED_LISTEN": "127.0.0.1:1,127.0.0.1:2", "SLUICED_MAX_TOPICS": "5"]
    let fromEnvironment = try settings([], environment: environment).broker
    #expect(fromEnvironment.listen == [.host("127.0.0.1", port: 1), .host("127.0.0.1", port: 2)])
    #expect(fromEnvironment.limits.topics == 5)
    let overridden = try settings(["--listen", "[::1]:3", "--max-topics", "6"], environment: environment)
      .broker
    #expect(overridden.listen == [.host("::1", port: 3)])
    #expect(overridden.limits.topics == 6)
  }

  @Test("A larger record limit takes the frame limit along, unless that is given")
  func frameFollows() throws {
    func frame(_ arguments: String...) throws(UsageError) -> Int {
      try settings(arguments).broker.limits.frame
    }
    #expect(try frame("--max-record", "16MiB") == 16_842_752)
    #expect(try frame("--max-record", "1KiB") == 2_097_152)
    #expect(try frame("--max-record", "16MiB", "--max-frame", "32MiB") == 33_554_432)
  }

  @Test("The longest packet of MQTT has room for the longest record")
  func packetFollowsRecord() throws {
    func packet(_ arguments: String...) throws -> Int { try settings(arguments).doors.mqtt.packet }
    #expect(try packet() == 1_114_112)
    #expect(try packet("--max-record", "16MiB") == 16_842_752)
    #expect(try packet("--max-record", "1KiB") == 1_114_112)
    #expect(try packet("--max-record", "256MiB") == 268_435_460)
    #expect(try packet("--max-record", "16MiB", "--mqtt-packet", "1MiB") == 1_048_576)
  }

  @Test(
    "What can't be is refused under the name that was used",
    arguments: [
      (["--max-record", "0"], "--max-record: 0 isn't in 1...268435456"),
      (["--max-record", "4MiB", "--max-frame", "1MiB"], "--max-frame: 1048576 isn't in"),
      (["--loops", "0"], "--loops: 0 isn't between 1 and 1024"),
      (["--producer-window", "1"], "--producer-window: 1 isn't in 2...4294967296"),
      (["--keepalive", "50d"], "--keepalive: '50d' is too long"),
      (["--listen", "nowhere"], "--listen: 'nowhere' is not an address"),
      (["--admin", "nowhere"], "--admin: 'nowhere' is not an address"),
      (["--admin", "tls://127.0.0.1:7421"], "--admin: tls://127.0.0.1:7421 needs a certificate and its key"),
      (
        ["--admin", "0.0.0.0:7421"], "--admin: every visitor that reaches 0.0.0.0:7421 could see every topic"
      ),
      (["--admin-topics", "0"], "--admin-topics: 0 isn't between 1 and 100000"),
      (["--data", ""], "--data: the name of the directory is empty"),
      (
        ["--storage-limit", "1GiB"],
        "--storage-limit: needs a directory for durable topics; name one with --data DIR"
      ),
      (
        ["--storage-limit", "1KiB", "--data", "d"],
        "--storage-limit: '1KiB' is too small; write at least 1MiB"
      ),
      (["--storage", "durable"], "--storage: durable topics need a directory; name one with --data DIR"),
      (
        ["--topic-rule", "a.> storage=durable"],
        "--topic-rule: 'a.> storage=durable': durable topics need a directory"
      ),
      (["--log-level", "wrning"], "--log-level: there is no 'wrning'; did you mean 'warning'?"),
      (["--flow", "losless"], "--flow: there is no 'losless'; did you mean 'lossless'?"),
      (["--storage", "disk"], "--storage: there is no 'disk'; it can be memory or durable"),
      (["--sync", "sometimes"], "--sync: there is no 'sometimes'; it can be always, os or a time like 50ms"),
      (["--sync", "0"], "--sync: '0' is too short; write always, or at least 1ms"),
      (["--sync", "50d"], "--sync: '50d' is too long; 49 days is the most"),
      (["--connect", "auto:0"], "--connect: 0 isn't between 1 and 4294967295"),
      (
        ["--topic-rule", "a.>.b flow=free"], "--topic-rule: \"a.>.b\" isn't a pattern: > can only be its last"
      ),
      (["--topic-rule", "a.>"], "--topic-rule: 'a.>' sets nothing"),
      (["--topic-rule", "a flw=free"], "--topic-rule: there is no setting 'flw'; did you mean 'flow'?"),
      (["--topic-rule", "a flow=fre"], "--topic-rule: flow: there is no 'fre'; did you mean 'free'?"),
      (["--topic-rule", "a flow"], "--topic-rule: 'flow' isn't a setting; write NAME=VALUE"),
      (["--log-buffer", "1KiB"], "--log-buffer: '1KiB' isn't in 64KiB to 1GiB"),
      (["--attempts-free", "-1"], "--attempts-free: '-1' isn't a whole number"),
      (["--attempts-tracked", "0"], "--attempts-tracked: 0 isn't between 1 and 10000000"),
      (["--attempts-delay", "2d"], "--attempts-delay: '2d' isn't in 0s to 1d"),
      (["--attempts-memory", "1000d"], "--attempts-memory: '1000d' isn't in 1ms to 30d"),
      (
        ["--attempts-memory", "20s"], "--attempts-memory: 20.0 seconds is less than what an attempt may have"
      ),
      (["--admin-connections", "18446744073709551615"], "--admin-connections: 18446744073709551615 isn't"),
      (["--admin-idle-timeout", "0s"], "--admin-idle-timeout: '0s' isn't more than 0s and less than 1d"),
      (["--admin-answer-timeout", "100000d"], "--admin-answer-timeout: '100000d' isn't more than 0s"),
      (["--admin-list-records", "0"], "--admin-list-records: 0 isn't between 1 and 1000000"),
      (["--admin-payload-bytes", "9999999TiB"], "--admin-payload-bytes: '9999999TiB' is too large"),
      (["--relay-age", "1h"], "there is no option --relay-age; did you mean --replay-age?"),
    ])
  func refusals(arguments: [String], beginning: String) {
    do {
      _ = try settings(arguments)
      Issue.record("taken")
    } catch {
      #expect(error.description.hasPrefix(beginning))
    }
  }

  @Test("An event is one line, as text and as JSON")
  func logLines() {
    let line = LogLine(
      time: 0, level: .info, message: "ready",
      fields: [("pid", .number(7)), ("name", .text("a \"b\"\nc")), ("plain", .text("x=1"))])
    #expect(
      line.rendered(as: .text)
        == "1970-01-01T00:00:00.000Z info    ready pid=7 name=\"a \\\"b\\\"\\nc\" plain=x=1\n")
    #expect(
      line.rendered(as: .json)
        == "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"message\":\"ready\",\"pid\":7,\"name\":\"a \\\"b\\\"\\nc\",\"plain\":\"x=1\"}\n"
    )
  }
}
