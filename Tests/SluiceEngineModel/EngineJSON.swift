import Foundation

/// The engine's JSON replies in its servers' format. The same value gives the same bytes, so that a seed plays the same story.
enum EngineJSON {
  static func text(of value: some Encodable) -> String? {
    let encoder = JSONEncoder()
    // With an escape for each slash, the length of a Base64 payload would depend on the order of its contents.
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
  }
}
