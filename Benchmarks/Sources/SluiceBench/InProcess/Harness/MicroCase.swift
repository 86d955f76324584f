/// Something to be measured: a row of a table.
///
/// A run starts afresh, so that rows can be measured in turn and a busy moment of the machine doesn't fall on all runs of one.
struct MicroCase {
  /// The table, with what is common to its rows.
  let table: String
  let name: String
  /// Measures once, in about so many seconds where the time can be chosen.
  let run: (_ seconds: Double) throws -> [Reading]

  init(_ table: String, _ name: String, run: @escaping (_ seconds: Double) throws -> [Reading]) {
    self.table = table
    self.name = name
    self.run = run
  }
}
