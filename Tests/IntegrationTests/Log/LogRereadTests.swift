import Glibc
import TestSupport
import Testing

/// Log settings that follow a reread file.
@Suite(.onItsOwnThread) struct LogRereadTests {
  private let directory: TemporaryDirectory
  private var file: String { directory.file("sluiced.toml") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func write(_ text: String) throws {
    try writeFile(file, Array(text.utf8))
  }

  private func lines(_ text: String, of broker: BrokerProcess, count: Int = 1) throws -> [String] {
    var lines: [String] = []
    try eventually("'\(text)' in the log: \(broker.process.messages)") {
      lines = broker.process.standardError.lines.filter { $0.contains(text) }
      return lines.count == count
    }
    return lines
  }

  private func reread(_ text: String, by broker: BrokerProcess, times: Int) throws {
    try write(text)
    broker.process.signal(SIGHUP)
    _ = try lines("the configuration was read again", of: broker, count: times)
  }

  /// The log line about a created topic.
  private func madeTopic(_ name: String, _ broker: BrokerProcess) throws -> String {
    try broker.client().create(name)
    return try lines("action=create-topic outcome=done topic=\(name)", of: broker)[0]
  }

  @Test func whetherAndHowMuchIsAudited() throws {
    try write("[access]\naudit = true\n[log]\nlevel = \"error\"\n")
    let broker = try BrokerProcess("--config", file)
    #expect(try madeTopic("a", broker).contains(" audit=true "))

    try reread("[access]\naudit = false\n[log]\nbuffer = \"2MiB\"\n", by: broker, times: 1)
    for change in [
      "setting=access.audit from=on to=off", "setting=log.level from=error to=info",
      "setting=log.buffer from=1MiB to=2MiB",
    ] {
      _ = try lines(change, of: broker)
    }
    #expect(try !madeTopic("b", broker).contains("audit="))

    try reread("[access]\naudit = true\n", by: broker, times: 2)
    #expect(try madeTopic("c", broker).contains(" audit=true "))
    // By default this broker doesn't authenticate clients.
    try reread("", by: broker, times: 3)
    #expect(try !madeTopic("d", broker).contains("audit="))
    #expect(!broker.process.standardError.text.contains("needs a restart"), "\(broker.process.messages)")
  }
}
