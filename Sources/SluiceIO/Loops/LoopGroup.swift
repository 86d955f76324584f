/// The loops that share a program's connections.
public struct LoopGroup: Sendable {
  /// At least one.
  public let loops: [any EventLoop]

  public init(_ loops: [any EventLoop]) {
    precondition(!loops.isEmpty, "a loop group needs at least one loop")
    self.loops = loops
  }
}
