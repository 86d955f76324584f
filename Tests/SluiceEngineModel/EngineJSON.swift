import Foundation

/// What the engine answers as JSON: as its servers write it, and the same bytes for the same value, so that a seed plays the same story.
enum EngineJSON {
  static func text(of value: some Encodable) -> String? {
    let encoder = JSONEncoder()
    // With an escape for each slash, the length of a payload in Base64 would depend on the order of what is in it.
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
  }
}
