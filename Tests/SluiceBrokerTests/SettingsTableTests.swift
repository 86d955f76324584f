import Foundation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The protocol page's table of topic settings, compared with the broker's.
@Suite struct SettingsTableTests {
  private struct Row {
    var key: UInt16
    var name: String
    var range: String
    var standard: String

    /// Whether the table's range includes a value.
    func allows(_ value: UInt64) throws -> Bool {
      if range == "any" { return true }
      return try range.split(separator: ", ").contains { part in
        if part == "all ones" { return value == .max }
        let ends = try part.components(separatedBy: " to ").map { try #require(UInt64($0)) }
        return (ends[0]...ends[1]).contains(value)
      }
    }
  }

  private func rows() throws -> [Row] {
    let page = URL(filePath: #filePath).appending(
      path: "../../../Sources/SluiceWire/SluiceWire.docc/Protocol.md")
    return try String(contentsOf: page.standardized, encoding: .utf8).split(separator: "\n")
      .drop { $0 != "| key | setting | range | default | |" }.dropFirst(2).prefix { $0.hasPrefix("|") }
      .map { line in
        let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        return Row(
          key: try #require(UInt16(cells[0])), name: cells[1], range: cells[2], standard: cells[3])
      }
  }

  @Test func theTableHasEverySettingWithItsName() throws {
    let rows = try rows()
    #expect(Dictionary(uniqueKeysWithValues: rows.map { ($0.key, $0.name) }) == TopicSettings.names)
  }

  @Test func theRangesAreWhatTheBrokerTakes() throws {
    for row in try rows() {
      for value: UInt64 in [
        0, 1, 2, 3, 4, 1000, 1 << 32 - 1, 1 << 32, 1 << 32 + 1, 1 << 33 - 1, 1 << 33, .max - 1, .max,
      ] {
        var settings = TopicSettings()
        #expect(settings.set(row.key, to: value) == (try row.allows(value)), "\(row) \(value)")
      }
    }
  }

  @Test func theDefaultsAreThoseOfABrokerThatIsToldNothing() throws {
    let standard = Dictionary(
      uniqueKeysWithValues: BrokerConfiguration.standardTopic(in: .memory).numbered.map { ($0.key, $0.value) }
    )
    for row in try rows() {
      let value = row.standard == "all ones" ? .max : UInt64(row.standard)
      #expect(value != nil && standard[row.key] == value, "\(row)")
    }
  }
}
