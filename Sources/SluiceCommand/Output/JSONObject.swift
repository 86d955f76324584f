/// Builds an object of JSON, its members in the order in which they are added.
public struct JSONObject {
  private var members = ""

  public init() {}

  /// The object, without a line break.
  public var text: String { "{\(members)}" }

  public mutating func add(_ name: String, _ value: String) { append(name, JSONText.quoted(value)) }
  public mutating func add(_ name: String, _ value: Bool) { append(name, value ? "true" : "false") }
  public mutating func add(_ name: String, _ value: UInt64) { append(name, String(value)) }
  public mutating func add(_ name: String, _ value: Double, decimals: Int) {
    append(name, value.isFinite ? Magnitude.fixed(value, decimals: decimals) : "null")
  }
  /// Null for no value.
  public mutating func add(_ name: String, _ value: UInt64?) {
    append(name, value.map { String($0) } ?? "null")
  }
  public mutating func add(_ name: String, _ value: JSONObject) { append(name, value.text) }
  public mutating func add(_ name: String, _ values: [JSONObject]) {
    append(name, "[\(values.map(\.text).joined(separator: ","))]")
  }

  /// A value that is JSON already.
  public mutating func add(_ name: String, json: String) { append(name, json) }

  private mutating func append(_ name: String, _ value: String) {
    if !members.isEmpty { members += "," }
    members += "\(JSONText.quoted(name)):\(value)"
  }
}
