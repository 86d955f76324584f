/// Whether a store begins another commit while others are under way: few large ones, as soon as there is much to store.
///
/// ```
///    bytes under way:  0 ............ half a full commit ...............................
///                      | all begins   | half a full commit begins; less of it waits    |
/// ```
///
/// A little goes at once, however often it comes: it costs the time of a round trip only. Behind much it would take one of the places under way from what comes
/// next, and be stored no sooner. It is looked at again when a commit is settled, and when a full one has gathered.
struct CommitPace {
  /// So many bytes of records make a full commit.
  let commitBytes: Int

  /// - Parameters:
  ///   - count: the commits under way.
  ///   - bytes: of records in these.
  ///   - waiting: bytes of records that aren't in a commit.
  func mayBegin(besides count: Int, of bytes: Int, with waiting: Int) -> Bool {
    count == 0 || bytes < commitBytes / 2 || waiting >= commitBytes / 2
  }
}
