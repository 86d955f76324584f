import SluiceWire

/// A topic and its settings, without its records, as a line of text: what `sluice topic list --settings` prints, and `sluice topic create --file` reads.
///
///     {"topic":"orders.eu","settings":{"replay-records":"everything","storage":"durable"}}
///
/// Settings have the names and values of their options. Missing settings are the broker's defaults.
public struct TopicDefinition: Hashable, Sendable {
  public var topic: String
  public var settings: TopicSettings

  public init(topic: String, settings: TopicSettings) {
    self.topic = topic
    self.settings = settings
  }

  public var line: String {
    let json: JSON = ["topic": .text(topic), "settings": TopicOption.json(settings)]
    return json.line
  }

  /// Reads a line.
  ///
  /// - Throws: ``ValueError`` if the line isn't an object with a topic and its settings.
  public init(_ bytes: [UInt8]) throws(ValueError) {
    guard let members = try JSONReader.read(bytes).object else { throw ValueError("it isn't an object") }
    guard let topic = members["topic"]?.text else { throw ValueError("it has no topic") }
    do throws(WireError) {
      try TopicName.validate(topic)
    } catch {
      throw ValueError(error.message)
    }
    // The output of sluice topic list --json has no settings, and must not create topics with the defaults.
    guard let stated = members["settings"]?.object else {
      throw ValueError("topic \(topic) has no settings; sluice topic list --settings prints them")
    }
    self.init(topic: topic, settings: try TopicOption.settings(stated))
  }

  /// Reads lines, and skips empty ones.
  ///
  /// - Throws: ``ValueError`` that names the invalid line. A line with other settings for a topic than an earlier line is invalid.
  public static func read(_ bytes: [UInt8]) throws(ValueError) -> [TopicDefinition] {
    var definitions: [TopicDefinition] = []
    var lineOf: [String: (number: Int, settings: TopicSettings)] = [:]
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (number, line) in lines.enumerated() {
      guard line.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) else { continue }
      do throws(ValueError) {
        let definition = try TopicDefinition(Array(line))
        if let earlier = lineOf[definition.topic] {
          guard earlier.settings != definition.settings else { continue }
          throw ValueError("topic \(definition.topic) has other settings on line \(earlier.number)")
        }
        lineOf[definition.topic] = (number + 1, definition.settings)
        definitions.append(definition)
      } catch {
        throw ValueError("line \(number + 1): \(error)")
      }
    }
    return definitions
  }
}
