import SluiceWire

/// The format of metrics: lines of text, with comments that describe families.
enum MetricsFormat: Hashable, Sendable {
  /// The format that every collector can read.
  case prometheus
  /// For collectors that request it.
  case openMetrics

  /// - Parameter accept: the request's header; nil for none.
  init(accept: String?) {
    self = accept?.contains("application/openmetrics-text") == true ? .openMetrics : .prometheus
  }

  var contentType: String {
    switch self {
    case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
    case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
    }
  }
}

/// Writes metrics, one family after another: the samples of a family follow its description.
struct MetricsText {
  enum Kind: String {
    case counter
    case gauge
    case histogram
  }

  typealias Labels = KeyValuePairs<String, String>

  private let format: MetricsFormat
  private(set) var text = ""
  /// The name of the family's samples.
  private var name = ""

  init(_ format: MetricsFormat) {
    self.format = format
  }

  /// Begins a family.
  ///
  /// - Parameters:
  ///   - name: without the `_total` of counters; ends with the unit.
  ///   - unit: `seconds`, `bytes`; nil for plain counts.
  mutating func family(_ name: String, _ kind: Kind, unit: String? = nil, _ help: String) {
    self.name = kind == .counter ? "\(name)_total" : name
    let family = format == .openMetrics ? name : self.name
    text += "# HELP \(family) \(Self.escaped(help, quotes: format == .openMetrics))\n"
    text += "# TYPE \(family) \(kind.rawValue)\n"
    if format == .openMetrics, let unit { text += "# UNIT \(family) \(unit)\n" }
  }

  mutating func sample(_ value: UInt64, _ labels: Labels = [:]) { sample(name, labels, String(value)) }

  /// Infinity means no limit.
  mutating func sample(_ value: Double, _ labels: Labels = [:]) {
    sample(name, labels, Self.number(value))
  }

  /// A family with one sample.
  mutating func single(_ name: String, _ kind: Kind, unit: String? = nil, _ help: String, _ value: Double) {
    family(name, kind, unit: unit, help)
    sample(value)
  }

  /// A family with one sample that is a whole number.
  mutating func single(_ name: String, _ kind: Kind, unit: String? = nil, _ help: String, _ value: UInt64) {
    family(name, kind, unit: unit, help)
    sample(value)
  }

  /// A family with the number of durations below each bound, in seconds.
  mutating func histogram(
    _ name: String, _ help: String, bounds: some Sequence<UInt64>, counts: [UInt64], sum: UInt64
  ) {
    family(name, .histogram, unit: "seconds", help)
    var total: UInt64 = 0
    for (bound, count) in zip(bounds, counts) {
      total &+= count
      let limit = bound == .max ? "+Inf" : Self.number(Double(bound) / 1e9)
      sample("\(name)_bucket", ["le": limit], String(total))
    }
    sample("\(name)_sum", [:], Self.number(Double(sum) / 1e9))
    sample("\(name)_count", [:], String(total))
  }

  /// Ends the text.
  mutating func end() {
    if format == .openMetrics { text += "# EOF\n" }
  }

  private mutating func sample(_ name: String, _ labels: Labels, _ value: String) {
    text += name
    if !labels.isEmpty {
      let pairs = labels.map { "\($0.key)=\"\(Self.escaped($0.value, quotes: true))\"" }
      text += "{\(pairs.joined(separator: ","))}"
    }
    text += " \(value)\n"
  }

  private static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
  }

  /// Keeps different labels different, since collectors reject the whole page if two are equal.
  private static func escaped(_ text: String, quotes: Bool) -> String {
    ShownText.escaped(text, in: .name).unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "\\": result += "\\\\"
      case "\"" where quotes: result += "\\\""
      default: result.unicodeScalars.append(scalar)
      }
    }
  }
}
