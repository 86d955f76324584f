import SluiceStore

/// Decides when a store's space is maintained. The space of deleted topics is freed in pieces, so that commits don't wait for it. The size is read once after
/// the commits that may have changed it.
struct StoreSpace {
  /// Whether there may be space to free. Earlier runs of the broker may have left some.
  private(set) var hasGarbage = true
  /// Whether a commit was attempted since the size was read.
  private var hasChanged = true

  /// Notes that a commit is attempted.
  mutating func commitBegins() { hasChanged = true }

  /// Notes that the deletion of a topic was stored.
  mutating func topicDeleted() { hasGarbage = true }

  /// Frees a piece. A piece that can't be freed is left for the next deletion.
  ///
  /// - Parameter piece: frees a piece, and returns whether there are more.
  /// - Returns: whether another piece is to be freed later.
  mutating func free(_ piece: () throws(StoreError) -> Bool) -> Bool {
    guard hasGarbage else { return false }
    do throws(StoreError) {
      hasGarbage = try piece()
    } catch {
      hasGarbage = false
    }
    return hasGarbage
  }

  /// Returns the size; nil if it hasn't changed or can't be read.
  ///
  /// - Parameters:
  ///   - isFailing: whether the store accepts no records; the free space of its disk is then checked each time.
  ///   - read: reads the size; nil if the store has none.
  mutating func size(isFailing: Bool, _ read: () throws(StoreError) -> StoreSize?) -> StoreSize? {
    guard hasChanged || isFailing else { return nil }
    hasChanged = false
    return try? read()
  }
}
