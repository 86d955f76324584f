import SluiceWire
import Synchronization

extension Topic {
  /// A contradiction between the topic's ledger of grants and its publications; nil when they agree. For tests.
  ///
  /// Between two turns every grant is either used or outstanding: the ledger's outstanding allowance equals the sum over the publications, and each
  /// publication owes what its stream was granted and has not used. A topic without publications has nothing outstanding.
  ///
  /// - Precondition: none of the loops runs at the same time.
  var grantViolation: String? {
    let (outstanding, loopStates) = state.withLock { ($0.ledger.outstanding, $0.loopStates) }
    var owed = GrantLedger.Allowance()
    for publication in loopStates.flatMap(\.publications) {
      owed.add(publication.owed)
      guard let credit = publication.connection.session.publication(publication.stream) else { continue }
      if credit.held != publication.owed {
        return "is owed \(publication.owed) by stream \(publication.stream), which holds \(credit.held)"
      }
    }
    if outstanding != owed {
      return "counts \(outstanding) as outstanding where its publications hold \(owed)"
    }
    return nil
  }
}
