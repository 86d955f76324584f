import Foundation

/// The Swift files of a package, by path from its root.
struct PackageTree {
  var files: [String: String]

  /// A tree that a test makes up.
  init(files: [String: String]) {
    self.files = files
  }

  /// Reads the given folders of the package to which this file belongs.
  init(reading folders: [String], from file: StaticString = #filePath) throws {
    var root = URL(filePath: "\(file)")
    while !FileManager.default.fileExists(atPath: root.appending(path: "Package.swift").path) {
      guard root.pathComponents.count > 1 else { throw CocoaError(.fileNoSuchFile) }
      root.deleteLastPathComponent()
    }
    files = [:]
    for folder in folders {
      let base = root.appending(path: folder)
      for path in try FileManager.default.subpathsOfDirectory(atPath: base.path)
      where path.hasSuffix(".swift") {
        files["\(folder)/\(path)"] = try String(contentsOf: base.appending(path: path), encoding: .utf8)
      }
    }
  }

  /// The tests of this package's Combine, and the tested sources.
  static func ours() throws -> PackageTree {
    try PackageTree(reading: sourceFolders + testFolders)
  }

  /// Folders whose public declarations must have a test.
  static let sourceFolders = [
    "Sources/ReactiveCore/Publishers", "Sources/ReactiveCore/Schedulers", "Sources/ReactiveCore/Subjects",
    "Sources/ReactiveCore/Subscribers", "Sources/ReactiveFoundation", "Sources/CombineExtras",
  ]

  static let testFolders = [
    "Tests/ReactiveCoreTests", "Tests/ReactiveFoundationTests", "Tests/PortableCombineTests",
    "Tests/CombineExtrasTests",
  ]

  private func paths(under folders: [String]) -> [String] {
    files.keys.filter { path in folders.contains { path.hasPrefix($0 + "/") } }.sorted()
  }

  /// The names of the source files that declare something public, without the ending and without any `+`.
  var publicSources: [String] {
    paths(under: Self.sourceFolders).filter { files[$0]!.declaresSomethingPublic }.map { Self.name(of: $0) }
  }

  /// The names of the publishers that the source files declare. Those of `Publishers.Zip3` and `Publishers.Zip4` are that of `Zip`.
  var publishers: Set<String> {
    Set(paths(under: Self.sourceFolders).flatMap { files[$0]!.publishers })
  }

  /// The names of test files with tests, and the names of their tests.
  var tests: [String: Set<String>] {
    let pairs = paths(under: Self.testFolders).map { (Self.name(of: $0), Set(files[$0]!.testNames)) }
    return Dictionary(pairs) { $0.union($1) }.filter { !$0.value.isEmpty }
  }

  /// A file's name without folder, ending and `+`.
  private static func name(of path: String) -> String {
    path.split(separator: "/").last!.dropLast(".swift".count).filter { $0 != "+" }
  }
}

extension String {
  /// Whether a line declares something that a program can use.
  fileprivate var declaresSomethingPublic: Bool {
    contains(
      /(?m)^\s*(?:@\w+\s+)*public\s+(?:static |final |convenience |mutating )*(?:struct|class|enum|actor|protocol|func|var|let|init|typealias)\b/
    )
  }

  /// The names of the publishers declared in `extension Publishers`, without a number at the end.
  fileprivate var publishers: [String] {
    let blocks = blocks(of: /extension Publishers\b(?!\.)[^{]*/, indentation: "")
    return blocks.flatMap { block in
      block.matches(
        of: /(?m)^  public (?:final )?(?:struct|class) (\w+?)\d*<[^{]*>\s*:\s*(?:Connectable)?Publisher\b/
      ).map { String($0.1) }
    }
  }

  /// The names of the functions that are tests.
  fileprivate var testNames: [String] {
    matches(of: /@Test\b[^{}]*?\bfunc (\w+)/).map { String($0.1) }
  }

  /// The names of functions of `extension Publisher` and of `extension ConnectablePublisher`, with their labels.
  var operators: Set<String> {
    let blocks = blocks(of: /extension (?:Publisher|ConnectablePublisher)\b[^{]*/, indentation: "")
    return Set(blocks.flatMap { Self.functions(of: $0, indentation: "  ") })
  }

  /// The functions that `Just`, `Empty`, `Fail` and the publishers of optionals, results and sequences declare for themselves,
  /// with their labels and the type, once for each declaration.
  var specialisedOperators: [String] {
    let places: [(type: String, outer: Regex<Substring>, inner: Regex<Substring>?)] = [
      ("Just", /(?:extension|public struct) Just\b[^{]*/, nil),
      ("Empty", /(?:extension|public struct) Empty\b[^{]*/, nil),
      ("Fail", /(?:extension|public struct) Fail\b[^{]*/, nil),
      ("Optional.Publisher", /extension Optional\.Publisher\b[^{]*/, nil),
      ("Optional.Publisher", /extension Optional\b(?!\.)[^{]*/, /public struct Publisher\b[^{]*/),
      ("Result.Publisher", /extension Result\.Publisher\b[^{]*/, nil),
      ("Result.Publisher", /extension Result\b(?!\.)[^{]*/, /public struct Publisher\b[^{]*/),
      ("Publishers.Sequence", /extension Publishers\.Sequence\b[^{]*/, nil),
      ("Publishers.Sequence", /extension Publishers\b(?!\.)[^{]*/, /public struct Sequence\b[^{]*/),
    ]
    return places.flatMap { type, outer, inner in
      var blocks = blocks(of: outer, indentation: "")
      var indentation = "  "
      if let inner {
        blocks = blocks.flatMap { String($0).blocks(of: inner, indentation: indentation) }
        indentation += "  "
      }
      return blocks.flatMap { Self.functions(of: $0, indentation: indentation) }
        .filter { $0 != "receive(subscriber:)" }.map { "\(type).\($0)" }
    }
  }

  /// The text between the braces of the declarations that begin like this. They end at the next brace with the same indentation.
  private func blocks(of beginning: Regex<Substring>, indentation: String) -> [Substring] {
    matches(of: beginning).compactMap { match in
      let line = self[..<match.range.lowerBound].split(separator: "\n", omittingEmptySubsequences: false).last
      let rest = self[match.range.upperBound...]
      guard line ?? "" == indentation, rest.first == "{" else { return nil }
      return rest.range(of: "\n\(indentation)}").map { rest[..<$0.lowerBound] }
    }
  }

  /// The public functions at a level of indentation, with their labels.
  private static func functions(of block: Substring, indentation: String) -> [String] {
    block.matches(
      of: /(?m)^( *)public func `?(\w+)`?(?:<[^(]*>)?\((?=([\s\S]{0,1000}))/
    ).filter { $0.1 == indentation }.map { "\($0.2)(\(labels(of: $0.3)))" }
  }

  /// The labels of a parameter list, up to its closing parenthesis.
  static func labels(of parameters: Substring) -> String {
    var depth = 0
    var isAtStart = true
    var label = ""
    var labels = ""
    var last: Character = " "
    scan: for character in parameters {
      switch character {
      case ")" where depth == 0: break scan
      case "(", "[", "<", "{": depth += 1
      case ")", "]", "}": depth -= 1
      case ">" where last != "-": depth -= 1
      case "," where depth == 0:
        isAtStart = true
        label = ""
      case ":" where depth == 0 && isAtStart:
        labels += label.split(whereSeparator: \.isWhitespace)[0] + ":"
        isAtStart = false
      default:
        if isAtStart { label.append(character) }
      }
      last = character
    }
    return labels
  }
}
