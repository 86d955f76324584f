/// Reads which names Swift files declare for other modules, from files in the package's format: two spaces for each level.
struct PublicNames {
  /// The types, and the members with their types: `Just`, `Just.map(_:)`.
  ///
  /// Protocols with an underscore are not for programs. Their declarations count as members of the types that conform.
  var names: Set<String> {
    var names = declared.filter { $0.first != "_" }
    for (type, adopted) in conformances {
      for name in declared where name.hasPrefix(adopted + ".") {
        names.insert(type + name.dropFirst(adopted.count))
      }
    }
    return names
  }

  private var declared: Set<String> = []
  /// Types, and the protocols with an underscore to which they conform.
  private var conformances: [(type: String, adopted: String)] = []

  /// The declarations around a line.
  private struct Scope {
    var indentation: Int
    /// The type; empty at the top level.
    var path: String
    var isVisible: Bool
    /// Whether members are public without the keyword.
    var isOpen: Bool
  }

  mutating func read(_ source: String) {
    var scopes: [Scope] = []
    let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let indentation = line.prefix { $0 == " " }.count
      let text = line.dropFirst(indentation)
      if text.isEmpty || text.hasPrefix("//") { continue }
      // Lines that only continue a declaration don't end the enclosing scopes.
      let enclosing = scopes.filter { $0.indentation < indentation }
      let scope = enclosing.last ?? Scope(indentation: -2, path: "", isVisible: true, isOpen: false)
      guard scope.indentation + 2 == indentation else { continue }
      if text.hasPrefix("#") {
        scopes = enclosing
        // Conditionally compiled code is one level deeper.
        scopes.append(
          Scope(indentation: indentation, path: scope.path, isVisible: scope.isVisible, isOpen: scope.isOpen))
        continue
      }
      let words = text.split(separator: " ")
      guard let place = words.firstIndex(where: { Self.keywords.contains(Self.keyword($0)) }),
        words[..<place].allSatisfy({ Self.modifiers.contains($0) || $0.first == "@" || $0.contains("(") })
      else { continue }
      scopes = enclosing
      let isPublic = scope.isOpen || words[..<place].contains("public") || words[..<place].contains("open")
      let keyword = Self.keyword(words[place])
      let rest = String(text[words[place].startIndex...].dropFirst(keyword.count))
      let following = lines[index...].dropFirst().prefix(14).joined(separator: "\n")
      switch keyword {
      case "struct", "class", "enum", "protocol", "actor", "extension":
        let name = rest.dropFirst().prefix { $0.isLetter || $0.isNumber || $0 == "." || $0 == "_" }
        let path = scope.path.isEmpty ? String(name) : "\(scope.path).\(name)"
        let isExtension = keyword == "extension"
        let isVisible = scope.isVisible && (isExtension || isPublic)
        if isVisible && !isExtension { insert(path) }
        if keyword != "protocol", path.first != "_" {
          for word in words where word.first == "_" {
            conformances.append((path, String(word.prefix { $0.isLetter || $0 == "_" })))
          }
        }
        scopes.append(
          Scope(
            indentation: indentation, path: path, isVisible: isVisible,
            isOpen: isVisible && (["enum", "protocol"].contains(keyword) || isExtension) && isPublic))
        // The cases of an enumeration are public without the keyword.
        if keyword == "enum" { scopes[scopes.count - 1].isOpen = false }
      case "case" where scope.isVisible && !scope.path.isEmpty:
        let name = rest.dropFirst().prefix { $0.isLetter || $0.isNumber }
        // A `case` of a switch is in a function, so it isn't at this level.
        insert("\(scope.path).\(name)")
      default:
        guard isPublic, scope.isVisible, keyword != "case" else { continue }
        insert(
          "\(scope.path.isEmpty ? "" : scope.path + ".")\(Self.member(keyword, rest + "\n" + following))")
      }
    }
  }

  /// Members that begin with an underscore are not for programs.
  private mutating func insert(_ name: String) {
    if !name.prefix(while: { $0 != "(" }).contains("._") { declared.insert(name) }
  }

  private static let keywords: Set<Substring> = [
    "struct", "class", "enum", "protocol", "actor", "extension", "func", "var", "let", "init", "subscript",
    "case",
    "typealias", "associatedtype",
  ]

  private static let modifiers: Set<Substring> = [
    "public", "package", "private", "fileprivate", "internal", "open", "static", "final", "convenience",
    "mutating", "nonmutating", "indirect", "override", "required", "lazy", "weak", "unowned", "prefix",
    "infix",
    "postfix", "unsafe", "nonisolated",
  ]

  private static func keyword(_ word: Substring) -> Substring {
    word.prefix { $0.isLetter }
  }

  /// A member's name, with the labels of its parameters.
  private static func member(_ keyword: Substring, _ text: String) -> String {
    let text = text.drop { $0 == " " }
    switch keyword {
    case "init", "subscript":
      return "\(keyword)(\(labels(afterGenericsIn: text)))"
    case "func":
      let name = text.prefix {
        !" (<`".contains($0) || "<>=!".contains($0) && !text.first!.isLetter && text.first != "`"
      }
      let plain = name.isEmpty ? text.dropFirst().prefix { $0 != "`" } : name
      return
        "\(plain)(\(labels(afterGenericsIn: text.dropFirst(name.isEmpty ? plain.count + 2 : name.count))))"
    default:
      return String(text.drop { $0 == "`" }.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
    }
  }

  /// The labels of the parameters that come after a list of generic parameters, if there is one.
  private static func labels(afterGenericsIn text: Substring) -> String {
    var depth = 0
    var last: Character = " "
    for (offset, character) in text.enumerated() {
      if character == "<" { depth += 1 }
      if character == ">", last != "-" { depth -= 1 }
      if character == "(", depth == 0 { return String.labels(of: text.dropFirst(offset + 1)) }
      last = character
    }
    return ""
  }
}
