/// A fenced code block of a page, or of the doc comments of a source file.
struct Block {
  var file: String
  /// The line of the opening fence, from 1.
  var line: Int
  var language: String
  var lines: [String]
  var directives: [Directive] = []

  var text: String { lines.map { $0 + "\n" }.joined() }

  func has(_ keyword: Directive.Keyword) -> Bool { directive(keyword) != nil }

  func directive(_ keyword: Directive.Keyword) -> Directive? { directives.first { $0.keyword == keyword } }

  func failure(_ message: String, at line: Int? = nil, details: String = "") -> Failure {
    Failure(file: file, line: line ?? self.line, message: message, details: details)
  }
}

/// A directive about a block, from a comment before it: `<!-- example: KEYWORD ARGUMENT -->`, and further lines of the same comment.
struct Directive {
  enum Keyword: String, CaseIterable {
    /// The block is the next part of the program before it.
    case continues
    /// `context NAME`: contexts/NAME.swift surrounds the block, which replaces its line `// BLOCK`, or follows its end.
    case context
    /// `setup NAME`: contexts/NAME.sh runs in the block's directory first.
    case setup
    /// A broker listens on 127.0.0.1:7420.
    case broker
    /// Like `broker`, but with one broker for all blocks of all pages with this directive: each tutorial continues after the one before it.
    case tutorial
    /// Like `broker`, with its gateways: http on port 7480, ws on 7481, mqtt on 1883.
    case doors
    /// The cluster of `scripts/cluster.sh up` runs. The blocks of a page with this directive share it, and a directory.
    case cluster
    /// `needs PROGRAM`: the block only runs if this program is installed.
    case needs
    /// The program is compiled but not run.
    case compiles
    /// The program runs twice with the same broker.
    case twice
    /// The program doesn't end by itself. It is stopped after it has printed the expected lines.
    case interrupted
    /// `serves COMMAND`: the program, or the last line, doesn't end by itself. It is stopped when COMMAND succeeds.
    case serves
    /// The further lines are the program's output.
    case prints
    /// The block is the output of the program before it.
    case output
    /// `fails to compile: MESSAGE`: the compiler reports an error that contains MESSAGE.
    case failsToCompile = "fails to compile:"
    /// `not run: REASON`, or `not run: REASON: PATTERN` for the lines that match PATTERN, in which `*` is any text.
    case notRun = "not run:"
    /// `tested by PATH`: the test in this file reads the block.
    case testedBy = "tested by"
    /// The block is a Package.swift.
    case manifest
    /// The block needs the host name broker.example.org.
    case isolated
  }

  var keyword: Keyword
  var argument: String
  /// The further lines of the comment.
  var body: [String]
  var line: Int

  /// Nil when the text begins with no known keyword.
  init?(_ text: String, body: [String], line: Int) {
    let keyword = Keyword.allCases.first { text == $0.rawValue || text.hasPrefix($0.rawValue + " ") }
    guard let keyword else { return nil }
    self.keyword = keyword
    argument = text.dropFirst(keyword.rawValue.count).trimmingSpaces
    self.body = body
    self.line = line
  }
}

/// Why a block, or a line of it, isn't run. There are no other reasons.
enum Reason: String, CaseIterable {
  case containers = "needs a container daemon"
  case cluster = "needs a cluster with these names"
  case installs = "installs packages"
  case test = "is the test command itself"
  case release = "builds with optimisation, which takes minutes"
  case otherSystem = "is a program for another system"
  /// Only found out when the script runs, never written at a block.
  case isolation = "needs namespaces of its own, which this system doesn't allow"
  /// Found only when the script runs, too.
  case program = "needs a program that isn't installed here"

  /// Reasons that may be written at a block.
  static var written: [Reason] { allCases.filter { $0 != .isolation && $0 != .program } }
}

struct Failure: Error {
  var file: String
  var line: Int
  var message: String
  /// The messages of the compiler or the program.
  var details = ""

  var description: String {
    let lines = details.split(separator: "\n", omittingEmptySubsequences: false).map { "    \($0)\n" }
    return "\(file):\(line): \(message)\n" + (details.isEmpty ? "" : lines.joined())
  }
}

/// The result of a block.
enum Outcome {
  case ran, compiled, compared, text
  case notRun(Reason)
}

extension StringProtocol {
  var trimmingSpaces: String {
    String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
  }

  /// The lines, without an empty one after the last line break.
  var textLines: [String] {
    var lines = split(separator: "\n" as Character, omittingEmptySubsequences: false).map { String($0) }
    if lines.last == "" { lines.removeLast() }
    return lines
  }
}
