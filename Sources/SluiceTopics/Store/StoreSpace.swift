import SluiceStore

/// When a store's space is looked after: what deleted topics have left behind is freed a piece at a time, so that commits don't wait for it, and the size is read
/// once after the commits that may have changed it.
struct StoreSpace {
  /// Whether there may be something to be freed. Former runs of the broker may have left something.
  private(set) var hasGarbage = true
  /// Whether there was a commit, or an attempt at one, since the size was read.
  private var hasChanged = true

  /// A commit is tried.
  mutating func commitBegins() { hasChanged = true }

  /// The deletion of a topic is stored.
  mutating func topicDeleted() { hasGarbage = true }

  /// Frees a piece. One that can't be freed is left for the next deletion.
  ///
  /// - Parameter piece: frees it, and returns whether there is more.
  /// - Returns: whether another piece is to be freed, later.
  mutating func free(_ piece: () throws(StoreError) -> Bool) -> Bool {
    guard hasGarbage else { return false }
    do throws(StoreError) {
      hasGarbage = try piece()
    } catch {
      hasGarbage = false
    }
    return hasGarbage
  }

  /// Returns the size; nil where it is as it was, or can't be read.
  ///
  /// - Parameters:
  ///   - isFailing: whether the store takes no records, so that what its disk has left is looked at each time.
  ///   - read: reads it; nil where the store has none.
  mutating func size(isFailing: Bool, _ read: () throws(StoreError) -> StoreSize?) -> StoreSize? {
    guard hasChanged || isFailing else { return nil }
    hasChanged = false
    return try? read()
  }
}
