import Foundation

/// One Swift file: its path and folder, its declarations at the top level, and the capitalised names that its code mentions, with the first line of
/// each.
struct SourceFile {
  let path: String
  /// The folder that it belongs to in the graph that is drawn.
  var folder = ""
  private(set) var declared: Set<String> = []
  private(set) var mentioned: [String: Int] = [:]

  init(path: String) throws {
    self.path = path
    var depth = 0
    var declares = false
    for (index, line) in Self.code(of: try String(contentsOfFile: path, encoding: .utf8)).enumerated() {
      var word = ""
      var isMember = false
      for character in line + " " {
        if character.isLetter || character.isNumber || character == "_" {
          word.append(character)
          continue
        }
        if !word.isEmpty, !isMember { take(word, at: depth, line: index + 1, &declares) }
        // A name after a dot is declared by the type before the dot.
        isMember = character == "."
        word = ""
        if character == "{" { depth += 1 }
        if character == "}" { depth -= 1 }
      }
    }
  }

  private static let keywords: Set<String> = ["class", "struct", "enum", "protocol", "actor", "typealias"]

  private mutating func take(_ word: String, at depth: Int, line: Int, _ declares: inout Bool) {
    if declares {
      declared.insert(word)
    } else if word.first?.isUppercase == true, mentioned[word] == nil {
      mentioned[word] = line
    }
    declares = depth == 0 && Self.keywords.contains(word)
  }

  /// Returns the lines of the file without comments and without the text of strings. Expressions that are interpolated into a string are left out
  /// too.
  private static func code(of text: String) -> [String] {
    var lines: [String] = []
    var comments = 0
    var isInLongString = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      var rest = line[...]
      var code = ""
      var isInString = false
      while !rest.isEmpty {
        if isInLongString {
          guard let end = rest.range(of: "\"\"\"") else { break }
          isInLongString = false
          rest = rest[end.upperBound...]
        } else if rest.hasPrefix("*/"), comments > 0 {
          comments -= 1
          rest = rest.dropFirst(2)
        } else if rest.hasPrefix("/*"), !isInString {
          comments += 1
          rest = rest.dropFirst(2)
        } else if comments > 0 {
          rest = rest.dropFirst()
        } else if rest.hasPrefix("//"), !isInString {
          break
        } else if rest.hasPrefix("\"\"\"") {
          isInLongString = true
          rest = rest.dropFirst(3)
        } else if rest.hasPrefix("\\"), isInString {
          rest = rest.dropFirst(2)
        } else if rest.hasPrefix("\"") {
          isInString.toggle()
          code.append(" ")
          rest = rest.dropFirst()
        } else {
          if !isInString { code.append(rest.first ?? " ") }
          rest = rest.dropFirst()
        }
      }
      lines.append(code)
    }
    return lines
  }
}

/// Which folders of a module use which others, and in which lines.
struct FolderGraph {
  struct Use {
    var name: String
    var place: String
  }

  private(set) var folders: [String] = []
  private(set) var uses: [String: [String: [Use]]] = [:]

  /// The graph of the folders in one folder, whose own files count as one more. Those of the folders in these belong to them.
  ///
  /// - Parameters:
  ///   - place: the path of the folder.
  ///   - all: the files of the module.
  init(place: String, _ all: [SourceFile]) {
    let name = place.split(separator: "/").last.map(String.init) ?? place
    let files = all.filter { $0.path.hasPrefix(place + "/") }.map { file in
      var file = file
      let parts = file.path.dropFirst(place.count + 1).split(separator: "/")
      file.folder = parts.count > 1 ? String(parts[0]) : name
      return file
    }
    folders = Set(files.map(\.folder)).sorted()
    var homes: [String: Set<String>] = [:]
    for file in files { for name in file.declared { homes[name, default: []].insert(file.folder) } }
    for file in files {
      for (name, line) in file.mentioned {
        // A name that is declared in more than one folder shows no use.
        guard let home = homes[name], home.count == 1, let other = home.first, other != file.folder else {
          continue
        }
        uses[file.folder, default: [:]][other, default: []].append(
          Use(name: name, place: "\(file.path):\(line)"))
      }
    }
  }

