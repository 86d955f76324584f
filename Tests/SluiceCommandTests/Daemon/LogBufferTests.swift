import Testing

@testable import SluiceDaemon

@Suite("Lines of the log that wait to be written")
struct LogBufferTests {
  /// Nine bytes.
  private func line(_ number: Int) -> String { "line 00\(number)" }

  @Test("what finds room comes out in its order, and nothing else is said")
  func order() {
    var buffer = LogBuffer(capacity: 100)
    buffer.put("one", "two")
    buffer.put("three", isAudit: true)
    #expect(!buffer.isEmpty)
    let written1 = buffer.write()
    #expect(written1 == "one\ntwo\nthree\n")
    #expect(buffer.isEmpty && buffer.droppedLines == 0)
    buffer.put("four")
    let written2 = buffer.write()
    #expect(written2 == "four\n")
  }

  @Test("a quarter is for the audit, whose lines find room when others don't any more")
  func reserve() {
    var buffer = LogBuffer(capacity: 100)
    for number in 0..<9 { buffer.put(line(number)) }
    #expect(buffer.used == 72)
    #expect(buffer.droppedLines == 1)
    for number in 0..<4 { buffer.put(line(number), isAudit: true) }
    #expect(buffer.used == 99)
    #expect(buffer.droppedLines == 2)
    let text = buffer.write()
    #expect(text.hasSuffix("line 002\n2 dropped, 1 of the audit\n"), "\(text)")
    #expect(buffer.isEmpty && buffer.droppedLines == 2)
  }

  @Test(
    "after the first that is dropped so are all, until half of the room is free; then their number is said once"
  )
  func hysteresis() {
    var buffer = LogBuffer(capacity: 100)
    for number in 0..<9 { buffer.put(line(number)) }
    let taken = buffer.take()
    func never(_ dropped: LogBuffer.Dropped) -> String {
      Issue.record("told too early: \(dropped)")
      return ""
    }
    buffer.wrote(18, notice: never)
    #expect(buffer.used == 54)
    buffer.put("x", "y")
    #expect(buffer.used == 54 && buffer.droppedLines == 3)
    buffer.wrote(9) { "\($0.lines)\n" }
    buffer.put("z")
    let rest = String(decoding: buffer.take(), as: UTF8.self)
    #expect(rest == "3\nz\n")
    #expect(taken.count == 72 && buffer.used == 45 + 4)
    buffer.wrote(49, notice: never)
    #expect(buffer.isEmpty)
  }

  @Test("a line that is longer than the room is taken when nothing else waits")
  func longLine() {
    var buffer = LogBuffer(capacity: 100)
    let long = String(repeating: "x", count: 200)
    buffer.put(long, "y")
    let written3 = buffer.write()
    #expect(written3 == long + "\n1 dropped, 0 of the audit\n")
    buffer.put("z", long)
    let written4 = buffer.write()
    #expect(written4 == "z\n1 dropped, 0 of the audit\n")
  }

  @Test("as much is written at once as stays together, but never a part of a line")
  func pieces() {
    func pieces(_ lengths: [Int]) -> [Int] {
      let bytes = lengths.flatMap { [UInt8](repeating: 120, count: $0 - 1) + [10] }
      var ends: [Int] = []
      while ends.last ?? 0 < bytes.count {
        ends.append(LogBuffer.endOfPiece(in: bytes, from: ends.last ?? 0))
      }
      return ends
    }
    let size = LogBuffer.pieceSize
    #expect(pieces([1]) == [1])
    #expect(pieces([100, size - 100]) == [size])
    #expect(pieces([100, size - 100, 1]) == [size, size + 1])
    #expect(pieces([100, size - 99, 1]) == [100, size + 2])
    #expect(pieces([3 * size, 10, 20]) == [3 * size, 3 * size + 30])
    #expect(pieces([size + 1, size + 2]) == [size + 1, 2 * size + 3])
  }
}

extension LogBuffer {
  fileprivate mutating func put(_ lines: String..., isAudit: Bool = false) {
    for line in lines { add(line + "\n", isAudit: isAudit) }
  }

  /// All waiting lines, as if written at once.
  fileprivate mutating func write() -> String {
    var text = ""
    while true {
      let bytes = take()
      if bytes.isEmpty { return text }
      text += String(decoding: bytes, as: UTF8.self)
      wrote(bytes.count) { "\($0.lines) dropped, \($0.audits) of the audit\n" }
    }
  }
}
