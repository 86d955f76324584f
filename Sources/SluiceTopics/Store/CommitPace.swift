/// Whether a store begins another commit while others are under way: few large ones, as soon as there is much to store, or two small ones.
///
/// ```
///    under way:  nothing, or a little in one commit ..... half a full commit, or two and more .....
///                | all that waits begins                | half a full commit begins; less waits   |
/// ```
///
/// A little goes at once as long as it goes seldom: it costs the time of a round trip only. Behind much it would take one of the places under way from what comes
/// next, and be stored no sooner. What comes while two are under way gathers, too: a commit takes the engine about as long for one record as for hundreds, and where
/// many small ones were under way, a fast producer got so little of the processors that only small ones followed.
/// It is looked at again when a commit is settled, and when a full one has gathered.
struct CommitPace {
  /// So many bytes of records make a full commit.
  let commitBytes: Int

  /// - Parameters:
  ///   - count: the commits under way.
  ///   - bytes: of records in these.
  ///   - waiting: bytes of records that aren't in a commit.
  func mayBegin(besides count: Int, of bytes: Int, with waiting: Int) -> Bool {
    count == 0 || count == 1 && bytes < commitBytes / 2 || waiting >= commitBytes / 2
  }
}
