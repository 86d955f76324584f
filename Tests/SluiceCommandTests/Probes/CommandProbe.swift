import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire
import TestSupport

@testable import SluiceDaemon
@testable import SluiceTool

/// Passes any text to the parsers of command lines and settings, and any reply of a broker to the code that displays it.
enum CommandProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A byte for the kind of value, then its text.
    case values
    /// The daemon's arguments, one per line.
    case daemonArguments
    /// The daemon's configuration file.
    case configuration
    /// A byte for the framing, then the standard input.
    case framedRecords
    /// Replies about topics and cursors, displayed as tables and JSON: a byte for the type of frame, then the body.
    case answers
  }

  static func run(_ target: Target, on bytes: [UInt8]) throws {
    var input = ProbeInput(bytes)
    switch target {
    case .values:
      let kind = input.byte()
      let option = input.byte()
      try value(kind, option, String(decoding: input.remaining(), as: UTF8.self))
    case .daemonArguments:
      let arguments = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
      guard let parsed = try? ArgumentParser(DaemonPage.page()).parse(arguments) else { return }
      _ = try? DaemonSettings(parsed)
    case .configuration: try configuration(bytes)
    case .framedRecords:
      let framing = input.byte()
      try records(framing, input.remaining())
    case .answers:
      let type = input.byte()
      try answer(FrameType(rawValue: type), input.remaining())
    }
  }

  private static func configuration(_ bytes: [UInt8]) throws {
    let path = "etc/sluiced.toml"
    do {
      let file = try ConfigurationFile(path, bytes)
      do {
        _ = try DaemonSettings(ParsedArguments(), file: file)
      } catch {
        guard error.description.hasPrefix("\(path):") else {
          throw ProbeViolation("a mistake doesn't say where it is: \(error)")
        }
      }
    } catch let mistakes as ConfigurationMistakes {
      guard !mistakes.lines.isEmpty, mistakes.lines.allSatisfy({ $0.hasPrefix(path) }) else {
        throw ProbeViolation("mistakes don't say where they are: \(mistakes.lines)")
      }
    }
  }

  // MARK: Values

  private static func value(_ kind: UInt8, _ option: UInt8, _ text: String) throws {
    switch kind % 11 {
    case 0:
      guard let size = try? ByteSize.parse(text) else { return }
      _ = ByteSize.rounded(size)
      try same(size, ByteSize.parse(ByteSize.exact(size)))
    case 1:
      guard let time = try? TimeSpan.parse(text) else { return }
      _ = TimeSpan.rounded(time)
      try same(time, TimeSpan.parse(TimeSpan.exact(time)))
    case 2:
      guard let time = try? WallTime.parse(text) else { return }
      // Milliseconds before the year 1 have no text of this form.
      if time >= -62_167_219_200_000, time < 253_402_300_800_000 {
        try same(time, WallTime.parse(WallTime.format(time)))
      }
    case 3: _ = WallTime.format(Int64(text) ?? Int64.min)
    case 4:
      guard let count = try? Values.countOrUnlimited()(text), count != .max else { return }
      try same(count, Values.count()("\(count)"))
    case 5:
      guard let address = try? SocketAddress(parsing: text) else { return }
      try same(address, SocketAddress(parsing: address.description))
    case 6:
      guard let rule = try? TopicRuleText.parse(text) else { return }
      try same(rule.settings, written(rule.settings))
    case 7:
      let all = TopicOption.all
      var settings = TopicSettings()
      guard (try? all[Int(option) % all.count].read(text, &settings)) != nil else { return }
      try same(settings, written(settings))
    case 8: template(text)
    case 9: _ = try? HeaderText.parse(Array(text.utf8))
    default:
      let words = ["subscribe", "publish", "topic", text]
      _ = Spelling.nearest(to: text, in: words)
      guard JSONText.quoted(text).unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
      else { throw ProbeViolation("a control character is left in JSON") }
    }
  }

  /// The settings after writing and reading them.
  private static func written(_ settings: TopicSettings) throws -> TopicSettings {
    var again = TopicSettings()
    for option in TopicOption.all {
      if let text = option.write(settings) { try option.read(text, &again) }
    }
    return again
  }

  private static func template(_ text: String) {
    guard let template = try? RecordTemplate(parsing: text) else { return }
    var output: [UInt8] = []
    Array(text.utf8).withUnsafeBytes { payload in
      let record = RecordParts(
        topic: text, offset: .max, time: .min, key: Array(payload), headers: [.init("h", Array(payload))],
        deliveries: 1, payload: payload)
      template.append(record, to: &output)
      RecordJSON().append(record, to: &output)
    }
  }

  // MARK: Records from standard input

  private static let longestRecord = 100

  private static func records(_ kind: UInt8, _ bytes: [UInt8]) throws {
    let framing: Framing = [.delimited(UInt8(ascii: "\n")), .delimited(0), .whole, .lengthPrefixed][
      Int(kind % 4)]
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return }
    defer { close(ends[0]) }
    // A pipe holds more than any input.
    let written = bytes.withUnsafeBytes { write(ends[1], $0.baseAddress, min($0.count, 4096)) }
    close(ends[1])
    var records: [[UInt8]] = []
    var isRefused = false
    do throws(InputError) {
      var reader = RecordReader(ends[0], limit: longestRecord)
      try reader.forEach(framing) { record throws(InputError) in
        records.append(Array(record))
        return true
      }
    } catch {
      isRefused = true
    }
    let expected = expected(framing, bytes.prefix(max(written, 0)))
    guard records == expected.records, isRefused == expected.isRefused else {
      throw ProbeViolation("\(framing) gives \(records), and not \(expected)")
    }
  }

  private static func expected(
    _ framing: Framing, _ bytes: ArraySlice<UInt8>
  ) -> (records: [[UInt8]], isRefused: Bool) {
    var records: [[UInt8]] = []
    var rest = bytes
    switch framing {
    case .whole: return bytes.count > longestRecord ? ([], true) : ([Array(bytes)], false)
    case .delimited(let delimiter):
      var parts = bytes.split(separator: delimiter, omittingEmptySubsequences: false)
      if parts.last?.isEmpty == true { parts.removeLast() }
      for part in parts {
        if part.count > longestRecord { return (records, true) }
        records.append(Array(part))
      }
    case .lengthPrefixed:
      while !rest.isEmpty {
        guard rest.count >= 4 else { return (records, true) }
        let length = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        guard length <= longestRecord, length <= rest.count - 4 else { return (records, true) }
        records.append(Array(rest.dropFirst(4).prefix(length)))
        rest = rest.dropFirst(4 + length)
      }
    }
    return (records, false)
  }

  // MARK: Answers

  private static func answer(_ type: FrameType, _ body: [UInt8]) throws {
    let shown = withExactMemory(body) { body -> [String] in
      switch type {
      case .topicInfo: (try? TopicInfo(body: body)).map(show) ?? []
      case .topics:
        (try? Topics(body: body)).map { [TopicTable.list($0.topics)] + $0.topics.map { TopicJSON.line($0) } }
          ?? []
      case .cursors:
        (try? Cursors(body: body)).map {
          [CursorTable.list($0.cursors)] + $0.cursors.map({ CursorTable.line($0) })
        }
          ?? []
      default: []
      }
    }
    for text in shown {
      // Names chosen by peers must not control the reader's terminal.
      guard text.unicodeScalars.allSatisfy({ $0 == "\n" || $0.properties.generalCategory != .control }) else {
        throw ProbeViolation("a control character is shown")
      }
    }
  }

  private static func show(_ info: TopicInfo) -> [String] {
    var board = TopBoard()
    let name = info.summary.topic
    _ = board.take(
      TopSample(time: MonotonicTime(nanoseconds: 0), topics: [start(of: info.summary)], details: [:]))
    let rows = board.take(
      TopSample(time: MonotonicTime(nanoseconds: 1), topics: [info.summary], details: [name: info]))
    return [
      TopicTable.show(info), TopicJSON.line(info), TopTable.render(rows, title: ""),
      TopTable.title(rows, server: ""),
    ] + rows.map(TopTable.line)
      + TopScreen.lines(
        TopState(), rows, titles: [""], detail: nil, size: .init(width: 80, height: 24), hasColours: false)
  }

  /// The summary before anything was published.
  private static func start(of summary: TopicSummary) -> TopicSummary {
    var summary = summary
    summary.nextOffset = 0
    return summary
  }

  private static func same<Value: Equatable>(_ value: Value, _ again: Value) throws {
    guard value == again else { throw ProbeViolation("\(value) is read again as \(again)") }
  }
}
