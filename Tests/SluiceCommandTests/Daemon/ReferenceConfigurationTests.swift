import Foundation
import SluiceCommand
import Testing

@testable import SluiceDaemon

@Suite("The commented configuration file that comes with the broker")
struct ReferenceConfigurationTests {
  private let text: String

  init() throws {
    // This file is Tests/SluiceCommandTests/Daemon/ReferenceConfigurationTests.swift.
    let repository = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    text = try String(contentsOfFile: "/\(repository)/Docker/sluiced.toml", encoding: .utf8)
  }

  private func file(_ text: String) throws -> ConfigurationFile {
    do {
      return try ConfigurationFile("sluiced.toml", Array(text.utf8))
    } catch {
      Issue.record("\(error.lines)")
      throw error
    }
  }

  @Test("it has every key that has a default, at its default")
  func defaults() throws {
    let file = try file(text)
    let values = Dictionary(uniqueKeysWithValues: file.values.map { ($0.option, $0.texts) })
    let standard = DaemonSettings()
    for setting in DaemonSettings.all() where setting.key != nil && setting.option.unavailable == nil {
      guard let written = setting.write(standard) else { continue }
      guard let texts = values[setting.option.name] else {
        Issue.record("\(setting.option.name) is missing")
        continue
      }
      var arguments = ParsedArguments()
      arguments.add(setting.option.name, texts, from: "")
      var settings = DaemonSettings()
      try setting.apply(arguments, &settings)
      #expect(setting.write(settings) == written, "\(setting.option.name)")
    }
    // A broker started with it has the same settings as without it.
    let whole = try DaemonSettings(ParsedArguments(), file: file)
    for setting in DaemonSettings.all() {
      #expect(setting.write(whole) == setting.write(standard), "\(setting.option.name)")
    }
  }

  @Test("it has every other key commented out, as it could be written, and a rule")
  func others() throws {
    // A commented-out key or heading, as opposed to a sentence.
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      let code = line.hasPrefix("# ") ? line.dropFirst(2) : ""
      return code.hasPrefix("[[") || code.split(separator: " ").dropFirst().first == "=" ? code : line
    }
    let file = try file(lines.joined(separator: "\n"))
    let options = Set(file.values.map(\.option))
    for setting in DaemonSettings.all() where setting.key != nil && setting.option.unavailable == nil {
      #expect(options.contains(setting.option.name), "\(setting.option.name) is missing")
    }
    #expect(file.rules.map(\.pattern) == ["orders.>"])
  }

  @Test("every key is explained")
  func explanations() {
    var isExplained = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("#") {
        isExplained = true
      } else if line.isEmpty {
        isExplained = false
      } else if !line.hasPrefix("[") {
        #expect(isExplained, "\(line)")
      }
    }
  }
}
