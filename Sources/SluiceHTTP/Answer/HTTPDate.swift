import Glibc

/// The field `Date`, which a server with a clock sends with each answer (RFC 9110, 6.6.1).
package enum HTTPDate {
  /// - Parameter time: in milliseconds since 1970.
  package static func field(_ time: Int64) -> (String, String) { ("Date", text(time)) }

  /// A time with a resolution of a second, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
  ///
  /// - Parameter time: in milliseconds since 1970.
  static func text(_ time: Int64) -> String {
    var seconds = time_t(time / 1_000 - (time % 1_000 < 0 ? 1 : 0))
    var parts = unsafe tm()
    // Fails only for years beyond 32 bits, which can't be expressed in these milliseconds.
    _ = unsafe gmtime_r(&seconds, &parts)
    let (weekday, day, month, year) = unsafe (parts.tm_wday, parts.tm_mday, parts.tm_mon, parts.tm_year)
    let clock = unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec].map(twoDigits).joined(separator: ":")
    return "\(days[Int(weekday)]), \(twoDigits(day)) \(months[Int(month)]) \(Int(year) + 1_900) \(clock) GMT"
  }

  private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  private static func twoDigits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
