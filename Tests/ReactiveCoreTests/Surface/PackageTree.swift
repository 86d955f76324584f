import Foundation

/// The Swift files of a package, by path from its root.
struct PackageTree {
  var files: [String: String]

  /// A tree made up by a test.
  init(files: [String: String]) {
    self.files = files
  }

  /// The package this file belongs to, of which the given folders are read.
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

  /// The tests of our Combine and what they test.
  static func ours() throws -> PackageTree {
    try PackageTree(reading: sourceFolders + testFolders)
  }

  /// Where what is public must have a test.
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

  /// What the test files are called that contain a test, with the names of their tests.
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
  /// Whether some line declares something that a program can use.
  fileprivate var declaresSomethingPublic: Bool {
    contains(
      /(?m)^\s*(?:@\w+\s+)*public\s+(?:static |final |convenience |mutating )*(?:struct|class|enum|actor|protocol|func|var|let|init|typealias)\b/
    )
  }

  /// The names of the functions that are tests.
  fileprivate var testNames: [String] {
    matches(of: /@Test\b[^{}]*?\bfunc (\w+)/).map { String($0.1) }
  }

  /// What functions of `extension Publisher` and of `extension ConnectablePublisher` are called, with their labels.
  var operators: Set<String> {
    var found: Set<String> = []
    // An extension ends at the next brace at the start of a line.
    for block in matches(of: /(?m)^extension (?:Publisher|ConnectablePublisher)\b[^{]*\{\n((?:(?!^\}).*\n)*)/)
    {
      for function in block.1.matches(of: /(?m)^  public func `?(\w+)`?(?:<[^(]*>)?\((?=([\s\S]{0,1000}))/) {
        found.insert("\(function.1)(\(Self.labels(of: function.2)))")
      }
    }
    return found
  }

  /// The labels of a parameter list, of which the closing parenthesis ends what counts.
  private static func labels(of parameters: Substring) -> String {
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
