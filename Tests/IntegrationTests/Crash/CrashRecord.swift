/// The record that a producer publishes with one of its sequences. Its bytes are derived from the two, so that every reader can verify them.
struct CrashRecord: Hashable, CustomStringConvertible {
  var producer: UInt64
  var sequence: UInt64

  /// Such as "7:12:", followed by up to 2,000 bytes, rarely by 60,000.
  var payload: [UInt8] {
    var mixed = producer &* 0x9E37_79B9_7F4A_7C15 ^ sequence &* 0xBF58_476D_1CE4_E5B9
    mixed ^= mixed >> 31
    let length = mixed % 97 == 0 ? 60_000 : Int(mixed % 2_000)
    let filler = UInt8(truncatingIfNeeded: mixed >> 40)
    return Array("\(producer):\(sequence):".utf8) + [UInt8](repeating: filler, count: length)
  }

  init(producer: UInt64, sequence: UInt64) {
    self.producer = producer
    self.sequence = sequence
  }

  /// Nil if no producer publishes these bytes.
  init?(_ payload: [UInt8]) {
    let parts = payload.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let producer = UInt64(String(decoding: parts[0], as: UTF8.self)),
      let sequence = UInt64(String(decoding: parts[1], as: UTF8.self))
    else { return nil }
    self.init(producer: producer, sequence: sequence)
    guard payload == self.payload else { return nil }
  }

  var description: String { "\(producer):\(sequence)" }
}
