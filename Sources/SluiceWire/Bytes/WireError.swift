/// What is wrong with bytes that a peer sent: a code for programs and a sentence for people.
///
/// Decoders throw it, and never trap, whatever they are given.
public struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
  public var code: ErrorCode
  public var message: String

  public init(_ code: ErrorCode, _ message: String) {
    self.code = code
    self.message = message
  }

  public var description: String { "\(message) (\(code))" }
}
