import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

/// Reads the values of settings from a document, and collects all mistakes in it.
struct ConfigurationReader {
  struct Mistake {
    var place: TOMLPlace
    var line: String
  }

  private(set) var values: [ConfigurationFile.Value] = []
  private(set) var rules: [ConfigurationFile.Rule] = []
  private(set) var mistakes: [Mistake] = []

  private let document: TOMLDocument
  private let path: String
  private let settings = DaemonSettings.all()

  init(_ document: TOMLDocument, path: String) {
    self.document = document
    self.path = path
  }

  private static let sections = ConfigurationSection.allCases.filter { $0 != .general }

  mutating func read() {
    for number in document.top {
      let entry = document.entries[number]
      let section = Self.sections.first { $0.rawValue == entry.key }
      switch entry.kind {
      case .table where section != nil:
        for child in entry.children { readSetting(document.entries[child], in: section!) }
      case .table where entry.key == ConfigurationSection.rule:
        report(entry, "\(entry.key): write [[\(entry.key)]], in double brackets")
      case .array where entry.key == ConfigurationSection.rule:
        for child in entry.children { readRule(document.entries[child]) }
      case _ where section != nil:
        report(entry, "\(entry.key): is a section; write [\(entry.key)], and its keys in the lines after it")
      default: readSetting(entry, in: .general)
      }
    }
  }

  private mutating func report(_ entry: TOMLDocument.Entry, _ message: String) {
    mistakes.append(Mistake(place: entry.place, line: "\(label(entry)): \(message)"))
  }

  private func label(_ entry: TOMLDocument.Entry) -> String { ConfigurationFile.label(path, entry.place) }

  // MARK: Settings

  private mutating func readSetting(_ entry: TOMLDocument.Entry, in section: ConfigurationSection) {
    let found = settings.first { $0.key?.section == section && $0.key?.name == entry.key }
    guard let setting = found, let key = setting.key else {
      return report(entry, unknown(entry, in: section))
    }
    do {
      let texts = try texts(of: entry, for: setting.option)
      let origin = "\(label(entry)): \(key)"
      try check(texts, setting, origin)
      values.append(.init(option: setting.option.name, texts: texts, origin: origin))
    } catch {
      // Some messages contain the place or the option already.
      let option = "--\(setting.option.name): "
      let message = error.description
      let name = "\(label(entry)): \(key): "
      let reason = message.hasPrefix(name) ? message.dropFirst(name.count) : message[...]
      report(entry, "\(key): \(reason.hasPrefix(option) ? reason.dropFirst(option.count) : reason)")
    }
  }

  /// Checks that the setting accepts the texts.
  private func check(_ texts: [String], _ setting: Setting, _ origin: String) throws(UsageError) {
    if let reason = setting.option.unavailable { throw UsageError(reason) }
    var alone = ParsedArguments()
    alone.add(setting.option.name, texts, from: origin)
    var scratch = DaemonSettings()
    try setting.apply(alone, &scratch)
  }

  /// Returns a value in the notation of the option.
  private func texts(of entry: TOMLDocument.Entry, for option: CommandOption) throws(UsageError) -> [String] {
    guard option.isRepeatable else { return [try text(of: entry, for: option)] }
    guard entry.kind == .array else {
      throw UsageError("is \(entry.kind.rawValue), and must be a list of texts, like [\"…\", \"…\"]")
    }
    guard !entry.children.isEmpty else { throw UsageError("the list is empty; leave it out, or name some") }
    var texts: [String] = []
    for child in entry.children { texts.append(try text(of: document.entries[child], for: option)) }
    return texts
  }

  private func text(of entry: TOMLDocument.Entry, for option: CommandOption) throws(UsageError) -> String {
    let isWord = entry.kind == .text && option.choices.contains(entry.text)
    let wanted: String
    switch option.kind {
    case .boolean:
      if entry.kind == .boolean { return entry.text == "true" ? "on" : "off" }
      wanted = "true or false"
    case .count:
      guard entry.kind != .integer else {
        if entry.text.hasPrefix("-") { throw UsageError("\(entry.text) is negative") }
        return entry.text
      }
      if isWord { return entry.text }
      let words = option.choices.map { " or \"\($0)\"" }.joined()
      wanted = "a whole number, like \(option.standard.flatMap { UInt64($0) } ?? 4)\(words)"
    case let kind:
      if entry.kind == .text { return located(entry.text, kind, isAddress: option.value == "ADDR") }
      wanted = "a text, like \"\(Self.example(of: option))\""
    }
    throw UsageError("is \(entry.kind.rawValue), and must be \(wanted)")
  }

  private static func example(of option: CommandOption) -> String {
    if let standard = option.standard { return standard }
    return switch option.kind {
    case .size: "64MiB"
    case .time: "30s"
    case .directory: "/var/lib/sluice"
    case .file: "/etc/sluice/\(option.name)"
    default: option.words.first ?? "…"
    }
  }

