import SluiceIO
import SluiceWire
import Synchronization

// Topics that are there for those who use them, and go when nobody does: inboxes for replies, for instance.
extension Topic {
  /// Somebody is about to attach.
  func reserve() {
    guard settings.autoDelete == true else { return }
    state.withLock { $0.unusedSince = nil }
  }

  /// Looks whether anybody is attached, and since when not. Called now and then.
  ///
  /// - Returns: true when nobody has been for so long that the topic is to be deleted.
  func isAbandoned(for patience: Duration, now: MonotonicTime) -> Bool {
    state.withLock { state in
      guard state.subscriptions == 0, state.budget.publications == 0, !state.isDeleted else {
        state.unusedSince = nil
        return false
      }
      guard let since = state.unusedSince else {
        state.unusedSince = now
        return false
      }
      return now - since >= patience
    }
  }
}
