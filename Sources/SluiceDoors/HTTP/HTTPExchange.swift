import SluiceHTTP
import SluiceSession

/// A request that is being served. The connection retains it.
protocol HTTPExchange: AnyObject {
  /// Processes an action of the broker, which is valid during the call only.
  func received(_ action: ClientAction)

  /// The connection ends.
  func failed(_ problem: HTTPProblem)

  /// Sends as much as grants and room allow.
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
