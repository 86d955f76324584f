import Foundation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore

/// The page about the export format, checked against the code.
@Suite("Specification of exports")
struct ExportSpecificationTests {
  private static func golden() throws -> MemoryStore {
    let store = MemoryStore()
    var change = TopicChange(TopicID(rawValue: 1))
    var row = StoredTopic(name: "orders", settings: TopicSettings(replayRecords: 1_000), epoch: 0x11_22)
    row.settings.storage = .durable
    row.lineage = [.init(epoch: 0x33_44, end: 40)]
    row.ending = .failure(code: .producerFailure, message: "over")
    row.endedBy = 7
    change.row = row
    let block = BatchBlock(firstOffset: 40, bytesBefore: 1_000)
    for (payload, time) in [("one", Int64(1_735_689_600_000)), ("two", 1_735_689_600_250)] {
      let item = StoreScene.item(Array(payload.utf8))
      _ = item.withUnsafeBytes { block.append($0, count: 1, time: time) }
    }
    block.seal(for: change.topic)
    change.batches = [block]
    change.states = [.init(.cursor, key: Array("billing".utf8), value: [1, 2, 3])]
    try store.commit([change])
    return store
  }

  private let lines: [String]

  init() throws {
    let page = URL(filePath: #filePath).appending(
      path: "../../../../Sources/SluiceStore/SluiceStore.docc/Export.md")
    lines = try String(contentsOf: page.standardized, encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The cells of the table under a heading, without its header and rule.
  private func table(under heading: String) throws -> [[String]] {
    let start = try #require(lines.firstIndex(of: heading))
    let section = lines[(start + 1)...].prefix { !$0.hasPrefix("#") }
    return section.filter { $0.hasPrefix("|") }.dropFirst(2).map { line in
      line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
    }
  }

  /// The bytes of the last block, up to the semicolon in each line.
  private func shown() throws -> [UInt8] {
    let start = try #require(lines.firstIndex(of: "## An export in bytes"))
    let block = lines[start...].drop { !$0.hasPrefix("```") }.dropFirst().prefix { !$0.hasPrefix("```") }
    return [UInt8](hex: block.map { String($0.prefix { $0 != ";" }) }.joined())
  }

  @Test("the export in bytes is what the code makes of it, and the other way round")
  func golden() throws {
    let store = try Self.golden()
    let shown = try shown()
    #expect(shown.hex == (try StoreScene.export(store).bytes.hex))
    let other = MemoryStore()
    try StoreScene.import(shown, into: other)
    #expect(try StoreScene.contents(StoreScene.export(other).bytes) == StoreScene.contents(shown))
    #expect(try StoreScene.records(other) == [40: "one", 41: "two"])
    #expect(
      try other.states(of: TopicID(rawValue: 1), .cursor)
        == store.states(of: TopicID(rawValue: 1), .cursor))
  }

  @Test("every kind of section is there with its number, and the sizes add up")
  func sections() throws {
    let kinds = try table(under: "## Sections")
    #expect(kinds.map { $0[0] } == ExportFormat.Kind.allCases.map { "\($0.rawValue)" })
    #expect(kinds.map { $0[1] } == ["TOPIC", "BATCH", "STATE", "TOPIC_END", "END"])
    let sizes = ["u8": 1, "u16": 2, "u32": 4, "u64": 8, "i64": 8]
    func size(_ heading: String) throws -> Int {
      try table(under: heading).reduce(0) { $0 + (sizes[$1[1]] ?? 0) }
    }
    #expect(try size("### BATCH") == BatchHeader.size - ExportSection.batchChecksumSize)
    for (heading, section) in [
      ("### TOPIC_END", ExportSection.topicEnd(.init(batches: 0, states: 0, extent: StoredExtent()))),
      ("### END", .end(.init())),
    ] {
      var writer = ByteWriter()
      _ = section.encodeBody(into: &writer)
      #expect(try size(heading) == writer.bytes.count)
    }
  }

  @Test("constants in the text are those of the code")
  func constants() throws {
    let text = lines.joined(separator: " ")
    let magic = ExportFormat.magic.map { ($0 < 16 ? "0" : "") + String($0, radix: 16).uppercased() }
    #expect(text.contains("magic  \(magic.joined(separator: " "))"))
    #expect(text.contains("The version is \(ExportFormat.version)."))
    #expect(text.contains("byte by byte: version \(ExportFormat.version)."))
    let limit = String(ExportFormat.maximumBody).reversed().enumerated().reduce(into: "") { text, digit in
      if digit.offset > 0, digit.offset.isMultiple(of: 3) { text += "," }
      text.append(digit.element)
    }
    #expect(text.contains("is \(String(limit.reversed())) at most"))
    #expect(text.contains("from \(ExportFormat.leastOptionalKind) on"))
    #expect(ExportFormat.preamble.count == ExportFormat.preambleSize)
    for kind in StoredState.Kind.allCases { #expect(text.contains("\(kind.rawValue) for a \(kind)")) }
  }
}
