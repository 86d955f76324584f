import Foundation

// documentation-examples.sh compiles and calls this program, with its options.

/// The value of an option, which is taken out of the arguments.
func option(_ name: String, in arguments: inout [String]) -> String? {
  guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else { return nil }
  defer { arguments.removeSubrange(index...(index + 1)) }
  return arguments[index + 1]
}

func run() throws -> Int32 {
  var arguments = Array(CommandLine.arguments.dropFirst())
  guard let root = option("--root", in: &arguments), let programs = option("--programs", in: &arguments),
    let work = option("--work", in: &arguments), let isolated = option("--isolated", in: &arguments)
  else { throw Trouble("call scripts/documentation-examples.sh") }
  let isSelfTest = arguments.first == "--self-test"
  let bench = try Workbench(
    root: root, programs: programs, work: work, isIsolated: isolated == "yes")
  try bench.linkLibrary()
  if isSelfTest { return try SelfTest(bench: bench).run() }

  var plans = try arguments.map { file in
    Plan(page: try String(contentsOfFile: "\(root)/\(file)", encoding: .utf8), file: file, root: root)
  }
  plans.append(try Plan(docCommentsBelow: root))
  let report = Report(results: try Examples(bench: bench).run(plans))
  report.print()
  for failure in report.failures { print("\nFAILED \(failure.description)", terminator: "") }
  return report.failures.isEmpty ? 0 : 1
}

do {
  exit(try run())
} catch let trouble as Trouble {
  FileHandle.standardError.write(Data("documentation-examples: \(trouble.message)\n".utf8))
  exit(2)
}
