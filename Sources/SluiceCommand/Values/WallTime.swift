import Glibc

/// Converts between milliseconds since 1970 and the notation of RFC 3339; without leap seconds.
public enum WallTime {
  private static let millisecondsPerDay: Int64 = 86_400_000

  /// Now, in milliseconds since 1970.
  public static var now: Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// "2026-02-03T04:05:06.789Z".
  public static func format(_ milliseconds: Int64) -> String {
    var day = milliseconds / millisecondsPerDay
    var rest = milliseconds % millisecondsPerDay
    if rest < 0 {
      rest += millisecondsPerDay
      day -= 1
    }
    let date = civil(fromDay: day)
    let clock = [(rest / 3_600_000, 2), (rest / 60_000 % 60, 2), (rest / 1000 % 60, 2), (rest % 1000, 3)]
      .map { padded($0.0, to: $0.1) }
    return "\(padded(date.year, to: 4))-\(padded(date.month, to: 2))-\(padded(date.day, to: 2))"
      + "T\(clock[0]):\(clock[1]):\(clock[2]).\(clock[3])Z"
  }

  /// Reads `2026-02-03T04:05:06.789+01:00`. The fraction may be left out, `T` may be a space or lower case, as may `Z`. A date
  /// alone is the beginning of its day in UTC.
  public static func parse(_ text: String) throws(ValueError) -> Int64 {
    var reader = DigitReader(text)
    guard let milliseconds = reader.readTime() else {
      throw ValueError("'\(text)' isn't a time; write it like 2026-02-03T04:05:06Z, or 2026-02-03")
    }
    return milliseconds
  }

  // Days are counted in years that begin in March, so that the leap day comes last, and in eras of 400 years, which are
  // all equally long.
  fileprivate static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  fileprivate static func civil(fromDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  private static func padded(_ number: Int64, to width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

private struct DigitReader {
  private var rest: Substring.UTF8View

  init(_ text: String) {
    rest = text[...].utf8
  }

  mutating func readTime() -> Int64? {
    guard let year = number(4), take("-"), let month = number(2), take("-"), let day = number(2) else {
      return nil
    }
    if rest.isEmpty { rest = "T00:00:00Z"[...].utf8 }
    guard take("T") || take("t") || take(" "),
      let hour = number(2), take(":"), let minute = number(2), take(":"), let second = number(2),
      (1...12).contains(month), day >= 1, hour < 24, minute < 60, second < 60,
      let fraction = fraction(), let offset = offset(), rest.isEmpty
    else { return nil }
    let days = WallTime.day(year: year, month: month, day: day)
    // A day that doesn't exist, like February 30, gives another date.
    guard WallTime.civil(fromDay: days) == (year, month, day) else { return nil }
    return (((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1000 + fraction
  }

  private mutating func take(_ letter: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: letter) else { return false }
    rest.removeFirst()
    return true
  }

  private mutating func digit() -> Int64? {
    guard let first = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return nil }
    rest.removeFirst()
    return Int64(first - UInt8(ascii: "0"))
  }

  private mutating func number(_ digits: Int) -> Int64? {
    var value: Int64 = 0
    for _ in 0..<digits {
      guard let digit = digit() else { return nil }
      value = value * 10 + digit
    }
    return value
  }

  /// Milliseconds; finer digits are cut off.
  private mutating func fraction() -> Int64? {
    guard take(".") else { return 0 }
    guard var value = digit() else { return nil }
    var digits = 1
    while let digit = digit() {
      if digits < 3 { value = value * 10 + digit }
      digits += 1
    }
    while digits < 3 {
      value *= 10
      digits += 1
    }
    return value
  }

  /// Minutes east of Greenwich.
  private mutating func offset() -> Int64? {
    if take("Z") || take("z") { return 0 }
    let sign: Int64
    if take("+") { sign = 1 } else if take("-") { sign = -1 } else { return nil }
    guard let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60 else {
      return nil
    }
    return sign * (hours * 60 + minutes)
  }
}
