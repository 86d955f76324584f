import SluiceCommand

/// The ceiling of memory as a setting: bytes, or a percentage of the machine's memory.
enum MemorySetting: Hashable {
  case bytes(UInt64)
  case percent(UInt64)

  /// Reads `512MiB`, `75%` or `0`.
  static func parse(_ text: String) throws(ValueError) -> MemorySetting {
    if text.hasSuffix("%") {
      guard let percent = UInt64(text.dropLast()), (1...100).contains(percent) else {
        throw ValueError("'\(text)' isn't in 1% to 100%")
      }
      return .percent(percent)
    }
    return .bytes(try ByteSize.parse(text))
  }

  var text: String {
    switch self {
    case .bytes(let bytes): ByteSize.exact(bytes)
    case .percent(let percent): "\(percent)%"
    }
  }

  /// In bytes; 0 for no ceiling, and for a percentage if the machine's memory isn't known.
  func bytes(of available: UInt64?) -> Int {
    switch self {
    case .bytes(let bytes): Int(clamping: bytes)
    case .percent(let percent):
      Int(clamping: available.map { max($0 / 100 * percent + $0 % 100 * percent / 100, 1 << 20) } ?? 0)
    }
  }
}
