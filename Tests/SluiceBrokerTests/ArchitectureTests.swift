import Foundation
import Testing

/// The articles that follow records, demands and messages through the sources, checked against the sources.
@Suite("Architecture articles")
struct ArchitectureTests {
  private static let modules = ["SluiceBroker", "SluiceDoors"]

  /// By their modules' names.
  private let pages: [String: String]
  /// The text of every source file, by its name. A name may be that of several.
  private let sources: [String: [String]]

  init() throws {
    let root = URL(filePath: #filePath).appending(path: "../../../Sources").standardized
    var pages: [String: String] = [:]
    for module in Self.modules {
      let article = root.appending(path: "\(module)/\(module).docc/Architecture.md")
      pages[module] = try String(contentsOf: article, encoding: .utf8)
    }
    self.pages = pages
    var sources: [String: [String]] = [:]
    for case let path as String in try #require(FileManager.default.enumerator(atPath: root.path))
    where path.hasSuffix(".swift") {
      let file = root.appending(path: path)
      sources[file.lastPathComponent, default: []].append(try String(contentsOf: file, encoding: .utf8))
    }
    self.sources = sources
  }

  /// The rows of the tables, as far as they name a file: the code in each cell.
  private func rows(_ page: String) -> [[String]] {
    page.split(separator: "\n").filter { $0.hasPrefix("|") }.map { line in
      line.split(separator: "|").compactMap { $0.firstMatch(of: /`([^`]+)`/).map { String($0.1) } }
    }.filter { $0.count >= 2 }
  }

  @Test("name types and members that their files declare", arguments: modules)
  func rowsAreTrue(module: String) throws {
    let rows = rows(try #require(pages[module]))
    #expect(rows.count > 35)
    for row in rows {
      let (name, file) = (row[0], row[1])
      let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
      let texts = try #require(sources[file], "there is no file \(file)")
      #expect(
        texts.contains { text in
          declares(parts[0], text) && (parts.count == 1 || declares(member: parts[1], text))
        }, "\(file) doesn't declare \(name)")
    }
  }

  @Test("name no type that isn't there", arguments: modules)
  func namesAreThere(module: String) throws {
    let page = try #require(pages[module])
    let all = sources.values.joined().joined(separator: "\n")
    let names = Set(page.matches(of: /`+([A-Z][A-Za-z]+)`+/).map { String($0.1) })
    #expect(names.count > 10)
    for name in names where !name.hasPrefix("Sluice") {
      #expect(declares(name, all), "there is no type \(name)")
    }
  }

  private func declares(_ type: String, _ text: String) -> Bool {
    ["class", "struct", "enum", "protocol", "extension"].contains { keyword in
      text.ranges(of: "\(keyword) \(type)").contains { range in
        text[range.upperBound...].first.map { !$0.isLetter && !$0.isNumber } ?? true
      }
    }
  }

  /// Whether a function with that name and labels, or a property, is declared.
  private func declares(member: String, _ text: String) -> Bool {
    guard let open = member.firstIndex(of: "(") else {
      return text.contains("var \(member)") || text.contains("let \(member)")
    }
    let labels = member[open...].dropFirst().dropLast().split(separator: ":").map(String.init)
    return text.ranges(of: "func \(member[..<open])").contains { range in
      guard let start = text[range.upperBound...].firstIndex(of: "(") else { return false }
      return parameters(of: text[text.index(after: start)...]) == labels
    }
  }

  /// The labels of the parameter list that starts here.
  private func parameters(of text: Substring) -> [String] {
    var labels: [String] = []
    var depth = 0
    var parameter = ""
    for character in text {
      if depth == 0, character == ")" || character == "," {
        let label = parameter.split(separator: ":").first?.split(whereSeparator: \.isWhitespace).first
        if let label { labels.append(String(label)) }
        parameter = ""
        if character == ")" { break }
        continue
      }
      if "([<{".contains(character) { depth += 1 }
      if ")]}".contains(character) || (character == ">" && parameter.last != "-") { depth -= 1 }
      parameter.append(character)
    }
    return labels
  }
}
