import Foundation

/// Passes lines to bash, and checks their output.
struct Shell {
  let bench: Workbench

  /// Runs the lines of a block, which must all succeed. Returns the reasons for lines that weren't run.
  func run(script block: Block) throws -> (Outcome, [Reason]) {
    if block.has(.isolated), !bench.isIsolated { return (.notRun(.isolation), []) }
    let interpreter = Interpreter(rawValue: block.language)
    for program in [block.directive(.needs)?.argument, interpreter?.program].compactMap(\.self)
    where !bench.has(program: program) {
      return (.notRun(.program), [])
    }
    let cluster = block.has(.cluster) ? try bench.cluster() : nil
    if block.has(.cluster), cluster == nil { return (.notRun(.program), []) }
    let patience = cluster == nil ? bench.patience : TestCluster.patience
    var reasons: [Reason] = []
    let lines = block.lines.map { line in
      guard let reason = Plan.reason(against: line, in: block) else { return line }
      reasons.append(reason)
      return ""
    }
    let directory = try cluster?.directory ?? bench.directory("script")
    if let directive = block.directive(.setup) { try setUp(directive, for: block, in: directory) }
    let broker = try TestBroker.start(for: block, on: bench, in: directory)
    defer { _ = broker?.stop() }
    var text = lines.joined(separator: "\n") + "\n"
    if let interpreter {
      text = try interpreter.script(running: text, in: directory, of: bench.root, twice: block.has(.twice))
    }
    let child = try start(text, in: directory, cluster: cluster)
    defer { child.kill() }
    let expectation = block.directive(.prints).map { Expectation($0.body) }
    func fail(_ message: String) -> Failure {
      block.failure(message, details: Workbench.text(of: child.output) + Workbench.text(of: child.errors))
    }
    func isMet() -> Bool { expectation?.isMet(by: Workbench.text(of: child.output)) ?? true }
    if let directive = block.directive(.serves) {
      guard try succeeds(directive.argument, in: directory, while: child) else {
        throw fail("'\(directive.argument)' doesn't succeed")
      }
    } else if block.has(.interrupted) {
      guard expectation != nil else { throw block.failure("a block that is interrupted needs 'prints'") }
      guard child.wait(seconds: patience, until: isMet) else {
        throw fail("the block doesn't print what the page says")
      }
    } else {
      guard let code = child.waitForEnd(seconds: patience) else { throw fail("the block doesn't end") }
      guard code == 0 else { throw fail("a line ends with \(code)") }
      guard isMet() else { throw fail("the block doesn't print what the page says") }
    }
    return (.ran, reasons)
  }

  /// Runs the commands after `$`, one after the other in one shell, and compares the output of each with the text up to the next `$`. A command with
  /// no text after it may have any output.
  func run(session block: Block) throws -> (Outcome, [Reason]) {
    if block.has(.isolated), !bench.isIsolated { return (.notRun(.isolation), []) }
    let directory = try bench.directory("session")
    if let directive = block.directive(.setup) { try setUp(directive, for: block, in: directory) }
    let broker = try TestBroker.start(for: block, on: bench, in: directory)
    defer { _ = broker?.stop() }
    var reasons: [Reason] = []
    var steps: [SessionStep] = []
    for step in SessionStep.steps(of: block) {
      if let reason = Plan.reason(against: step.command, in: block) {
        reasons.append(reason)
      } else {
        steps.append(step)
      }
    }
    var script = ""
    for (number, step) in steps.enumerated() {
      // The next command waits until the output of the one before has been checked.
      script +=
        "{ \(step.command)\n}\necho $? >../status.\(number)\nuntil [ -e ../go.\(number) ]; do sleep 0.02; done\n"
    }
    let child = try start(script, in: directory, isTerminal: true)
    defer { child.kill() }
    var shown = 0
    for (number, step) in steps.enumerated() {
      func output() -> String { String(Workbench.text(of: child.output).dropFirst(shown)) }
      func fail(_ what: String) -> Failure {
        block.failure("'\(step.command)' \(what)", at: step.line, details: output())
      }
      let status = "\(directory)/status.\(number)"
      guard child.wait(seconds: bench.patience, until: { Workbench.text(of: status).hasSuffix("\n") }) else {
        throw fail("doesn't end")
      }
      let code = Workbench.text(of: status).trimmingSpaces
      guard code == "0" else { throw fail("ends with \(code)") }
      let expectation = Expectation(step.output)
      let isMet = { step.output.isEmpty || expectation.isMet(by: output()) }
      guard child.wait(seconds: bench.lateness, until: isMet) else { throw fail("prints something else") }
      shown = Workbench.text(of: child.output).count
      _ = FileManager.default.createFile(atPath: "\(directory)/go.\(number)", contents: nil)
    }
    guard child.waitForEnd(seconds: bench.patience) != nil else {
      throw block.failure("the shell doesn't end")
    }
    return (.ran, reasons)
  }

  /// Runs contexts/NAME.sh in the directory of the block.
  func setUp(_ directive: Directive, for block: Block, in directory: String) throws {
    let file = "\(bench.root)/scripts/documentation-examples/contexts/\(directive.argument).sh"
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
      throw block.failure("there is no context \(file)", at: directive.line)
    }
    let child = try start(text, in: directory, name: "setup")
    defer { child.kill() }
    guard child.waitForEnd(seconds: bench.patience) == 0 else {
      throw block.failure("its setup fails", at: directive.line, details: Workbench.text(of: child.errors))
    }
  }

  /// Whether a command succeeds at some point while a program runs.
  func succeeds(_ command: String, in directory: String, while program: Child) throws -> Bool {
    let end = Clock.now + bench.patience
    while Clock.now < end, program.exitCode() == nil {
      let child = try start(command + "\n", in: directory, name: "probe")
      defer { child.kill() }
      if child.waitForEnd(seconds: bench.patience) == 0 { return true }
      usleep(50_000)
    }
    return false
  }

  private func start(
    _ text: String, in directory: String, name: String = "script", isTerminal: Bool = false,
    cluster: TestCluster? = nil
  ) throws -> Child {
    let file = "\(directory)/\(name).sh"
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    let output = "\(directory)/\(name).output"
    let options = isTerminal ? ["-u"] : ["-euo", "pipefail"]
    // Several blocks run in the directory of a cluster, one after the other.
    for old in [output, "\(directory)/\(name).errors"] { try? FileManager.default.removeItem(atPath: old) }
    return try Child(
      ["bash"] + options + [file], directory: directory + "/block",
      environment: cluster?.environment ?? bench.environment(home: directory + "/home"),
      output: output, errors: isTerminal ? output : "\(directory)/\(name).errors")
  }
}

/// A console command and its output.
private struct SessionStep {
  var command: String
  var line: Int
  var output: [String] = []

  static func steps(of block: Block) -> [SessionStep] {
    var steps: [SessionStep] = []
    var isContinued = false
    for (index, line) in block.lines.enumerated() {
      if isContinued {
        steps[steps.count - 1].command += "\n" + line
      } else if line.hasPrefix("$ ") {
        steps.append(SessionStep(command: String(line.dropFirst(2)), line: block.line + 1 + index))
      } else if !steps.isEmpty {
        steps[steps.count - 1].output.append(line)
        continue
      }
      isContinued = line.hasSuffix("\\")
    }
    return steps
  }
}
