import Glibc
import SluiceWire
import TestSupport
import Testing

/// Files through `sluice pub` and `sluice sub`: the output equals the input, byte for byte.
@Suite(.onItsOwnThread) struct ToolPipeTests {
  @Test func aFileComesOutOfEverySubscriberByteForByte() throws {
    let directory = try TemporaryDirectory()
    let words = try Self.words(directory)
    let file = directory.file("words")
    try writeFile(file, words)
    let middle = words.count / 2
    let broker = try BrokerProcess()
    try broker.client().create("words")

    let demands = ["1", "7", "1000", "unlimited"]
    func subscribe(_ time: String) throws -> [(name: String, process: ChildProcess)] {
      try demands.map { demand in
        let name = "\(time).\(demand)"
        return (
          name,
          try broker.sluice("sub", "words", "--demand", demand, output: .file(directory.file(name)))
        )
      }
    }
    var subscribers = try subscribe("before")
    try broker.waitForSubscriptions(4, on: "words")
    let publisher = try broker.sluice("pub", "words", "--complete", input: .open)
    try publisher.write(Array(words[..<middle]))
    try eventually("records are there") { try broker.show("words").summary.nextOffset > 0 }
    subscribers += try subscribe("during")
    // Subscribers with unlimited demand may have received the first half by now.
    try broker.waitForSubscriptions(8, on: "words")
    try publisher.write(Array(words[middle...]))
    publisher.closeInput()
    #expect(try publisher.waitForExit(within: 600) == .code(0), "\(publisher.messages)")
    subscribers += try subscribe("after")

    for (name, process) in subscribers {
      #expect(
        try process.waitForExit(whileGrowing: directory.file(name)) == .code(0),
        "\(name): \(process.messages)")
      #expect(process.standardError.text == "", "\(name)")
      #expect(try filesAreEqual(file, directory.file(name)), "\(name)")
    }
    try broker.waitForSubscriptions(0, on: "words")
  }

  /// Uses a gigabyte if `SLUICE_TEST_GIGABYTE` is set.
  @Test func largeBinaryRecordsComeOutByteForByte() throws {
    let records = getenv("SLUICE_TEST_GIGABYTE") == nil ? 1024 : 16_384
    let directory = try TemporaryDirectory()
    let file = directory.file("frames")
    try Self.writeFrames(records, to: file)
    let broker = try BrokerProcess("--replay-bytes", "2GiB")
    try broker.client().create("frames")

    func subscribe(_ name: String, _ options: String...) throws -> (name: String, process: ChildProcess) {
      let process = try ChildProcess.sluice(
        ["sub", "frames", "--frames"] + options, server: broker.address,
        output: .file(directory.file(name)))
      return (name, process)
    }
    var subscribers = [
      try subscribe("window"), try subscribe("unlimited", "--demand", "unlimited"),
      try subscribe("ten", "--demand", "10"),
    ]
    try broker.waitForSubscriptions(3, on: "frames")
    let publisher = try broker.sluice("pub", "frames", "--frames", "--complete", input: .file(file))
    #expect(try publisher.waitForExit(within: 600) == .code(0), "\(publisher.messages)")
    subscribers.append(try subscribe("after"))
    for (name, process) in subscribers {
      #expect(
        try process.waitForExit(whileGrowing: directory.file(name)) == .code(0),
        "\(name): \(process.messages)")
      #expect(try filesAreEqual(file, directory.file(name)), "\(name)")
    }
  }

  @Test func anyBytesCanBeRecords() throws {
    let broker = try BrokerProcess()
    let bytes = [UInt8](0...255) + Array("\n\n\0\0".utf8)
    let whole = try broker.sluice("pub", "whole", "--delimiter", "none", "--complete", input: .bytes(bytes))
    #expect(try whole.waitForExit() == .code(0))
    let raw = try broker.sluice("sub", "whole", "--raw")
    #expect(try raw.waitForExit() == .code(0))
    #expect(raw.standardOutput.bytes == bytes)

    // An empty line is an empty record, and the last line may lack its newline.
    let lines = try broker.sluice("pub", "lines", "--complete", input: .bytes(Array("a\n\nb".utf8)))
    #expect(try lines.waitForExit() == .code(0))
    let printed = try broker.sluice("sub", "lines")
    #expect(try printed.waitForExit() == .code(0))
    #expect(printed.standardOutput.text == "a\n\nb\n")
    #expect(try broker.show("lines").summary.nextOffset == 3)

    let empty = try broker.sluice("pub", "empty", "--complete")
    #expect(try empty.waitForExit() == .code(0))
    let nothing = try broker.sluice("sub", "empty", "--frames")
    #expect(try nothing.waitForExit() == .code(0))
    #expect(nothing.standardOutput.count == 0)
  }

  @Test func aTopicIsCopiedByAPipe() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.openPublication("a", stream: 1)
    let payloads = (0..<500).map { index in [UInt8](repeating: UInt8(index % 256), count: index * 7) }
    try client.publish(payloads, stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    let tool = try BuiltProduct.path("sluice")
    let pipe = try ChildProcess(
      "/bin/bash",
      ["-o", "pipefail", "-c", "\(tool) sub a --until-live --frames | \(tool) pub b --frames --quiet"],
      environment: ChildProcess.environment(server: broker.address))
    #expect(try pipe.waitForExit() == .code(0), "\(pipe.messages)")
    try client.subscribe("b", stream: 2)
    try client.receiveRecords(500, stream: 2)
    #expect(client.subscriptions[2]!.payloads == payloads)
  }

  // MARK: Files

  /// Debian's list of American words, or the same number of lines if it isn't installed.
  private static func words(_ directory: TemporaryDirectory) throws -> [UInt8] {
    if let words = try? readFile("/usr/share/dict/words") { return words }
    return Array((0..<104_334).map { "word number \($0)\n" }.joined().utf8)
  }

  /// Records of 64 KiB of random bytes, each preceded by its length.
  private static func writeFrames(_ count: Int, to path: String) throws {
    var random = SeededRandom.printed()
    let size = 64 << 10
    var frame = [UInt8](repeating: 0, count: 4 + size)
    frame.withUnsafeMutableBytes {
      $0.storeBytes(of: UInt32(size).littleEndian, as: UInt32.self)
      for offset in stride(from: 4, to: 4 + size, by: 8) {
        $0.storeBytes(of: random.next(), toByteOffset: offset, as: UInt64.self)
      }
    }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    defer { close(descriptor) }
    for _ in 0..<count {
      // Make each record different in several places.
      frame.withUnsafeMutableBytes {
        for _ in 0..<64 {
          $0.storeBytes(
            of: random.next(), toByteOffset: 4 + Int.random(in: 0...(size - 8), using: &random),
            as: UInt64.self)
        }
      }
      guard write(descriptor, frame, frame.count) == frame.count else {
        throw TestFailure("write \(path): error \(errno)")
      }
    }
  }
}

extension ChildProcess {
  /// Waits for the exit as long as a file keeps growing: the time for many small records depends on the machine.
  fileprivate func waitForExit(whileGrowing path: String) throws -> Exit {
    var deadline = Deadline(in: Deadline.patience)
    var size: off_t = -1
    while currentExit == nil {
      var status = stat()
      stat(path, &status)
      if status.st_size != size {
        size = status.st_size
        deadline = Deadline(in: Deadline.patience)
      }
      try require(!deadline.isOver, "\(name) got stuck after \(size) bytes; \(messages)")
      pause(0.02)
    }
    return try waitForExit()
  }
}
