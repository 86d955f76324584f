import SluiceWire

/// The start of a subscription, as requested with the user property `sluice-from` of SUBSCRIBE.
///
/// `new`, `earliest`, `last:COUNT`, `offset:OFFSET`, `time:MILLISECONDS` since 1970, or `time:2026-01-31T12:00:00Z`.
package enum StartPosition {
  package static let name = "sluice-from"

  /// A SUBSCRIBE has one start, which applies to all its filters.
  static let repeated = MQTTError(
    .implementationSpecific, "\(name) comes twice; send a SUBSCRIBE for each start")

  /// - Throws: ``MQTTReason/implementationSpecific`` for another text.
  package static func parse(_ text: String) throws(MQTTError) -> Subscribe.Start {
    switch text {
    case "new": return .new
    case "earliest": return .earliest
    default: break
    }
    let parts = text.split(separator: ":", maxSplits: 1)
    if parts.count == 2 {
      switch parts[0] {
      case "last": if let count = UInt64(parts[1]) { return .last(count) }
      case "offset": if let offset = UInt64(parts[1]) { return .offset(offset) }
      case "time": if let time = Int64(parts[1]) ?? milliseconds(parts[1]) { return .time(time) }
      default: break
      }
    }
    throw MQTTError(
      .implementationSpecific,
      "\(name) is \"\(text.prefix(64))\"; it must be new, earliest, last:COUNT, offset:OFFSET or time:TIME")
  }

  /// The time of a date such as `2026-01-31T12:00:00Z`, in milliseconds since 1970.
  private static func milliseconds(_ text: Substring) -> Int64? {
    let bytes = Array(text.utf8)
    guard bytes.count == 20, bytes[4] == 0x2D, bytes[7] == 0x2D, bytes[10] == 0x54, bytes[13] == 0x3A,
      bytes[16] == 0x3A, bytes[19] == 0x5A
    else { return nil }
    func number(_ range: Range<Int>) -> Int64? {
      guard bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      return bytes[range].reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
      let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
      (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61
    else { return nil }
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let shifted = month > 2 ? year : year - 1
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000
  }
}
