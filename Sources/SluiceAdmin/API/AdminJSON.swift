import SluiceCommand

/// How numbers and times are written in the API's JSON.
///
/// - A number above 2⁵³, which JavaScript would round, is a string.
/// - No limit, and any number, is null.
/// - Durations are seconds, with milliseconds behind the point. Points in time are milliseconds since 1970.
enum AdminJSON {
  private static let exact: UInt64 = 1 << 53

  static func number(_ value: UInt64) -> String {
    value <= exact ? String(value) : "\"\(value)\""
  }

  /// - Parameter value: all ones for no limit.
  static func limit(_ value: UInt64) -> String {
    value == .max ? "null" : number(value)
  }

  static func seconds(milliseconds: UInt64) -> String {
    let rest = String(milliseconds % 1000)
    return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest)"
  }

  static func array(_ elements: some Sequence<String>) -> String {
    "[\(elements.joined(separator: ","))]"
  }
}

extension JSONObject {
  mutating func add(number name: String, _ value: UInt64) { add(name, json: AdminJSON.number(value)) }

  mutating func add(number name: String, _ value: Int) {
    add(name, json: value < 0 ? String(value) : AdminJSON.number(UInt64(value)))
  }

  /// Null for nil, and for all ones.
  mutating func add(limit name: String, _ value: UInt64?) {
    add(name, json: AdminJSON.limit(value ?? .max))
  }

  mutating func add(seconds name: String, milliseconds: UInt64) {
    add(name, json: AdminJSON.seconds(milliseconds: milliseconds))
  }
}
