import Foundation

/// Plants blocks with each mistake that should be reported, and one correct block of each kind.
struct SelfTest {
  let bench: Workbench

  /// A page, and the expected report: the line and a part of the message, or nothing.
  private struct Case {
    var name: String
    var page: String
    var failure: (line: Int, message: String)?
    /// Whether the block doesn't end.
    var isEndless = false
    /// The case is skipped without this program.
    var program: String?
  }

  /// Returns 0 when exactly the planted mistakes were reported.
  func run() throws -> Int32 {
    let cases = (Self.wrong + Self.right).filter { $0.program.map(bench.has(program:)) ?? true }
    var missed = 0
    bench.lateness = 1
    for item in cases {
      bench.patience = item.isEndless ? 2 : 60
      let plan = Plan(page: item.page, file: item.name, root: bench.root)
      let result = try Examples(bench: bench).run([plan])[0]
      let said = result.failures.map(\.description).joined()
      let isNoticed: Bool
      if let (line, message) = item.failure {
        isNoticed =
          result.failures.count == 1 && said.hasPrefix("\(item.name):\(line): ") && said.contains(message)
      } else {
        isNoticed = result.failures.isEmpty
      }
      if isNoticed { continue }
      missed += 1
      print(
        "self-test: \(item.name): expected \(item.failure.map { "\($0)" } ?? "no failure"), got:\n\(said)")
    }
    missed += try testDocComments()
    print(
      "self-test: \(Self.wrong.count + 3) planted mistakes, \(Self.right.count) blocks without one: \(missed == 0 ? "all as they should be" : "\(missed) not as they should be")"
    )
    return missed == 0 ? 0 : 1
  }

  /// Plants mistakes in the doc comments of a source file. Returns how many weren't reported.
  private func testDocComments() throws -> Int {
    let directory = try bench.directory("comments")
    try FileManager.default.createDirectory(atPath: directory + "/Sources", withIntermediateDirectories: true)
    let source = """
      /// A layout, and a block that doesn't compile.
      ///
      /// ```
      /// u32 length
      /// ```
      ///
      /// ```swift
      /// let number: Int = "text"
      /// ```
      let one = 1
      /// ```
      /// let number = try read()
      /// ```
      let two = 2
      /// ```swift
      /// no end
      let three = 3
      """
    try source.write(toFile: directory + "/Sources/A.swift", atomically: true, encoding: .utf8)
    let plan = try Plan(docCommentsBelow: directory)
    let result = try Examples(bench: bench).run([plan])[0]
    let said = result.failures.map(\.description)
    let wanted = [
      "Sources/A.swift:15: the block has no end", "Sources/A.swift:11: a block with code needs its language",
      "Sources/A.swift:8:",
    ]
    let isNoticed =
      said.count == wanted.count && zip(said, wanted).allSatisfy { $0.contains($1) }
      && result.outcomes.map(\.block.line) == [3]
    if !isNoticed { print("self-test: in doc comments, expected \(wanted), got:\n\(said.joined())") }
    return isNoticed ? 0 : 1
  }

  private static func block(_ language: String, _ text: String, after directives: String = "") -> String {
    "\(directives)```\(language)\n\(text)\n```\n"
  }

