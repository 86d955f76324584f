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

/// What a comment in front of a block says about it: `<!-- example: KEYWORD ARGUMENT -->`, and further lines of the same comment.
struct Directive {
  enum Keyword: String, CaseIterable {
    /// The block is the next part of the program before it.
    case continues
    /// `context NAME`: contexts/NAME.swift surrounds the block, which stands in place of its line `// BLOCK`, or at its end.
    case context
    /// `setup NAME`: contexts/NAME.sh runs in the block's directory first.
    case setup
    /// A broker listens on 127.0.0.1:7420.
    case broker
    /// The same, but one broker for all blocks of all pages with this directive: each tutorial continues where the one before it ended.
    case tutorial
    /// The same, and its doors are open: http on port 7480, ws on 7481, mqtt on 1883.
    case doors
    /// The cluster of `scripts/cluster.sh up` runs. The blocks of a page with this directive share it, and a directory.
    case cluster
    /// `needs PROGRAM`: the block isn't run where this program isn't installed.
    case needs
    /// The program is compiled and doesn't run.
    case compiles
    /// The program runs two times with the same broker.
    case twice
    /// The program doesn't end by itself; it is ended when it has printed what it should.
    case interrupted
    /// `serves COMMAND`: the program, or the last line, doesn't end by itself; it is ended when COMMAND succeeds.
    case serves
    /// The further lines are what the program prints.
    case prints
    /// The block is what the program before it prints.
    case output
    /// `fails to compile: MESSAGE`: the compiler refuses the program with an error that contains MESSAGE.
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

  /// Nil when no keyword is known that begins the text.
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
  /// The same.
  case program = "needs a program that isn't installed here"

  /// Those that may be written at a block.
  static var written: [Reason] { allCases.filter { $0 != .isolation && $0 != .program } }
}

struct Failure: Error {
  var file: String
  var line: Int
  var message: String
  /// What the compiler or the program has said.
  var details = ""

  var description: String {
    let lines = details.split(separator: "\n", omittingEmptySubsequences: false).map { "    \($0)\n" }
    return "\(file):\(line): \(message)\n" + (details.isEmpty ? "" : lines.joined())
  }
}

/// What has become of a block.
enum Outcome {
  case ran, compiled, compared, text
  case notRun(Reason)
}

extension StringProtocol {
  var trimmingSpaces: String {
    String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
  }

  /// The lines, without an empty one behind the last line break.
  var textLines: [String] {
    var lines = split(separator: "\n" as Character, omittingEmptySubsequences: false).map { String($0) }
    if lines.last == "" { lines.removeLast() }
    return lines
  }
}
