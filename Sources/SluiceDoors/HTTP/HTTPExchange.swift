import SluiceHTTP
import SluiceSession

/// A request that is being served. Kept by its connection.
protocol HTTPExchange: AnyObject {
  /// What the broker has said, valid during the call only.
  func received(_ action: ClientAction)

  /// The connection ends.
  func failed(_ problem: HTTPProblem)

  /// Goes on as far as grants and room allow.
  func turnEnds()

  /// Whether records wait for the client to read.
  var isHeld: Bool { get }

  /// Bytes of records that it holds.
  var heldBytes: Int { get }
}

/// For a request that neither sends nor gets records by its stream.
extension HTTPExchange {
  func turnEnds() {}
  var isHeld: Bool { false }
  var heldBytes: Int { 0 }
}
