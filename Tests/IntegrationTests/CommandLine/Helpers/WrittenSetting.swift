import TestSupport
import Testing

/// A setting of `sluiced` from the reference file, with two other valid values.
struct WrittenSetting {
  /// The section of the file; empty for settings before the first section.
  let section: String
  let name: String
  let option: String
  let first: String
  let second: String

  /// The full name, such as "limits.max-record", as in error messages and the log.
  var key: String { section.isEmpty ? name : "\(section).\(name)" }

  var variable: String {
    "SLUICED_" + option.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
  }

  /// A value as written in options and the environment.
  func word(_ value: String) -> String {
    ["true": "on", "false": "off"][value] ?? value
  }

  /// A value as written in the log.
  func logged(_ value: String) -> String {
    name == "allow-unauthenticated" ? value : word(value)
  }

  /// A file with these values of settings.
  static func file(_ settings: [WrittenSetting], _ value: KeyPath<WrittenSetting, String>) -> String {
    var lines: [String] = []
    var section = ""
    for setting in settings {
      if setting.section != section { lines.append("[\(setting.section)]") }
      section = setting.section
      let text = setting[keyPath: value]
      let isBare = text.allSatisfy(\.isNumber) || text == "true" || text == "false"
      lines.append("\(setting.name) = \(isBare ? text : "\"\(text)\"")")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// The settings of the reference file, except addresses, settings that need others, files or an engine, and the log's format.
  static func all() throws -> [WrittenSetting] {
    // This file is Tests/IntegrationTests/CommandLine/Helpers/WrittenSetting.swift.
    let repository = #filePath.split(separator: "/").dropLast(5).joined(separator: "/")
    let text = String(decoding: try readFile("/\(repository)/Docker/sluiced.toml"), as: UTF8.self)
    var settings: [WrittenSetting] = []
    var section = ""
    for line in text.split(separator: "\n") {
      if line.hasPrefix("[") { section = String(line.dropFirst().dropLast()) }
      guard let equals = line.firstRange(of: " = "), !line.hasPrefix("#") else { continue }
      let name = String(line[..<equals.lowerBound])
      let value = line[equals.upperBound...].filter { $0 != "\"" }
      let key = section.isEmpty ? name : "\(section).\(name)"
      guard !["listen", "admin", "origin-credentials", "tls.client-certs", "log.format"].contains(key),
        section != "cluster"
      else {
        continue
      }
      let (first, second) = try #require(words[key] ?? larger(value), "\(key) = \(value)")
      let option = ["storage.limit", "log.level", "log.buffer"].contains(key) ? "\(section)-\(name)" : name
      settings.append(
        WrittenSetting(section: section, name: name, option: option, first: first, second: second))
    }
    return settings
  }

  /// Values of settings that aren't numbers or amounts, or allow only certain values.
  private static let words = [
    "loops": ("3", "5"), "websocket-compression": ("true", "false"),
    "admin-history": ("1h", "2h"), "admin-actions": ("true", "false"),
    "access.certificate-names": ("listed", "any"),
    "access.allow-unauthenticated": ("true", "false"), "storage.limit": ("16MiB", "17MiB"),
    "topics.replay-records": ("10", "11"), "topics.replay-age": ("1h", "2h"),
    "topics.scope": ("while-connected", "forever"), "topics.flow": ("lossless", "fastest"),
    "topics.without-subscribers": ("hold", "drop"), "topics.connect": ("manual", "auto:5"),
    "topics.lag": ("fail", "skip"),
    "topics.auto-delete": ("true", "false"), "topics.compact": ("true", "false"),
    "topics.when-producer-lost": ("fail:1m", "fail:2m"),
    "topics.storage": ("durable", "memory"), "topics.sync": ("os", "50ms"),
    "limits.max-connections": ("100", "101"),
    "log.level": ("debug", "info"),
  ]

  /// A number, with or without a unit, increased by one and by two; nil for anything else.
  private static func larger(_ value: String) -> (String, String)? {
    let digits = value.prefix { $0.isNumber }
    guard let number = Int(digits) else { return nil }
    let unit = value.dropFirst(digits.count)
    return ("\(number + 1)\(unit)", "\(number + 2)\(unit)")
  }
}
