/// `sluice-bench fixed`: works off one fixed load, or lists them. For `scripts/instructions.sh`, which counts instructions.
enum FixedCommand {
  static let usage = """
    sluice-bench fixed LOAD | --list
      Works off a load of fixed size in one thread, for counting instructions: scripts/instructions.sh does that. --list prints a line for
      each load: its name, its unit, and how many units it has, separated by tabs.
    """

  static func run(_ words: [String]) throws {
    var arguments = Arguments(words)
    if arguments.flag("list") {
      try arguments.finish()
      for load in FixedLoad.all { print("\(load.name)\t\(load.unit)\t\(load.units)") }
      return
    }
    let names = try arguments.rest()
    guard names.count == 1, let load = FixedLoad.all.first(where: { $0.name == names[0] }) else {
      throw UsageError("one load is needed; `sluice-bench fixed --list` names them all")
    }
    try load.run()
  }
}
