import Glibc
import TestSupport
import Testing

@testable import SluiceDaemon

@Suite("The thread that writes the log")
struct LogOutputTests {
  private func line(_ number: Int) -> String { "\(number) " + String(repeating: "x", count: 90) + "\n" }

  @Test("lines come out whole and in their order, whichever thread they are from")
  func order() throws {
    let pipe = try LogPipe()
    let count = 2_000
    let output = pipe.output
    try meanwhile({
      try concurrently(
        (0..<3).map { thread in
          { for number in 0..<count { output.write("\(thread) \(number)\n") } }
        })
      output.flush()
      output.write("end\n")
    }) {
      let lines = try pipe.lines(upTo: "end").dropLast().map { $0.split(separator: " ").map { Int($0) } }
      for thread in 0..<3 { #expect(lines.filter { $0[0] == thread }.map { $0[1] } == Array(0..<count)) }
      #expect(lines.count == 3 * count)
    }
    #expect(output.droppedLines == 0)
  }

  @Test(
    "no thread waits for a reader that hangs; when it reads again it is told what it has missed",
    arguments: [LogFormat.text, .json])
  func hangingReader(format: LogFormat) throws {
    let pipe = try LogPipe()
    try pipe.fill()
    pipe.output.capacity = 64 << 10
    let count = 2_000
    for number in 0..<count { pipe.output.write(line(number), as: format) }
    let dropped = pipe.output.droppedLines
    #expect((48 << 10) / 100 + dropped <= count)
    // There is still room for audit lines.
    pipe.output.write("audited\n", isAudit: true)
    #expect(pipe.output.droppedLines == dropped)

    let early = try pipe.lines(upTo: "audited")
    #expect(early.compactMap { Int($0.prefix { $0 != " " }) } == Array(0..<count - dropped))
    pipe.output.flush()
    pipe.output.write("end\n")
    let notices = try (early + pipe.lines(upTo: "end")).filter { $0.contains("log lines were dropped here") }
    #expect(notices.count == 1)
    let text =
      " warning log lines were dropped here: the log's reader was too slow; to keep more, raise --log-buffer"
    let notice = format == .json ? "\"lines\":\(dropped)}" : "\(text) lines=\(dropped)"
    #expect(notices.first?.hasSuffix(notice) == true, "\(notices)")
  }

  @Test("who waits for everything to be written has it there, and isn't held up by a reader that hangs")
  func flushing() throws {
    let pipe = try LogPipe()
    pipe.output.write("one\n")
    pipe.output.flush()
    #expect(pipe.available == 4)
    try pipe.fill()
    pipe.output.write("two\n")
    // The test checks that this call returns.
    pipe.output.flush()
    #expect(pipe.output.droppedLines == 0)
  }

  @Test("lines that can't be read any more make room")
  func closedPipe() throws {
    let pipe = try LogPipe()
    pipe.closeReader()
    for _ in 0..<4 {
      // Each time more than half of the buffer.
      for number in 0..<6_000 { pipe.output.write(line(number)) }
      pipe.output.flush()
    }
    #expect(pipe.output.droppedLines == 0)
  }
}

/// A log's pipe, which the test reads on demand.
private final class LogPipe {
  let output: LogOutput
  private var reader: Int32
  private let writer: Int32
  /// The incomplete last line.
  private var rest: [UInt8] = []

  init() throws {
    var ends: [Int32] = [0, 0]
    try require(pipe(&ends) == 0, "pipe: error \(errno)")
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    (reader, writer) = (ends[0], ends[1])
    output = LogOutput(writer)
  }

  deinit {
    closeReader()
    // The rest fails now, so that no thread writes there afterwards.
    output.flush()
    close(writer)
  }

  func closeReader() {
    if reader >= 0 { close(reader) }
    reader = -1
  }

  /// Fills the pipe.
  func fill() throws {
    let flags = fcntl(writer, F_GETFL)
    _ = fcntl(writer, F_SETFL, flags | O_NONBLOCK)
    defer { _ = fcntl(writer, F_SETFL, flags) }
    let line = Array("filling\n".utf8)
    while write(writer, line, line.count) > 0 {}
    try require(errno == EAGAIN, "write: error \(errno)")
  }

  /// The number of bytes that can be read.
  var available: Int {
    var count: Int32 = 0
    _ = ioctl(reader, UInt(FIONREAD), &count)
    return Int(count)
  }

  /// Reads lines until one starts with `beginning`. Returns all of them.
  func lines(upTo beginning: String) throws -> [String] {
    let deadline = Deadline(in: Deadline.patience)
    var lines: [String] = []
    while !lines.contains(where: { $0.hasPrefix(beginning) }) {
      var wanted = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
      try require(poll(&wanted, 1, deadline.milliseconds) == 1, "no line begins with \(beginning)")
      var chunk = [UInt8](repeating: 0, count: 65_536)
      let count = read(reader, &chunk, chunk.count)
      try require(count > 0, "read: error \(errno)")
      rest += chunk[..<count]
      guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { continue }
      lines += String(decoding: rest[..<end], as: UTF8.self).split(separator: "\n").map(String.init)
      rest.removeFirst(end + 1)
    }
    return lines
  }
}
