import Glibc
import SluiceWire
import TestSupport
import Testing

/// How `sluice` ends: its exit code, and one line with the reason.
@Suite(.onItsOwnThread) struct ToolEndingTests {
  /// Checks that the program exited with `code` and printed one line.
  private func expect(
    _ process: ChildProcess, _ code: Int32, mentions words: String...,
    at location: SourceLocation = #_sourceLocation
  ) throws {
    let exit = try process.waitForExit()
    let said = process.standardError.text
    #expect(exit == .code(code), "\(process.name): \(said)", sourceLocation: location)
    #expect(
      process.standardError.lines.count == 1 && said.hasSuffix("\n"), "\(process.name): \(said)",
      sourceLocation: location)
    for word in words { #expect(said.contains(word), "\(process.name)", sourceLocation: location) }
  }

  private static let commands = [
    ["sub", "t"], ["pub", "t", "message"], ["ping", "--count", "1"], ["topic", "list"],
    ["topic", "show", "t"],
  ]

  // MARK: No broker, or a wrong one

  @Test func withoutABroker() throws {
    let address = try FakeServer.nobody()
    for command in Self.commands {
      try expect(ChildProcess.sluice(command, server: address), 1, mentions: address)
    }
  }

  @Test func withAServerThatIsntABroker() throws {
    let web = try FakeServer { _ in .send(Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8))
    }
    let talker = try FakeServer(greeting: Array("220 mail.example.org ESMTP\r\n".utf8)) { _ in .send([]) }
    let closer = try FakeServer { _ in .finish([]) }
    for command in Self.commands {
      for server in [web, talker, closer] {
        try expect(ChildProcess.sluice(command, server: server.address), 1, mentions: server.address)
      }
    }
  }

  @Test func whenTheStreamIsCutOff() throws {
    var batch = BatchBuilder()
    for text in ["one", "two"] { Array(text.utf8).withUnsafeBytes { batch.append($0) } }
    func deliver(from offset: UInt64) -> [UInt8] {
      let length = RecordLayout.timeMarkSize + batch.bytes.count
      var front = [UInt8](
        repeating: 0, count: FrameHeader.size + DeliverHeader.size + RecordLayout.timeMarkSize)
      front.withUnsafeMutableBytes {
        DeliverHeader(firstOffset: offset, count: 2)
          .write(at: $0.baseAddress!, stream: 1, batchLength: length)
        RecordLayout.writeTimeMark(1, at: $0.baseAddress! + FrameHeader.size + DeliverHeader.size)
      }
      return front + batch.bytes
    }
    let welcome = Welcome(
      maximumFrame: 1 << 20, maximumRecord: 1 << 16, maximumStreams: 100, keepalive: 0, broker: 1,
      software: "a broker that dies"
    ).encoded(stream: 0)
    let answer =
      Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0).encoded(stream: 1)
      + Live(nextOffset: 0).encoded(stream: 1) + deliver(from: 0) + deliver(from: 2).dropLast(4)
    let isWelcomed = Shared(false)
    let server = try FakeServer { _ in
      // In the middle of a frame.
      if isWelcomed.value { return .finish(answer) }
      isWelcomed.update { $0 = true }
      return .send(welcome)
    }
    let process = try ChildProcess.sluice(["sub", "t", "--no-reconnect"], server: server.address)
    try expect(process, 1)
    #expect(process.standardOutput.text == "one\ntwo\n")
  }

  @Test func withAWrongCommandLine() throws {
    for command in [
      ["sub"], ["sub", "a b"], ["pub", "t", "--ack", "never"], ["nonsense"], ["sub", "t", "--demand", "0"],
    ] {
      let process = try ChildProcess.sluice(command, server: "127.0.0.1:1")
      #expect(try process.waitForExit() == .code(2), "\(command): \(process.messages)")
      #expect(process.standardOutput.text == "")
      #expect(!process.standardError.text.isEmpty)
    }
  }

  // MARK: The topic

  @Test func whenTheTopicFails() throws {
    let broker = try BrokerProcess()
    try broker.client().create("t")
    let early = try broker.sluice("sub", "t")
    try broker.waitForSubscriptions(1, on: "t")
    let publisher = try broker.sluice("pub", "t", "a", "b", "--fail", "the source is gone")
    #expect(try publisher.waitForExit() == .code(0))
    let late = try broker.sluice("sub", "t", "--demand", "1")
    for process in [early, late] {
      try expect(process, 3, mentions: "the source is gone")
      #expect(process.standardOutput.text == "a\nb\n")
    }
    try expect(broker.sluice("pub", "t", "c"), 1, mentions: "the source is gone")
  }

  @Test func whenARecordIsTooLong() throws {
    let broker = try BrokerProcess("--max-record", "65536")
    let fits = try broker.sluice(
      "pub", "t", "--delimiter", "none", input: .bytes([UInt8](repeating: 65, count: 65_536)))
    #expect(try fits.waitForExit() == .code(0))
    let process = try broker.sluice(
      "pub", "t", "--delimiter", "none", "--quiet", input: .bytes([UInt8](repeating: 65, count: 65_537)))
    try expect(process, 1)
    #expect(try broker.show("t").summary.nextOffset == 1)
  }

  @Test func whenTheTopicIsDeleted() throws {
    let broker = try BrokerProcess()
    try broker.client().create("t")
    let subscriber = try broker.sluice("sub", "t")
    try broker.waitForSubscriptions(1, on: "t")
    let deletion = try broker.sluice("topic", "delete", "t", "--yes")
    #expect(try deletion.waitForExit() == .code(0))
    try expect(subscriber, 1, mentions: "deleted")
    try expect(broker.sluice("topic", "show", "t"), 1, mentions: "t")
  }

  // MARK: The broker

  @Test func whenTheBrokerStops() throws {
    let broker = try BrokerProcess()
    try broker.client().create("t")
    let subscriber = try broker.sluice("sub", "t", "--no-reconnect")
    let publisher = try broker.sluice("pub", "t", "--no-reconnect", input: .open)
    try publisher.write(Array("one\ntwo\n".utf8))
    try subscriber.standardOutput.wait(bytes: 8)
    #expect(try broker.terminate() == .code(0))
    try expect(subscriber, 1)
    try expect(publisher, 1)
    #expect(subscriber.standardOutput.text == "one\ntwo\n")
  }

  @Test func whenTheBrokerIsKilled() throws {
    let broker = try BrokerProcess()
    try broker.client().create("t")
    let subscriber = try broker.sluice("sub", "t", "--no-reconnect")
    let publisher = try broker.sluice("pub", "t", "--no-reconnect", input: .open)
    try publisher.write(Array("one\ntwo\n".utf8))
    try subscriber.standardOutput.wait(bytes: 8)
    broker.process.signal(SIGKILL)
    try expect(subscriber, 1)
    try expect(publisher, 1)
    #expect(subscriber.standardOutput.text == "one\ntwo\n")
  }

  // MARK: The tool's parent process

  @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
  func whenASubscriberIsInterrupted(signal: Int32, code: Int32) throws {
    let broker = try BrokerProcess()
    try broker.client().create("t")
    let subscriber = try broker.sluice("sub", "t")
    try broker.waitForSubscriptions(1, on: "t")
    let stop = Flag()
    try meanwhile {
      let client = try broker.client("producer")
      try client.openPublication("t", stream: 1)
      let line = String(repeating: "x", count: 99)
      // No more than the topic retains: a delayed subscriber would lose some, and report that.
      for _ in 0..<5_000 where !stop.isRaised {
        try client.publish([String](repeating: line, count: 100), stream: 1)
      }
    } _: {
      defer { stop.raise() }
      try subscriber.standardOutput.wait(bytes: 100_000)
      subscriber.signal(signal)
      let exit = try subscriber.waitForExit()
      #expect(exit == .code(code), "\(subscriber.standardError.text)")
    }
    // Only whole lines were printed, and the broker has removed the subscription.
    #expect(subscriber.standardOutput.count % 100 == 0)
    #expect(subscriber.standardError.text == "")
    try broker.waitForSubscriptions(0, on: "t")
  }

  @Test func whenAPublisherIsInterrupted() throws {
    let broker = try BrokerProcess()
    try broker.client().create("t")
    let publisher = try broker.sluice("pub", "t", input: .open)
    try publisher.write(Array("one\ntwo\nthr".utf8))
    try eventually("two records") { try broker.show("t").summary.nextOffset == 2 }
    publisher.signal(SIGINT)
    #expect(try publisher.waitForExit() == .code(130))
    try eventually("it is freed") { try broker.show("t").summary.publications == 0 }
    let info = try broker.show("t")
    #expect(info.summary.ending == nil)
    #expect(info.summary.nextOffset == 2)
  }

  @Test func whenItsReaderGoesAway() throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll((0..<5000).map { "\($0)" }, to: "t")
    let tool = try BuiltProduct.path("sluice")
    let pipe = try ChildProcess(
      "/bin/bash", ["-c", "\(tool) sub t | head -n 3; echo ${PIPESTATUS[0]}"],
      environment: ChildProcess.environment(server: broker.address))
    #expect(try pipe.waitForExit() == .code(0))
    #expect(pipe.standardOutput.text == "0\n1\n2\n0\n")
    #expect(pipe.standardError.text == "")
    try broker.waitForSubscriptions(0, on: "t")
  }

  @Test func whenItIsKilledOrStopped() throws {
    // Long enough that a slow machine doesn't have the same effect as SIGSTOP.
    let broker = try BrokerProcess("--keepalive", "10s")
    try broker.client().create("t")
    let killed = try broker.sluice("sub", "t")
    let stopped = try broker.sluice("sub", "t", "--no-reconnect")
    try broker.waitForSubscriptions(2, on: "t")
    killed.signal(SIGKILL)
    try broker.waitForSubscriptions(1, on: "t")
    stopped.signal(SIGSTOP)
    try broker.waitForSubscriptions(0, on: "t")
    stopped.signal(SIGCONT)
    try expect(stopped, 1)
  }

  // MARK: By itself

  @Test func whenItHasWhatWasAskedFor() throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll(["a", "b", "c"], to: "t")
    for (options, text) in [
      (["--count", "2"], "a\nb\n"), (["--until-live"], "a\nb\nc\n"),
      (["--from", "last:1", "--until-live"], "c\n"), (["--from", "new", "--for", "200ms"], ""),
      (["--from", "offset:1", "--count", "1", "--demand", "unlimited"], "b\n"),
    ] {
      let process = try ChildProcess.sluice(["sub", "t"] + options, server: broker.address)
      #expect(try process.waitForExit() == .code(0), "\(options): \(process.messages)")
      #expect(process.standardOutput.text == text, "\(options)")
      #expect(process.standardError.text == "", "\(options)")
    }
    try broker.waitForSubscriptions(0, on: "t")
    let ping = try broker.sluice("ping", "--count", "2", "--timeout", "2m")
    #expect(try ping.waitForExit() == .code(0))
    #expect(!ping.standardOutput.text.isEmpty)
  }

  @Test func whenTheOutputCantBeWritten() throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll(["a"], to: "t")
    try expect(broker.sluice("sub", "t", output: .file("/dev/full")), 1)
    try broker.waitForSubscriptions(0, on: "t")
  }

  @Test func topicsAreListedAndShown() throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll(["a", "b"], to: "one")
    try broker.client().create("two")
    let subscriber = try broker.sluice("sub", "two")
    try broker.waitForSubscriptions(1, on: "two")
    let list = try broker.sluice("topic", "list")
    #expect(try list.waitForExit() == .code(0))
    #expect(list.standardOutput.text.contains("one") && list.standardOutput.text.contains("two"))
    let show = try broker.sluice("topic", "show", "two")
    #expect(try show.waitForExit() == .code(0))
    #expect(show.standardOutput.text.contains("sluice[\(subscriber.pid)]"))
    let json = try broker.sluice("topic", "show", "one", "--json")
    #expect(try json.waitForExit() == .code(0))
    #expect(json.standardOutput.text.hasPrefix("{"))
  }
}
