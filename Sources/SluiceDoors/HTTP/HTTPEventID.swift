/// The id of an event of a topic's record: `EPOCH-OFFSET`, such as `1kx0ab-42`. The epoch says which life of the topic has the offset, in the digits and
/// small letters of base 36; a topic that was made anew has another one. The id of the event of a life's end is `EPOCH-end`.
struct HTTPEventID: Hashable {
  private static let radix = 36

  /// Nil for the offset alone, as the ids of earlier versions were.
  var epoch: UInt64?
  var offset: UInt64

  /// What stands in the place of the offset in the id of the event of the topic's end, and was all of it in earlier versions.
  static let end = "end"

  /// The place behind all records of a life of the topic.
  static func end(of epoch: UInt64) -> HTTPEventID { HTTPEventID(epoch: epoch, offset: .max - 1) }

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
    guard let epoch = Self.epoch(parts[0]) else { return nil }
    self.init(epoch: epoch, offset: offset)
  }

  /// The life of the topic that has come to its end by such an id; nil for other texts.
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
