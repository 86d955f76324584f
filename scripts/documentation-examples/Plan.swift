import Foundation

/// The work for the blocks of a file: the programs and the shell lines that they form.
struct Plan {
  enum Task {
    case program(Program)
    /// Lines that a shell reads all together, or a program for an interpreter.
    case script(Block)
    /// Commands after `$`, each with its output.
    case session(Block)
    case configuration(Block)
    case json(Block)
    case manifest(Block)
    case docComments([Block])
  }

  /// A Swift program of one or more blocks.
  struct Program {
    var blocks: [Block]
    var context: String?
    var expected: [String]?

    var first: Block { blocks[0] }

    func has(_ keyword: Directive.Keyword) -> Bool { blocks.contains { $0.has(keyword) } }
  }

  var file: String
  var tasks: [Task] = []
  /// The blocks that need no work.
  var outcomes: [(Block, Outcome)] = []
  var failures: [Failure] = []
  /// How many blocks the file has.
  var count = 0
  /// Whether blocks of the page use the broker that the tutorials share.
  var isTutorial = false

  /// The plan for a page.
  init(page text: String, file: String, root: String) {
    self.file = file
    let (blocks, failures) = Markdown.blocks(of: text, file: file)
    self.failures = failures
    count = blocks.count
    isTutorial = blocks.contains { $0.has(.tutorial) }
    for block in blocks {
      do { try add(block, root: root) } catch { self.failures.append(error) }
    }
  }

  /// The plan for the doc comments of all sources. Doc comment blocks without a language are layouts and tables, not Swift.
  init(docCommentsBelow root: String) throws {
    file = "doc comments in Sources"
    var swift: [Block] = []
    for path in Workbench.files(in: root + "/Sources", with: ".swift") {
      let name = String(path.dropFirst(root.count + 1))
      let source = try String(contentsOfFile: path, encoding: .utf8)
      let (blocks, failures) = Markdown.docComments(of: source, file: name)
      self.failures += failures
      count += blocks.count
      for block in blocks {
        switch block.language {
        case "swift": swift.append(block)
        case "text": outcomes.append((block, .text))
        case "" where !block.text.contains(#/(?m)^ *(let|var|func|import|struct|try|await|for) /#):
          outcomes.append((block, .text))
        default:
          self.failures.append(
            block.failure(
              "a block with code needs its language, and there is no rule for '\(block.language)'"))
        }
      }
    }
    if !swift.isEmpty { tasks.append(.docComments(swift)) }
  }

  private mutating func add(_ block: Block, root: String) throws(Failure) {
    if let directive = block.directive(.notRun), !directive.argument.contains(":") {
      outcomes.append((block, .notRun(try reason(directive.argument, of: block))))
      return
    }
    if let directive = block.directive(.testedBy) {
      let test = Workbench.text(of: root + "/" + directive.argument)
      guard test.contains(URL(filePath: file).lastPathComponent), test.contains("\"\(block.language)\"")
      else {
        throw block.failure(
          "\(directive.argument) is no test that reads the blocks of this page in '\(block.language)'")
      }
      outcomes.append((block, .compared))
      return
    }
    if let directive = block.directive(.output) {
      guard case .program(var program) = tasks.last, program.expected == nil else {
        throw block.failure("no program comes before its output", at: directive.line)
      }
      program.expected = block.lines
      tasks[tasks.count - 1] = .program(program)
      outcomes.append((block, .compared))
      return
    }
    switch block.language {
    case "swift" where block.has(.manifest): tasks.append(.manifest(block))
    case "swift": try addProgram(block)
    case "sh": tasks.append(.script(try checked(block)))
    case _ where Interpreter(rawValue: block.language) != nil: tasks.append(.script(block))
    case "console": tasks.append(.session(try checked(block)))
    case "toml": tasks.append(.configuration(block))
    case "json": tasks.append(.json(block))
    case "text": outcomes.append((block, .text))
    case "": throw block.failure("the block has no language; what isn't code is 'text'")
    default: throw block.failure("there is no rule for blocks in '\(block.language)'")
    }
  }

  private mutating func addProgram(_ block: Block) throws(Failure) {
    let context = block.directive(.context)?.argument
    let expected = block.directive(.prints)?.body
    guard block.has(.continues) else {
      tasks.append(.program(Program(blocks: [block], context: context, expected: expected)))
      return
    }
    guard case .program(var program) = tasks.last else {
      throw block.failure("no program comes before its continuation")
    }
    guard program.expected == nil, program.context == nil else {
      throw block.failure("the context and the output of a program belong to its last block")
    }
    program.blocks.append(block)
    program.context = context
    program.expected = expected
    tasks[tasks.count - 1] = .program(program)
  }

  // MARK: Shells

  /// Commands that change the machine or use the network. A line with one needs a reason not to be run.
  private static let refused = [
    "apt", "apt-get", "docker", "docker-compose", "git", "sudo", "systemctl", "curl", "wget", "pip", "dpkg",
    "swift",
  ]

  /// Whether all addresses in a command belong to the broker's gateways.
  private static func staysHere(_ command: String) -> Bool {
    command.ranges(of: "://").count == command.ranges(of: "http://127.0.0.1:7480/").count
  }

  /// Returns the shell block with all lines marked that mustn't be run.
  private func checked(_ block: Block) throws(Failure) -> Block {
    var unused = block.directives.filter { $0.keyword == .notRun }
    for directive in unused { _ = try reason(Self.reasonText(directive), of: block) }
    for (index, line) in block.lines.enumerated() {
      guard block.language == "sh" || line.hasPrefix("$ ") else { continue }
      let command = block.language == "sh" ? line : String(line.dropFirst(2))
      unused.removeAll { Self.pattern($0, covers: command) }
      if let word = command.split(separator: " ").first, Self.refused.contains(String(word)),
        !(word == "curl" && block.has(.doors) && Self.staysHere(command)),
        Self.reason(against: command, in: block) == nil
      {
        throw block.failure(
          "'\(word)' isn't run here: say why by a directive 'not run: REASON: PATTERN'",
          at: block.line + 1 + index)
      }
    }
    if let directive = unused.first {
      throw block.failure("no line matches '\(directive.argument)'", at: directive.line)
    }
    return block
  }

  private static func reasonText(_ directive: Directive) -> String {
    directive.argument.split(separator: ":").first.map { $0.trimmingSpaces } ?? ""
  }

  private static func pattern(_ directive: Directive, covers line: String) -> Bool {
    guard let colon = directive.argument.firstIndex(of: ":") else { return false }
    let pattern = directive.argument[directive.argument.index(after: colon)...].trimmingSpaces
    return Expectation.covers(pattern, line.trimmingSpaces, wildcard: "*")
  }

  /// Why a line isn't run; nil if it is run.
  static func reason(against line: String, in block: Block) -> Reason? {
    block.directives.first { $0.keyword == .notRun && pattern($0, covers: line) }
      .flatMap { Reason(rawValue: reasonText($0)) }
  }

  private func reason(_ text: String, of block: Block) throws(Failure) -> Reason {
    guard let reason = Reason(rawValue: text), Reason.written.contains(reason) else {
      let known = Reason.written.map { "'\($0.rawValue)'" }.joined(separator: ", ")
      throw block.failure("'\(text)' is no reason for not running a block; these are: \(known)")
    }
    return reason
  }
}
