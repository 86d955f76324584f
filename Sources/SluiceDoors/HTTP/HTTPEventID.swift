/// The ID of an event of a topic's record: `EPOCH-OFFSET`, such as `1kx0ab-42`. The epoch is in the digits and small letters of base 36; a recreated topic has
/// another one. The ID of the event of an epoch's end is `EPOCH-end`.
struct HTTPEventID: Hashable {
  private static let radix = 36

  /// Nil for the offset alone, as the ids of earlier versions were.
  var epoch: UInt64?
  var offset: UInt64

  /// Replaces the offset in the ID of the event of the topic's end; in earlier versions it was the whole ID.
  static let end = "end"

  /// The position after all records of an epoch.
  static func end(of epoch: UInt64) -> HTTPEventID { HTTPEventID(epoch: epoch, offset: .max - 1) }

  /// The part before the offset.
  static func prefix(_ epoch: UInt64) -> [UInt8] { Array("\(String(epoch, radix: radix))-".utf8) }
}

extension HTTPEventID {
  /// Nil for text that isn't an ID, and for an ID that no offset can follow.
  init?(_ text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), let last = parts.last,
      last.allSatisfy({ (0x30...0x39).contains($0) }), let offset = UInt64(Substring(last)), offset < .max
    else { return nil }
    guard parts.count == 2 else {
      self.init(epoch: nil, offset: offset)
      return
    }
    guard let epoch = Self.epoch(parts[0]) else { return nil }
    self.init(epoch: epoch, offset: offset)
  }

  /// The epoch that has ended according to such an ID; nil for other texts.
  static func ended(_ text: String) -> UInt64? {
    let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].elementsEqual(end.utf8) else { return nil }
    return epoch(parts[0])
  }

  private static func epoch(_ text: Substring.UTF8View) -> UInt64? {
    guard text.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }),
      let epoch = UInt64(Substring(text), radix: radix), epoch > 0
    else { return nil }
    return epoch
  }
}
