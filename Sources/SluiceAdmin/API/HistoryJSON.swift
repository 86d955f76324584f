import SluiceBroker
import SluiceCommand

/// Charts and problems in the API.
enum HistoryJSON {
  /// Values are null if there was no sample. Times are milliseconds since 1970.
  static func object(_ chart: History.Chart, of topic: String?, in range: Range<Int64>) -> JSON {
    [
      "topic": topic.map { .text($0) }, "from": .number(range.lowerBound), "to": .number(range.upperBound),
      "start": .number(chart.start), "stepSeconds": .number(chart.step / 1000),
      "series": .object(chart.values.map { ($0.name, .array($0.values.map(value))) }),
    ]
  }

  private static func value(_ value: Float?) -> JSON {
    guard let value else { return .null }
    // Rates have two decimals, whole numbers none.
    return value == value.rounded() && abs(value) < 9e15
      ? .notation(String(Int64(value))) : .number(Double(value), decimals: 2)
  }

  /// The size and the limits of the history, for operators.
  static func facts(_ history: History) -> JSON {
    [
      "topics": .array(history.topicNames.map { .text($0) }), "bytes": .exact(history.bytes),
      "resolutions": .array(
        history.resolutions.map {
          ["stepSeconds": .number($0.bucket / 1000), "spanSeconds": .number($0.span / 1000)]
        }),
    ]
  }
}

enum ProblemJSON {
  static func object(_ problem: Problem) -> JSON {
    let link =
      switch problem.place {
      case .broker, .account: "#/"
      case .storage: "#/storage"
      case .connections: "#/connections"
      case .cluster, .node: "#/cluster"
      case .topic(let name): "#/topics/\(escaped(name))"
      case .consumer(let name, let topic): "#/topics/\(escaped(topic))/consumers/\(escaped(name))"
      case .connection(let id, _): "#/connections/\(id)"
      }
    return [
      "kind": .text(problem.kind.rawValue), "severity": .text(problem.severity.rawValue),
      "sentence": .text(problem.sentence), "remedy": problem.remedy.map { .text($0) },
      "since": .number(problem.since), "link": .text(link),
      "topic": problem.place.topic.map { .text($0) }, "consumer": problem.place.consumer.map { .text($0) },
      "connection": problem.place.connection.map { .exact($0) },
    ]
  }

  static func object(_ kind: ProblemKind) -> JSON {
    [
      "kind": .text(kind.kind.rawValue), "severity": .text(kind.severity.rawValue),
      "count": .exact(kind.count), "since": .number(kind.since), "sentence": .text(kind.sentence),
    ]
  }

  /// The name as a component of a URL.
  private static func escaped(_ name: String) -> String {
    name.utf8.reduce(into: "") { text, byte in
      let scalar = Unicode.Scalar(byte)
      let isPlain =
        (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5A) || (byte >= 0x61 && byte <= 0x7A)
        || "-._~".unicodeScalars.contains(scalar)
      if isPlain {
        text.unicodeScalars.append(scalar)
      } else {
        let hex = String(byte, radix: 16, uppercase: true)
        text += "%" + (hex.count < 2 ? "0" : "") + hex
      }
    }
  }
}
