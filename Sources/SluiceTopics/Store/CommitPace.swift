/// Decides whether a store begins another commit while others are in progress: a few large ones if there is much to store, or two small ones.
///
/// ```
///    in progress: nothing, or a little in one commit ..... half a full commit, or two and more .....
///                 | all that waits begins                | half a full commit begins; less waits   |
/// ```
///
/// A small commit costs only a round trip, so it begins at once while at most a little is in progress. Behind a large one it would be stored no sooner, and
/// would occupy one of the commits that later records need. Records that arrive while two commits are in progress are gathered too: the engine needs about as
/// long for a commit of one record as for one of hundreds. With many small commits in progress, a fast producer got so little processor time that only small
/// ones followed.
///
/// Bytes of records of a full commit.
struct CommitPace {
  /// So many bytes of records make a full commit.
  let commitBytes: Int

  /// - Parameters:
  ///   - count: the number of commits in progress.
  ///   - bytes: the bytes of their records.
  ///   - waiting: bytes of records that aren't in a commit.
  func mayBegin(besides count: Int, of bytes: Int, with waiting: Int) -> Bool {
    count == 0 || count == 1 && bytes < commitBytes / 2 || waiting >= commitBytes / 2
  }
}