  /// Folders that use each other, directly or through others. Each such set is listed once.
  var circles: [[String]] {
    func reach(_ start: String) -> Set<String> {
      var seen: Set<String> = []
      var next = [start]
      while let folder = next.popLast() {
        for other in (uses[folder] ?? [:]).keys where seen.insert(other).inserted { next.append(other) }
      }
      return seen
    }
    let reached = Dictionary(uniqueKeysWithValues: folders.map { ($0, reach($0)) })
    var found: Set<[String]> = []
    for folder in folders where reached[folder]?.contains(folder) == true {
      found.insert(
        folders.filter { reached[folder]?.contains($0) == true && reached[$0]?.contains(folder) == true })
    }
    return found.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// The folders in layers. The first layer uses no other folder. For a graph without circles.
  var layers: [[String]] {
    var height: [String: Int] = [:]
    func measure(_ folder: String) -> Int {
      if let known = height[folder] { return known }
      let own = ((uses[folder] ?? [:]).keys.map(measure).max() ?? -1) + 1
      height[folder] = own
      return own
    }
    let top = folders.map(measure).max() ?? -1
    return (0...max(top, 0)).map { level in folders.filter { height[$0] == level } }
  }
}

/// The files of a module.
func files(of module: String) throws -> [SourceFile] {
  let root = "Sources/\(module)"
  let paths = (FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []).sorted()
  return try paths.filter { $0.hasSuffix(".swift") }.map { try SourceFile(path: "\(root)/\($0)") }
}

/// Prints the graph of one module, and of each folder in it that has folders of its own. Returns whether all are free of circles.
///
/// - Parameter isDeep: false for the module's own folders alone.
func report(_ module: String, isDeep: Bool) throws -> Bool {
  let files = try files(of: module)
  var places: Set<String> = ["Sources/\(module)"]
  for file in files where isDeep {
    // A folder with folders in it is one above the file's own.
    let parts = file.path.split(separator: "/").dropLast(2)
    for length in 2..<max(parts.count + 1, 2) { places.insert(parts.prefix(length).joined(separator: "/")) }
  }
  return places.sorted().map { report(FolderGraph(place: $0, files), String($0.dropFirst("Sources/".count))) }
    .allSatisfy { $0 }
}

func report(_ graph: FolderGraph, _ title: String) -> Bool {
  let circles = graph.circles
  print("\(title): \(graph.folders.count) folders")
  if circles.isEmpty {
    for (level, folders) in graph.layers.enumerated().reversed() where graph.folders.count > 1 {
      for folder in folders {
        let used = (graph.uses[folder] ?? [:]).keys.sorted().joined(separator: ", ")
        print("  \(level)  \(folder)\(used.isEmpty ? "" : " → \(used)")")
      }
    }
    return true
  }
  for circle in circles {
    print("  these folders use each other; move a type, or let the lower one declare a protocol:")
    for folder in circle {
      for other in circle {
        guard let uses = graph.uses[folder]?[other] else { continue }
        print("    \(folder) → \(other), \(uses.count) times:")
        let names = Dictionary(grouping: uses, by: \.name).sorted {
          ($1.value.count, $0.key) < ($0.value.count, $1.key)
        }
        for (name, places) in names.prefix(6) {
          let place = places.map(\.place).min() ?? ""
          print("      \(name) × \(places.count)  \(place)")
        }
      }
    }
  }
  return false
}

var arguments = Array(CommandLine.arguments.dropFirst())
let isDot = arguments.first == "--dot"
let isTop = arguments.first == "--top"
if isDot || isTop { arguments.removeFirst() }
if let option = arguments.first(where: { $0.hasPrefix("-") }) {
  FileHandle.standardError.write(
    Data("dependency-graph: there is no option '\(option)'; there are --dot and --top\n".utf8))
  exit(2)
}
let sources = try FileManager.default.contentsOfDirectory(atPath: "Sources").sorted()
let modules = arguments.isEmpty ? sources : arguments
for module in modules where !sources.contains(module) {
  FileHandle.standardError.write(Data("dependency-graph: there is no module '\(module)' in Sources\n".utf8))
  exit(2)
}
if isDot {
  for module in modules {
    print("digraph \(module) {")
    for (folder, others) in FolderGraph(place: "Sources/\(module)", try files(of: module)).uses.sorted(by: {
      $0.key < $1.key
    }) {
      for other in others.keys.sorted() { print("  \"\(folder)\" -> \"\(other)\";") }
    }
    print("}")
  }
  exit(0)
}
let results = try modules.map { try report($0, isDeep: !isTop) }
exit(results.allSatisfy { $0 } ? 0 : 1)
