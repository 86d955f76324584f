/// A case of the Autobahn test suite's groups 1 to 7, with the behaviour that RFC 6455 requires of a server.
struct ConformanceCase: CustomStringConvertible, Sendable {
  /// How the suite splits its bytes.
  enum Cut: Sendable {
    case frames
    case bytes(Int)
  }

  /// As in the suite.
  var number: String
  var sends: [[UInt8]]
  var sees: [Seen]
  var cut = Cut.frames

  init(_ number: String, _ sends: [[UInt8]], _ sees: [Seen], _ cut: Cut = .frames) {
    self.number = number
    self.sends = sends
    self.sees = sees
    self.cut = cut
  }

  var description: String { number }

  var chunks: [[UInt8]] {
    switch cut {
    case .frames: return sends
    case .bytes(let count):
      let all = sends.flatMap { $0 }
      return stride(from: 0, to: all.count, by: count).map { Array(all[$0..<min($0 + count, all.count)]) }
    }
  }
}

private let goodbye = closeFrame(1000)
private let normal: [Seen] = [.close(1000), .end]
private let violation: [Seen] = [.close(1002), .end]
private let badText: [Seen] = [.close(1007), .end]
private let one = ConformanceCase.Cut.bytes(1)

extension ConformanceCase {
  static let all: [ConformanceCase] =
    framing + pings + reservedBits + reservedOpcodes + fragmentation + UTF8Cases.all + closing + closeCodes

  // MARK: 1 Framing

  static let framing: [ConformanceCase] = {
    let lengths = [0, 125, 126, 127, 128, 65535, 65536, 65536]
    return lengths.enumerated().flatMap { index, length in
      let cut = index == 7 ? Cut.bytes(997) : .frames
      let text = [UInt8](repeating: UInt8(ascii: "*"), count: length)
      let binary = [UInt8](repeating: 0xFE, count: length)
      return [
        ConformanceCase("1.1.\(index + 1)", [frame(1, text), goodbye], [.text(text)] + normal, cut),
        ConformanceCase("1.2.\(index + 1)", [frame(2, binary), goodbye], [.binary(binary)] + normal, cut),
      ]
    }
  }()

  // MARK: 2 Pings and pongs

  static let pings: [ConformanceCase] = {
    let binary: [UInt8] = [0x00, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0x00, 0xFF]
    let longest = [UInt8](repeating: 0xFE, count: 125)
    let ten = (0..<10).map { "payload-\($0)" }
    return [
      ConformanceCase("2.1", [frame(9), goodbye], [.pong([])] + normal),
      ConformanceCase("2.2", [frame(9, "Hello, world!"), goodbye], [.pong("Hello, world!")] + normal),
      ConformanceCase("2.3", [frame(9, binary), goodbye], [.pong(binary)] + normal),
      ConformanceCase("2.4", [frame(9, longest), goodbye], [.pong(longest)] + normal),
      ConformanceCase("2.5", [frame(9, longest + [0xFE]), goodbye], violation),
      ConformanceCase("2.6", [frame(9, longest), goodbye], [.pong(longest)] + normal, one),
      ConformanceCase("2.7", [frame(10), goodbye], normal),
      ConformanceCase("2.8", [frame(10, "unsolicited"), goodbye], normal),
      ConformanceCase(
        "2.9", [frame(10, "unsolicited"), frame(9, "ping"), goodbye], [.pong("ping")] + normal),
      ConformanceCase("2.10", ten.map { frame(9, $0) } + [goodbye], ten.map { .pong($0) } + normal),
      ConformanceCase("2.11", ten.map { frame(9, $0) } + [goodbye], ten.map { .pong($0) } + normal, one),
    ]
  }()

  // MARK: 3 Reserved bits

  static let reservedBits: [ConformanceCase] = {
    let hello = frame(1, "Hello, world!")
    func behindHello(_ number: String, _ rsv: UInt8, _ cut: Cut) -> ConformanceCase {
      let sends = [hello, frame(1, "Hello, world!", rsv: rsv), frame(9)]
      return ConformanceCase(number, sends, [.text("Hello, world!")] + violation, cut)
    }
    return [
      ConformanceCase("3.1", [frame(1, "Hello, world!", rsv: 1)], violation),
      behindHello("3.2", 2, .bytes(1000)),
      behindHello("3.3", 3, .frames),
      behindHello("3.4", 4, one),
      ConformanceCase("3.5", [frame(2, [UInt8](repeating: 0xFF, count: 8), rsv: 5)], violation),
      ConformanceCase("3.6", [frame(9, "Hello, world!", rsv: 6)], violation),
      ConformanceCase("3.7", [frame(8, [], rsv: 7)], violation),
    ]
  }()

  // MARK: 4 Opcodes

