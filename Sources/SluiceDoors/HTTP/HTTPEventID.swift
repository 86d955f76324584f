/// The id of an event of a topic's record: `EPOCH-OFFSET`, such as `1kx0ab-42`. The epoch says which life of the topic has the offset, in the digits and
/// small letters of base 36; a topic that was made anew has another one.
struct HTTPEventID: Hashable {
  private static let radix = 36

  /// Nil for the offset alone, as the ids of earlier versions were.
  var epoch: UInt64?
  var offset: UInt64

  /// What stands in front of the offset.
  static func prefix(_ epoch: UInt64) -> [UInt8] { Array("\(String(epoch, radix: radix))-".utf8) }
}

extension HTTPEventID {
  /// Nil for a text that isn't an id, and for one behind which no offset comes.
  init?(_ text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), let last = parts.last,
      last.allSatisfy({ (0x30...0x39).contains($0) }), let offset = UInt64(Substring(last)), offset < .max
    else { return nil }
    guard parts.count == 2 else {
      self.init(epoch: nil, offset: offset)
      return
    }
    guard parts[0].allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }),
      let epoch = UInt64(Substring(parts[0]), radix: Self.radix), epoch > 0
    else { return nil }
    self.init(epoch: epoch, offset: offset)
  }
}