  /// Resolves paths relative to the directory of the configuration file.
  private func located(_ text: String, _ kind: ValueKind?, isAddress: Bool) -> String {
    let scheme = "unix:"
    if isAddress {
      guard text.hasPrefix(scheme) else { return text }
      return scheme + located(String(text.dropFirst(scheme.count)), .file, isAddress: false)
    }
    guard kind == .file || kind == .directory, !text.isEmpty, !text.hasPrefix("/") else { return text }
    guard let slash = path.lastIndex(of: "/") else { return text }
    return path[...slash] + text
  }

  // MARK: Unknown names

  private func unknown(_ entry: TOMLDocument.Entry, in section: ConfigurationSection) -> String {
    let isTop = section == .general
    let path = isTop ? entry.key : "\(section.rawValue).\(entry.key)"
    let isSection = isTop && (entry.kind == .table || entry.kind == .array)
    let beginning =
      "\(ShownText.line(path)): there is no such \(isSection && entry.kind == .table ? "section" : "key")"
    let sections = Self.sections.map(\.rawValue) + [ConfigurationSection.rule]
    if isSection, let nearest = Spelling.nearest(to: entry.key, in: sections) {
      return "\(beginning); did you mean \(Self.heading(nearest))?"
    }
    let keys = settings.compactMap(\.key)
    // The key of another section, or an option's name.
    let elsewhere =
      settings.first { $0.option.name == entry.key }?.key
      ?? keys.first { $0.section != section && $0.name == entry.key }
    if let elsewhere {
      return elsewhere.section == .general
        ? "\(beginning); write \(elsewhere.name) in front of all sections"
        : "\(beginning); write \(elsewhere.name) in [\(elsewhere.section.rawValue)]"
    }
    let known = keys.filter { $0.section == section }.map(\.name)
    if let nearest = Spelling.nearest(to: entry.key, in: known) {
      return "\(beginning); did you mean \(nearest)?"
    }
    if isTop, let nearest = Spelling.nearest(to: entry.key, in: sections) {
      return "\(beginning); did you mean \(Self.heading(nearest))?"
    }
    let all = known + (isTop ? sections.map(Self.heading) : [])
    return "\(beginning); there are \(all.joined(separator: ", "))"
  }

  private static func heading(_ section: String) -> String {
    section == ConfigurationSection.rule ? "[[\(section)]]" : "[\(section)]"
  }

  // MARK: Rules

  private mutating func readRule(_ entry: TOMLDocument.Entry) {
    guard entry.kind == .table else {
      return report(
        entry,
        "\(ConfigurationSection.rule): write [[\(ConfigurationSection.rule)]], and its keys in the lines after it"
      )
    }
    let count = mistakes.count
    var pattern: TopicPattern?
    var isNamed = false
    var topic = TopicSettings()
    for child in entry.children {
      let child = document.entries[child]
      do {
        if child.key == ConfigurationSection.pattern {
          isNamed = true
          pattern = try readPattern(child)
        } else {
          try readTopicSetting(child, into: &topic)
        }
      } catch {
        report(child, "\(ConfigurationSection.rule).\(ShownText.line(child.key)): \(error)")
      }
    }
    if !isNamed {
      // A misspelt pattern is reported already.
      if mistakes.count > count { return }
      report(
        entry,
        "\(ConfigurationSection.rule): has no pattern; add one, like pattern = \"orders.>\"")
    } else if topic == TopicSettings(), mistakes.count == count {
      report(entry, "\(ConfigurationSection.rule): sets nothing; add settings like flow = \"lossless\"")
    }
    guard let pattern else { return }
    rules.append(
      .init(
        pattern: pattern.description, text: TopicRuleText.write(pattern, topic),
        origin: "\(label(entry)): \(ConfigurationSection.rule)"))
  }

  private func readPattern(_ entry: TOMLDocument.Entry) throws(UsageError) -> TopicPattern {
    guard entry.kind == .text else {
      throw UsageError("is \(entry.kind.rawValue), and must be a text, like \"orders.>\"")
    }
    do {
      return try Values.pattern(entry.text)
    } catch {
      throw UsageError(error.description)
    }
  }

  private func readTopicSetting(
    _ entry: TOMLDocument.Entry, into topic: inout TopicSettings
  ) throws(UsageError) {
    let options = TopicOption.ofTopics
    guard let option = options.first(where: { $0.name == entry.key }) else {
      let known = options.map(\.name) + [ConfigurationSection.pattern]
      throw UsageError("there is no such key\(Spelling.advice(for: entry.key, in: known) { $0 })")
    }
    let text = try text(of: entry, for: option.option(standard: DaemonSettings().broker.topicDefaults))
    do {
      try option.read(text, &topic)
    } catch {
      throw UsageError(error.description)
    }
  }
}