  private static let wrong: [Case] = [
    Case(name: "type", page: block("swift", "let a = 1\nlet b: Int = \"text\""), failure: (1, "type:3:")),
    Case(
      name: "import", page: block("swift", "_ = Just(1).sink { print($0) }"),
      failure: (1, "cannot find 'Just'")),
    Case(
      name: "trap", page: block("swift", "let none: Int? = nil\nprint(none!)"),
      failure: (1, "the program ends with")),
    Case(
      name: "endless", page: block("swift", "while true {}"), failure: (1, "the program doesn't end"),
      isEndless: true),
    Case(
      name: "printed", page: block("swift", "print(\"b\")", after: "<!-- example: prints\na\n-->\n"),
      failure: (4, "doesn't print what the page says")),
    Case(
      name: "output",
      page: block("swift", "print(\"b\")") + "<!-- example: output -->\n" + block("text", "a"),
      failure: (1, "doesn't print what the page says")),
    Case(
      name: "second-run",
      page: block(
        "swift",
        "import Foundation\nif FileManager.default.fileExists(atPath: \"twice\") { exit(7) }\n_ = FileManager.default.createFile(atPath: \"twice\", contents: nil)",
        after: "<!-- example: twice -->\n"),
      failure: (2, "second run: the program ends with 7")),
    Case(
      name: "compiles",
      page: block("swift", "print(1)", after: "<!-- example: fails to compile: cannot find 'x' -->\n"),
      failure: (2, "the program compiles, and shouldn't")),
    Case(
      name: "other-error",
      page: block("swift", "print(y)", after: "<!-- example: fails to compile: cannot find 'x' -->\n"),
      failure: (2, "the compiler doesn't say")),
    Case(
      name: "context", page: block("swift", "print(1)", after: "<!-- example: context nowhere -->\n"),
      failure: (2, "there is no context")),
    Case(
      name: "continuation", page: block("swift", "print(1)", after: "<!-- example: continues -->\n"),
      failure: (2, "no program comes before")),
    Case(name: "broker", page: block("sh", "sluice pub topic text"), failure: (1, "a line ends with 1")),
    Case(
      name: "tutorial",
      page: block("sh", "sluice topic create t", after: "<!-- example: tutorial -->\n")
        + block("sh", "sluice topic create t --flow lossless", after: "<!-- example: tutorial -->\n"),
      failure: (6, "a line ends with 1")),
    Case(name: "sh", page: block("sh", "true\nfalse\ntrue"), failure: (1, "a line ends with 1")),
    Case(
      name: "endless-sh", page: block("sh", "sleep 1000 &\nwait"), failure: (1, "the block doesn't end"),
      isEndless: true),
    Case(
      name: "unmarked", page: block("sh", "true\napt-get install sluice"),
      failure: (3, "'apt-get' isn't run here")),
    Case(
      name: "reason", page: block("sh", "true", after: "<!-- example: not run: is tedious -->\n"),
      failure: (2, "'is tedious' is no reason")),
    Case(
      name: "pattern",
      page: block("sh", "true", after: "<!-- example: not run: installs packages: apt-get * -->\n"),
      failure: (1, "no line matches")),
    Case(
      name: "console", page: block("console", "$ echo a\na\n$ echo b\na"),
      failure: (4, "'echo b' prints something else")),
    Case(name: "console-code", page: block("console", "$ false"), failure: (2, "'false' ends with 1")),
    Case(
      name: "toml", page: block("toml", "listn = [\"127.0.0.1:7420\"]"),
      failure: (1, "the broker doesn't take")),
    Case(name: "json", page: block("json", "{\"a\": }"), failure: (1, "that is no JSON")),
    Case(
      name: "manifest",
      page: block(
        "swift",
        "// swift-tools-version: 6.2\nimport PackageDescription\nlet package = Package(name: \"a\", targets: [.target(name: \"A\", dependencies: [\"B\"])])",
        after: "<!-- example: manifest -->\n"),
      failure: (2, "SwiftPM doesn't take the manifest")),
    Case(name: "no-language", page: block("", "text"), failure: (1, "the block has no language")),
    Case(
      name: "unknown-language", page: block("ruby", "puts 1"), failure: (1, "no rule for blocks in 'ruby'")),
    Case(
      name: "python", page: block("python", "print('b')", after: "<!-- example: prints\na\n-->\n"),
      failure: (4, "doesn't print what the page says"), program: "python3"),
    Case(
      name: "js", page: block("js", "throw new Error('no');"), failure: (1, "a line ends with 1"),
      program: "node"),
    Case(name: "open", page: "```text\ntext\n", failure: (1, "the block has no end")),
    Case(name: "directive", page: "<!-- example: compile -->\n", failure: (1, "'compile' is no directive")),
    Case(name: "lost", page: "<!-- example: broker -->\nText.\n", failure: (1, "no block follows")),
    Case(
      name: "test", page: block("swift", "print(1)", after: "<!-- example: tested by Package.swift -->\n"),
      failure: (2, "is no test that reads the blocks")),
  ]

  private static let right: [Case] = [
    Case(
      name: "program",
      page: block("swift", "import PortableCombine\nlet two = Just(2)") + "<!-- example: continues -->\n"
        + block("swift", "_ = two.sink { print($0) }") + "<!-- example: output -->\n" + block("text", "2")),
    Case(
      name: "refused",
      page: block("swift", "print(y)", after: "<!-- example: fails to compile: cannot find 'y' -->\n")),
    Case(
      name: "endless-program",
      page: block("swift", "print(1)\nwhile true {}", after: "<!-- example: compiles -->\n")),
    Case(
      name: "session",
      page: block(
        "console",
        "$ sluice pub a b\nsluice: published 1 record, 1 B, in 5 ms (2 k/s)\n$ sluice sub a --until-live --json\n{\"offset\":0,…}",
        after: "<!-- example: broker -->\n")),
    Case(
      name: "later-tutorial",
      page: block("sh", "sluice pub t text", after: "<!-- example: tutorial -->\n")
        + block("console", "$ sluice sub t --until-live\ntext", after: "<!-- example: tutorial -->\n")),
    Case(
      name: "script",
      page: block(
        "sh", "apt-get install x\ntrue", after: "<!-- example: not run: installs packages: apt-get * -->\n")),
    Case(
      name: "python-client",
      page: block(
        "python", "import sluice\nprint(sluice.last(3) is None)", after: "<!-- example: prints\nFalse\n-->\n"),
      program: "python3"),
    Case(
      name: "js-client",
      page: block(
        "js", "import { connect } from 'sluice-client';\nconsole.log(typeof connect);",
        after: "<!-- example: prints\nfunction\n-->\n"),
      program: "node"),
    Case(name: "configuration", page: block("toml", "listen = [\"127.0.0.1:7420\"]")),
    Case(name: "values", page: block("json", "{\"a\": 1}\n{\"a\": 2}")),
    Case(name: "drawing", page: block("text", "---")),
    Case(
      name: "other-system",
      page: block(
        "python", "import pika", after: "<!-- example: not run: is a program for another system -->\n")),
  ]
}
