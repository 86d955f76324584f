/// The texts of the runs of records that were sent last to readers on one loop. Readers at the same position of a topic share bytes that are encoded once.
///
/// ```
///  reader ─┐                        ┌─ find: topic, epoch, format, first offset
///  reader ─┼─► HTTPReading ─ run ───┤
///  reader ─┘                        └─ otherwise: write it, keep it for the others
/// ```
// @unchecked: belongs to its loop.
final class HTTPTexts: @unchecked Sendable {
  /// Names the run of records that begins at an offset.
  struct Place: Hashable {
    var offset: UInt64
    var epoch: UInt64
    var format: HTTPRecordFormat
    var topic: String
  }

  /// A run of records as a chunk of an answer.
  struct Run {
    fileprivate var place: Place
    let count: Int
    let chunk: [UInt8]
  }

  /// A run ends with the record that makes its text at least this long, in bytes.
  static let longRun = 64 << 10
  /// How many runs are kept.
  private static let capacity = 8

  private var runs: [Run] = []
  /// The index of the run that was replaced last.
  private var next = 0

  /// The number of readers on the loop. A single reader keeps no runs.
  var readers = 0 {
    didSet { if readers < 2 { runs = [] } }
  }

  /// The run at a place, unless it has more records than `most`.
  func find(_ place: Place, atMost most: Int) -> Run? {
    for run in runs where run.place.offset == place.offset && run.count <= most && run.place == place {
      return run
    }
    return nil
  }

  /// Keeps a run for readers that reach the position later.
  func keep(_ place: Place, count: Int, _ chunk: [UInt8]) {
    guard readers > 1 else { return }
    let run = Run(place: place, count: count, chunk: chunk)
    if runs.count < Self.capacity { return runs.append(run) }
    next = (next + 1) % Self.capacity
    runs[next] = run
  }
}
