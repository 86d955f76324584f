import Foundation

/// Compiles programs and runs them.
struct ProgramRunner {
  let bench: Workbench

  /// A program that is compiled, or the error.
  struct Built: @unchecked Sendable {
    // Written by the one thread that compiles the program, and read after all are compiled.
    var program: Plan.Program
    var directory: String
    var result: Result<Void, any Error>
  }

  /// Compiles programs, two at a time.
  func build(_ programs: [Plan.Program]) throws -> [Built] {
    nonisolated(unsafe) var built = try programs.map {
      Built(program: $0, directory: try bench.directory("program"), result: .success(()))
    }
    nonisolated(unsafe) let runner = self
    let lock = NSLock()
    nonisolated(unsafe) var next = 0
    // Two threads take programs from one list: `next` and `built` are guarded by the lock.
    DispatchQueue.concurrentPerform(iterations: 2) { _ in
      while true {
        let taken = lock.withLock {
          defer { next += 1 }
          return next < built.count ? (next, built[next]) : nil
        }
        guard let (index, item) = taken else { return }
        let result = Result { try runner.compile(item.program, in: item.directory) }
        lock.withLock { built[index].result = result }
      }
    }
    return built
  }

  private func compile(_ program: Plan.Program, in directory: String) throws {
    let source = directory + "/main.swift"
    try text(of: program).write(toFile: source, atomically: true, encoding: .utf8)
    let (code, messages) = try bench.compile(source, in: directory)
    if let wanted = program.blocks.compactMap({ $0.directive(.failsToCompile) }).first {
      if code == 0 { throw program.first.failure("the program compiles, and shouldn't") }
      guard
        messages.split(separator: "\n").contains(where: {
          $0.contains("error:") && $0.contains(wanted.argument)
        })
      else {
        throw program.first.failure("the compiler doesn't say '\(wanted.argument)'", details: messages)
      }
    } else if code != 0 {
      throw program.first.failure("the program doesn't compile", details: messages)
    }
  }

  /// The source: the blocks unchanged, surrounded by their context. Compiler messages name the lines of the pages.
  private func text(of program: Plan.Program) throws -> String {
    let blocks = program.blocks.map { block in
      "#sourceLocation(file: \"\(block.file)\", line: \(block.line + 1))\n\(block.text)#sourceLocation()\n"
    }.joined()
    guard let name = program.context else { return blocks }
    let file = "scripts/documentation-examples/contexts/\(name).swift"
    guard let context = try? String(contentsOfFile: bench.root + "/" + file, encoding: .utf8) else {
      throw program.first.failure("there is no context \(file)")
    }
    let lines = context.textLines
    let place = lines.firstIndex(of: "// BLOCK") ?? lines.endIndex
    func part(_ range: Range<Int>) -> String {
      guard !range.isEmpty else { return "" }
      return "#sourceLocation(file: \"\(file)\", line: \(range.lowerBound + 1))\n"
        + lines[range].joined(separator: "\n") + "\n#sourceLocation()\n"
    }
    return part(0..<place) + blocks + part(min(place + 1, lines.endIndex)..<lines.endIndex)
  }

  /// Runs a compiled program, and compares what it prints.
  func run(_ built: Built) throws -> Outcome {
    try built.result.get()
    if built.program.has(.isolated), !bench.isIsolated { return .notRun(.isolation) }
    let (program, block) = (built.program, built.program.first)
    if program.has(.compiles) || program.has(.failsToCompile) { return .compiled }
    if let directive = program.blocks.compactMap({ $0.directive(.setup) }).first {
      try Shell(bench: bench).setUp(directive, for: block, in: built.directory)
    }
    let withBroker = program.blocks.first { $0.has(.broker) || $0.has(.tutorial) } ?? block
    let broker = try TestBroker.start(for: withBroker, on: bench, in: built.directory)
    do {
      for run in program.has(.twice) ? ["run", "second run"] : ["run"] { try start(built, name: run) }
    } catch {
      _ = broker?.stop()
      throw error
    }
    if let trouble = broker?.stop() { throw block.failure(trouble) }
    return .ran
  }

  private func start(_ built: Built, name: String) throws {
    let (program, block) = (built.program, built.program.first)
    // Buffered by line, so that printed lines can be read before the program ends.
    let child = try Child(
      ["stdbuf", "-oL", built.directory + "/example"], directory: built.directory + "/block",
      environment: bench.environment(home: built.directory + "/home"),
      output: "\(built.directory)/\(name).output", errors: "\(built.directory)/\(name).errors")
    defer { child.kill() }
    let expectation = program.expected.map { Expectation($0) }
    func said() -> String { Workbench.text(of: child.output) + Workbench.text(of: child.errors) }
    func fail(_ message: String) -> Failure { block.failure("\(name): \(message)", details: said()) }

    if let directive = program.blocks.compactMap({ $0.directive(.serves) }).first {
      guard try Shell(bench: bench).succeeds(directive.argument, in: built.directory, while: child) else {
        throw fail("'\(directive.argument)' doesn't succeed")
      }
    } else if program.has(.interrupted) {
      guard let expectation else { throw block.failure("a program that is interrupted needs 'prints'") }
      guard
        child.wait(
          seconds: bench.patience, until: { expectation.isMet(by: Workbench.text(of: child.output)) })
      else {
        throw fail("the program doesn't print what the page says")
      }
    } else {
      guard let code = child.waitForEnd(seconds: bench.patience) else {
        throw fail("the program doesn't end")
      }
      guard code == 0 else { throw fail("the program ends with \(code)") }
      if let expectation, !expectation.isMet(by: Workbench.text(of: child.output)) {
        throw fail("the program doesn't print what the page says")
      }
    }
  }

  // MARK: Doc comments

  /// Compiles the blocks of doc comments. Each becomes the body of a function after contexts/doc-comments.swift, and isn't run.
  func compileDocComments(_ blocks: [Block]) throws -> [(Block, Outcome)] {
    let directory = try bench.directory("doc-comments")
    let file = "scripts/documentation-examples/contexts/doc-comments.swift"
    var text = try String(contentsOfFile: bench.root + "/" + file, encoding: .utf8)
    for (number, block) in blocks.enumerated() {
      text +=
        "func example\(number)() async throws {\n#sourceLocation(file: \"\(block.file)\", line: \(block.line + 1))\n"
      text += block.text + "#sourceLocation()\n}\n"
    }
    let source = directory + "/comments.swift"
    try text.write(toFile: source, atomically: true, encoding: .utf8)
    let (code, messages) = try bench.compile(source, in: directory, typesOnly: true)
    guard code == 0 else {
      throw Failure(
        file: "doc comments", line: 1, message: "blocks in doc comments don't compile", details: messages)
    }
    return blocks.map { ($0, .compiled) }
  }
}
