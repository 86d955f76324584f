import Glibc
import SluiceWire
import TestSupport
import Testing

/// A broker whose standard error is a pipe without a reader.
@Suite(.onItsOwnThread) struct HangingLogReaderTests {
  /// So many that their log lines exceed a pipe's buffer.
  private static let topics = 500

  /// Logs a line for each created topic.
  private func sluiced(_ options: String..., log: LogFifo) throws -> (process: ChildProcess, address: String)
  {
    let local = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--audit", "on"]
    let process = try log.start(local + options)
    _ = try process.standardOutput.line(startingWith: "sluiced ready")
    return (process, try address("sluiced listening on ", of: process))
  }

  private func address(_ beginning: String, of process: ChildProcess) throws -> String {
    String(try process.standardOutput.line(startingWith: beginning).dropFirst(beginning.count))
  }

  private func makeTopics(_ address: String) throws {
    let client = try RawClient(address)
    try client.shakeHands()
    let padding = String(repeating: "x", count: 180)
    for number in 0..<Self.topics {
      let stream = UInt32(2 * number + 1)
      try client.send(TopicCreate(topic: "\(padding)\(number)", settings: TopicSettings()), stream: stream)
      _ = try client.expect(TopicInfo.self, stream: stream)
    }
  }

  @Test func theBrokerServesEverybodyAllTheSame() throws {
    let log = try LogFifo()
    let (process, address) = try sluiced("--log-level", "debug", log: log)
    try makeTopics(address)
    for command in [
      ["ping"], ["pub", "t", "a", "b", "--quiet"], ["sub", "t", "--count", "2"], ["topic", "show", "t"],
    ] {
      let tool = try ChildProcess.sluice(command, server: address)
      #expect(try tool.waitForExit() == .code(0), "\(tool.messages)")
      if command[0] == "sub" { #expect(tool.standardOutput.text == "a\nb\n") }
    }
    process.signal(SIGTERM)
    #expect(try process.waitForExit() == .code(0))
  }

  @Test func whatFindsNoRoomIsCountedAndSaidWhenSomebodyReads() throws {
    let log = try LogFifo()
    try log.fill()
    let (process, address) = try sluiced("--log-level", "error", "--log-buffer", "64KiB", log: log)
    try makeTopics(address)
    let metric = "sluice_log_dropped_lines_total "
    let metrics = try RawHTTP.get(self.address("sluiced admin on ", of: process), "/metrics").text
    let dropped = try #require(
      metrics.split(separator: "\n").first { $0.hasPrefix(metric) }.flatMap {
        Int($0.dropFirst(metric.count))
      }
    )
    #expect(dropped > 0)

    var text = ""
    try eventually("a line about those that are missing") {
      text += log.available()
      return text.contains("log lines were dropped here")
    }
    process.signal(SIGTERM)
    #expect(try process.waitForExit() == .code(0))
    text += log.available()
    #expect(text.hasSuffix("\n"))
    let lines = text.split(separator: "\n")
    // The lines present are the first ones, in order.
    let made = lines.filter { $0.contains("action=create-topic") }
    #expect(made.count == Self.topics - dropped)
    for (number, line) in made.enumerated() { #expect(line.hasSuffix("x\(number)")) }
    let notices = lines.filter { $0.contains("log lines were dropped here") }
    #expect(notices.count == 1)
    #expect(notices.first?.contains(" audit=true lines=\(dropped) audits=\(dropped)") == true, "\(notices)")
  }

  @Test func whoCannotStartEndsAllTheSame() throws {
    let log = try LogFifo()
    try log.fill()
    #expect(try log.start(["--listen", "127.0.0.1:0", "--max-record", "0"]).waitForExit() == .code(2))
  }
}

/// The broker's standard error, a named pipe.
private final class LogFifo {
  private let directory: TemporaryDirectory
  private let path: String
  private let reader: Int32

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.file("log")
    try require(mkfifo(path, 0o600) == 0, "mkfifo: error \(errno)")
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try require(reader >= 0, "open \(path): error \(errno)")
  }

  deinit {
    close(reader)
  }

  /// Starts `sluiced`.
  func start(_ options: [String]) throws -> ChildProcess {
    try ChildProcess(
      "/bin/sh", ["-c", "exec \"$@\" 2>\"$0\"", path, BuiltProduct.path("sluiced")] + options)
  }

  /// Fills the pipe.
  func fill() throws {
    let writer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
    try require(writer >= 0, "open \(path): error \(errno)")
    defer { close(writer) }
    let line = Array("filling\n".utf8)
    while write(writer, line, line.count) > 0 {}
  }

  /// The lines that can be read now.
  func available() -> String {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(reader, &chunk, chunk.count)
      guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
      bytes += chunk[..<count]
    }
  }
}
