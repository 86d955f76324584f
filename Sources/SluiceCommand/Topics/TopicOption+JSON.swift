import SluiceWire

// Settings as JSON: an object with the names and values that they have as options.
extension TopicOption {
  /// The settings that are stated, as an object of JSON.
  public static func json(_ settings: TopicSettings) -> JSON {
    .object(written(settings).map { ($0.name, .text($0.value)) })
  }

  /// Reads settings from the members of an object: texts, numbers, and true and false for on and off.
  ///
  /// - Throws: ``ValueError`` for a name that no setting has, and for a value that the setting can't have.
  public static func settings(_ members: [String: JSONContent]) throws(ValueError) -> TopicSettings {
    var settings = TopicSettings()
    for (name, content) in members.sorted(by: { $0.key < $1.key }) {
      switch content {
      case .text(let value), .number(let value): try read(name, value, into: &settings)
      case .flag(let value): try read(name, value ? "on" : "off", into: &settings)
      case .null, .array, .object: throw ValueError("\(name): a text or a number is expected")
      }
    }
    return settings
  }

  /// Reads the body of a request that states settings: `{"settings": {"replay-age": "48h"}}`.
  ///
  /// - Throws: ``ValueError`` for any other body.
  public static func settings(body: [UInt8]) throws(ValueError) -> TopicSettings {
    guard var members = try JSONReader.read(body).object else {
      throw ValueError("the body isn't an object of JSON")
    }
    guard let stated = members.removeValue(forKey: "settings")?.object else {
      throw ValueError(
        #"the body needs "settings", an object, like {"settings": {"replay-age": "48h"}}"#)
    }
    if let name = members.keys.min() {
      throw ValueError("the member '\(name)' isn't known; the body has only settings")
    }
    return try settings(stated)
  }
}