  static let reservedOpcodes: [ConformanceCase] = [("4.1", 3 as UInt8), ("4.2", 11)].flatMap { group, first in
    (0..<5 as Range<UInt8>).map { index in
      let payload = index == 0 || index == 2 ? "" : "reserved opcode payload"
      let bad = frame(first + index, payload)
      let number = "\(group).\(index + 1)"
      if index < 2 { return ConformanceCase(number, [bad], violation) }
      let sends = [frame(1, "Hello, world!"), bad, frame(9)]
      let cut = index == 4 ? one : .frames
      return ConformanceCase(number, sends, [.text("Hello, world!")] + violation, cut)
    }
  }

  // MARK: 5 Fragmentation

  static let fragmentation: [ConformanceCase] = {
    let (first, second) = (frame(1, "fragment1", fin: false), frame(0, "fragment2"))
    let both: [Seen] = [.text("fragment1fragment2")]
    let ping = frame(9, "ping")
    func all(_ start: Int, _ sends: [[UInt8]], _ sees: [Seen]) -> [ConformanceCase] {
      [Cut.bytes(1000), .frames, one].enumerated().map { index, cut in
        ConformanceCase("5.\(start + index)", sends, sees, cut)
      }
    }
    func stray(_ fin: Bool) -> [[UInt8]] {
      [frame(0, "non-continuation payload", fin: fin), frame(1, "Hello, world!")]
    }
    func repeated(_ fin: Bool) -> [[UInt8]] {
      (0..<2).flatMap { _ in [frame(0, "fragment1", fin: fin), frame(1, "fragment2", fin: false), second] }
    }
    let five = [
      frame(1, "fragment1", fin: false), frame(0, "fragment2", fin: false), frame(9, "pongme 1"),
      frame(0, "fragment3", fin: false), frame(0, "fragment4", fin: false), frame(9, "pongme 2"),
      frame(0, "fragment5"), goodbye,
    ]
    let fiveSeen: [Seen] =
      [.pong("pongme 1"), .pong("pongme 2"), .text("fragment1fragment2fragment3fragment4fragment5")] + normal
    return [
      ConformanceCase("5.1", [frame(9, "fragment1", fin: false), second], violation),
      ConformanceCase("5.2", [frame(10, "fragment1", fin: false), second], violation),
    ]
      + all(3, [first, second, goodbye], both + normal)
      // The case with all frames in one chunk is played frame by frame, since an echo server has a choice there.
      + all(6, [first, ping, second, goodbye], [.pong("ping")] + both + normal).map {
        var each = $0
        if each.number == "5.6" { each.cut = .frames }
        return each
      }
      + all(9, stray(true), violation) + all(12, stray(false), violation)
      + [
        ConformanceCase(
          "5.15", [first, second, frame(0, "fragment3", fin: false), frame(1, "fragment4")], both + violation),
        ConformanceCase("5.16", repeated(false), violation),
        ConformanceCase("5.17", repeated(true), violation),
        ConformanceCase("5.18", [first, frame(1, "fragment2")], violation),
        ConformanceCase("5.19", five, fiveSeen),
        ConformanceCase("5.20", five, fiveSeen, one),
      ]
  }()

  // MARK: 7 Close handling

  static let closing: [ConformanceCase] = {
    let hello = frame(1, "Hello World!")
    let large = [UInt8](repeating: UInt8(ascii: "B"), count: 256 << 10)
    let long = [UInt8](repeating: UInt8(ascii: "*"), count: 123)
    return [
      ConformanceCase("7.1.1", [hello, goodbye], [.text("Hello World!")] + normal),
      ConformanceCase("7.1.2", [goodbye, goodbye], normal),
      ConformanceCase("7.1.3", [goodbye, frame(9)], normal),
      ConformanceCase("7.1.4", [goodbye, hello], normal),
      ConformanceCase("7.1.5", [frame(1, "fragment1", fin: false), goodbye, frame(0, "fragment2")], normal),
      ConformanceCase(
        "7.1.6", [frame(1, large), hello, goodbye, frame(9)],
        [.text(large), .text("Hello World!")] + normal),
      ConformanceCase("7.3.1", [frame(8)], [.close(1005), .end]),
      ConformanceCase("7.3.2", [frame(8, "a")], violation),
      ConformanceCase("7.3.3", [goodbye], normal),
      ConformanceCase("7.3.4", [closeFrame(1000, Array("Hello World!".utf8))], normal),
      ConformanceCase("7.3.5", [closeFrame(1000, long)], normal),
      ConformanceCase("7.3.6", [closeFrame(1000, long + long.prefix(1))], violation),
      ConformanceCase("7.5.1", [closeFrame(1000, UTF8Cases.surrogateInText)], badText),
    ]
  }()

  static let closeCodes: [ConformanceCase] = {
    let valid: [UInt16] = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999]
    let invalid: [UInt16] = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999]
    let undefined: [UInt16] = [5000, 65535]
    return valid.enumerated().map {
      ConformanceCase("7.7.\($0.offset + 1)", [closeFrame($0.element)], [.close($0.element), .end])
    }
      + invalid.enumerated().map {
        ConformanceCase("7.9.\($0.offset + 1)", [closeFrame($0.element)], violation)
      }
      + undefined.enumerated().map {
        ConformanceCase("7.13.\($0.offset + 1)", [closeFrame($0.element)], violation)
      }
  }()
}
