import TestSupport

/// Group 6: valid and invalid UTF-8.
enum UTF8Cases {
  /// κόσμε, a surrogate, "edited".
  static let surrogateInText = [UInt8](hex: "cebae1bdb9cf83cebcceb5 eda080 656469746564")

  private static let kosme = [UInt8](hex: "cebae1bdb9cf83cebcceb5")
  private static let goodbye = closeFrame(1000)
  private static let bad: [Seen] = [.close(1007), .end]
  private static func good(_ text: [UInt8]) -> [Seen] { [.text(text), .close(1000), .end] }

  static let all: [ConformanceCase] = fragments + early + prefixes + sequences

  private static let fragments: [ConformanceCase] = {
    let hello = Array("Hello-µ@ßöäüàá-UTF-8!!".utf8)
    let empty = [frame(1, [], fin: false), frame(0, [], fin: false), frame(0, [])]
    let middle = [frame(1, [], fin: false), frame(0, "middle frame payload", fin: false), frame(0, [])]
    return [
      ConformanceCase("6.1.1", [frame(1), goodbye], good([])),
      ConformanceCase("6.1.2", empty + [goodbye], good([])),
      ConformanceCase("6.1.3", middle + [goodbye], good(Array("middle frame payload".utf8))),
      ConformanceCase("6.2.1", [frame(1, hello), goodbye], good(hello)),
      ConformanceCase(
        "6.2.2", [frame(1, Array(hello[..<12]), fin: false), frame(0, Array(hello[12...])), goodbye],
        good(hello)),
      ConformanceCase("6.2.3", single(hello) + [goodbye], good(hello)),
      ConformanceCase("6.2.4", single(kosme) + [goodbye], good(kosme)),
      ConformanceCase("6.3.1", [frame(1, surrogateInText), goodbye], bad),
      ConformanceCase("6.3.2", single(surrogateInText) + [goodbye], bad),
    ]
  }()

  /// A frame for each byte.
  private static func single(_ text: [UInt8]) -> [[UInt8]] {
    text.enumerated().map { index, byte in
      frame(index == 0 ? 1 : 0, [byte], fin: index == text.count - 1)
    }
  }

  /// The error must be detected before the message is complete: no bytes follow the invalid ones.
  private static let early: [ConformanceCase] = {
    let tooLarge = [UInt8](hex: "f490 8080")
    let whole = frame(1, kosme + tooLarge + Array("edited".utf8))
    let head = whole.count - tooLarge.count - 6
    return [
      ConformanceCase("6.4.1", [frame(1, kosme, fin: false), frame(0, tooLarge, fin: false)], bad),
      ConformanceCase(
        "6.4.2", [frame(1, kosme + tooLarge.prefix(1), fin: false), frame(0, [0x90], fin: false)], bad),
      ConformanceCase("6.4.3", [Array(whole[..<head]), Array(whole[head..<(head + 4)])], bad),
      ConformanceCase("6.4.4", [Array(whole[..<(head + 1)]), Array(whole[(head + 1)..<(head + 2)])], bad),
    ]
  }()

  private static let prefixes: [ConformanceCase] = {
    let valid: Set = [2, 5, 7, 9, 11]
    let hosts = ["", "a", "\u{fffd}", "κόσμε", "\u{10ffff}"].map { Array("Hello-\($0)".utf8) }
    return (1...11).map { count in
      let text = Array(kosme.prefix(count))
      return ConformanceCase(
        "6.6.\(count)", [frame(1, text), goodbye], valid.contains(count) ? good(text) : bad)
    }
      + hosts.enumerated().map {
        ConformanceCase("6.5.\($0.offset + 1)", [frame(1, $0.element), goodbye], good($0.element))
      }
  }()

  /// Groups 6.7 to 6.23: the bytes of a text, and whether they are UTF-8.
  private static let sequences: [ConformanceCase] = groups.flatMap { group, isValid, texts in
    texts.split(separator: " ").enumerated().map { index, hex in
      let text = [UInt8](hex: String(hex))
      let sees = isValid ? good(text) : bad
      return ConformanceCase("6.\(group).\(index + 1)", [frame(1, text), goodbye], sees)
    }
  }

  /// All bytes of a range in hexadecimal, each followed by the same text.
  private static func run(_ bytes: ClosedRange<UInt8>, between: String = "20") -> String {
    bytes.map { String($0, radix: 16) + between }.joined()
  }

  /// The last two scalars of each plane.
  private static let nonCharacters = (0...16 as ClosedRange<UInt32>).flatMap { plane in
    [0xFFFE, 0xFFFF].compactMap { Unicode.Scalar(plane << 16 | $0) }
  }.map { scalar in String(scalar).utf8.map { String($0, radix: 16) }.joined() }.joined(separator: " ")

  private static let groups: [(Int, Bool, String)] = [
    // The first sequence of each length.
    (7, true, "00 c280 e0a080 f0908080"),
    (8, false, "f888808080 fc8480808080"),
    // The last of each length.
    (9, true, "7f dfbf efbfbf f48fbfbf"),
    (10, false, "f7bfbfbf fbbfbfbfbf fdbfbfbfbfbf"),
    // Other boundaries.
    (11, true, "ed9fbf ee8080 efbfbd f48fbfbf"),
    (1105, false, "f4908080"),
    // Continuation bytes without a start.
    (12, false, "80 bf 80bf 80bf80 80bf80bf 80bf80bf80 80bf80bf80bf \(run(0x80...0xBF, between: ""))"),
    // Starts without continuation bytes, each followed by a space.
    (
      13, false,
      [0xC0...0xDF, 0xE0...0xEF, 0xF0...0xF7, 0xF8...0xFB, 0xFC...0xFD].map { run($0) }.joined(separator: " ")
    ),
    // The last continuation byte is missing.
    (14, false, "c0 e080 f08080 f8808080 fc80808080 df efbf f7bfbf fbbfbfbf fdbfbfbfbf"),
    (15, false, "c0e080f08080f8808080fc80808080dfefbff7bfbffbbfbfbffdbfbfbfbf"),
    // Bytes that never occur.
    (16, false, "fe ff fefeffff"),
    // Overlong forms: of a slash, the largest, of U+0000.
    (17, false, "c0af e080af f08080af f8808080af fc80808080af"),
    (18, false, "c1bf e09fbf f08fbfbf f887bfbfbf fc83bfbfbfbf"),
    (19, false, "c080 e08080 f0808080 f880808080 fc8080808080"),
    // Surrogates, alone and in pairs.
    (20, false, "eda080 edadbf edae80 edafbf edb080 edbe80 edbfbf"),
    (
      21, false,
      """
      eda080edb080 eda080edbfbf edadbfedb080 edadbfedbfbf edae80edb080 edae80edbfbf edafbfedb080 edafbfedbfbf
      """
    ),
    // Non-characters are characters here; so are the specials.
    (22, true, nonCharacters),
    (23, true, "efbfb9 efbfba efbfbb efbfbc efbfbd efbfbe efbfbf"),
  ]
}
