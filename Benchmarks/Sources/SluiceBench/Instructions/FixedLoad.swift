/// Work of a fixed amount, in one thread, without a socket: the same build executes the same instructions each time.
struct FixedLoad {
  /// A row of the table: the subsystem, then the work.
  let name: String
  /// The unit of the count: `record`, `frame`, `value`.
  let unit: String
  /// The number of units in the measured part.
  let units: Int
  /// Builds everything, runs until no buffer grows any more, and returns the measured part.
  let prepare: () throws -> () throws -> Void

  static var all: [FixedLoad] {
    CoreLoads.all + CombineLoads.all + StoreLoads.all + BrokerLoads.all + ClientLoads.all
  }

  /// Prepares the load and runs its measured part in `measuredLoad(_:)`.
  func run() throws {
    let body = try prepare()
    let work = MeasuredWork(body)
    measuredLoad(work)
    if let error = work.error { throw error }
  }
}

private final class MeasuredWork {
  let body: () throws -> Void
  var error: (any Error)?

  init(_ body: @escaping () throws -> Void) {
    self.body = body
  }
}

/// Runs the measured part. `callgrind` counts instructions only during this function, which it finds by the name.
@inline(never)
private func measuredLoad(_ work: MeasuredWork) {
  do {
    try work.body()
  } catch {
    work.error = error
  }
}

/// `sluice-bench fixed`: runs one fixed load, or lists them. For `scripts/instructions.sh`, which counts instructions.
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
