import SluiceIO

// Whether the broker's loops still go round.
extension Broker {
  /// How many loops it has. Those that wait for the disk or verify credentials aren't among them.
  public var loopCount: Int { contexts.count }

  /// Asks each loop for a sign of epoch. From any thread; returns at once.
  ///
  /// - Parameter answer: called once on each loop with its number, from 0 on, as soon as it comes round; not at all on one that hangs, or has ended.
  public func askLoops(_ answer: @escaping @Sendable (Int) -> Void) {
    for (number, context) in contexts.enumerated() { context.loop.execute { answer(number) } }
  }
}
