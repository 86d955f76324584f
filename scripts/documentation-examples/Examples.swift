/// Executes plans.
struct Examples {
  let bench: Workbench

  /// The results of the blocks of a file.
  struct Result {
    var file: String
    var count: Int
    var outcomes: [(block: Block, outcome: Outcome)]
    /// Why lines of blocks that ran were skipped.
    var lines: [(block: Block, reason: Reason)] = []
    var failures: [Failure]
  }

  /// Compiles all programs, then runs one block after the other, since all use the same port. Pages with tutorials come first, in their order.
  func run(_ pages: [Plan]) throws -> [Result] {
    let plans = pages.filter(\.isTutorial) + pages.filter { !$0.isTutorial }
    defer { try? bench.endTutorials() }
    let runner = ProgramRunner(bench: bench)
    let programs = plans.flatMap { plan in
      plan.tasks.compactMap { if case .program(let program) = $0 { program } else { nil } }
    }
    var built = try runner.build(programs)[...]
    return try plans.map { plan in
      var result = Result(
        file: plan.file, count: plan.count, outcomes: plan.outcomes, failures: plan.failures)
      for task in plan.tasks {
        do {
          switch task {
          case .program(let program):
            let outcome = try runner.run(built.removeFirst())
            result.outcomes += program.blocks.map { ($0, outcome) }
          case .docComments(let blocks): result.outcomes += try runner.compileDocComments(blocks)
          case .script(let block): result.add(block, try Shell(bench: bench).run(script: block))
          case .session(let block): result.add(block, try Shell(bench: bench).run(session: block))
          case .configuration(let block):
            result.outcomes.append((block, try DataChecker(bench: bench).check(configuration: block)))
          case .json(let block):
            result.outcomes.append((block, try DataChecker(bench: bench).check(json: block)))
          case .manifest(let block):
            result.outcomes.append((block, try DataChecker(bench: bench).check(manifest: block)))
          }
        } catch let failure as Failure {
          result.failures.append(failure)
        }
      }
      try bench.endCluster()
      // A block with neither an outcome nor a failure is a mistake of this program.
      if result.failures.isEmpty, result.outcomes.count != result.count {
        result.failures.append(
          Failure(
            file: plan.file, line: 1, message: "\(result.count - result.outcomes.count) blocks were forgotten"
          ))
      }
      return result
    }
  }
}

extension Examples.Result {
  fileprivate mutating func add(_ block: Block, _ done: (Outcome, [Reason])) {
    outcomes.append((block, done.0))
    lines += done.1.map { (block, $0) }
  }
}
