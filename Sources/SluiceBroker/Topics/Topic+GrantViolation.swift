import SluiceSession
import SluiceWire
import Synchronization

extension Topic {
  /// A contradiction between the topic's budget and its publications; nil when they agree. For tests.
  ///
  /// Between two turns every grant is either used or outstanding: the budget's outstanding allowance equals the sum of what the publications hold. A topic
  /// without publications has nothing outstanding.
  ///
  /// - Precondition: none of the loops runs at the same time.
  var grantViolation: String? {
    let (outstanding, loopStates) = state.withLock { ($0.budget.outstanding, $0.loopStates) }
    var held = PublishingBudget.Allowance()
    for publication in loopStates.flatMap(\.publications) {
      held.add(publication.connection.session.held(publication.stream))
    }
    if outstanding != held {
      return "counts \(outstanding) as outstanding where its publications hold \(held)"
    }
    return nil
  }
}
