/// A piece of work of a size that never varies, in one thread, without a socket: the same build executes the same instructions each time.
struct FixedLoad {
  /// A row of the table: the subsystem, then what it does.
  let name: String
  /// What is counted: `record`, `frame`, `value`.
  let unit: String
  /// How many units the measured part works off.
  let units: Int
  /// Builds everything, works off as much as it takes until nothing grows any more, and returns the measured part.
  let prepare: () throws -> () throws -> Void

  static var all: [FixedLoad] {
    CoreLoads.all + CombineLoads.all + StoreLoads.all + BrokerLoads.all + ClientLoads.all
  }

  /// Prepares the load and works off its measured part, within ``measuredLoad(_:)``.
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

/// What is counted: `callgrind` collects while this function runs, which it finds by the name.
@inline(never)
private func measuredLoad(_ work: MeasuredWork) {
  do {
    try work.body()
  } catch {
    work.error = error
  }
}
