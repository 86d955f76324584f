extension Future where Failure == Never {
  /// The result, once there is one.
  ///
  /// The future has its result sooner or later whatever becomes of the task, so cancelling the task does not
  /// end the wait.
  public var value: Output {
    get async {
      let bridge = AsyncBridge<Output, Never>()
      subscribe(bridge)
      guard let value = await bridge.nextThoughCancelled().event.get() else {
        preconditionFailure("A future that cannot fail has finished without a value")
      }
      return value
    }
  }
}

extension Future {
  /// The result, once there is one.
  ///
  /// Cancelling the task cancels the subscription and ends the wait; the future goes on for others.
  ///
  /// - Throws: The error of the future, or `CancellationError` when the task is cancelled.
  public var value: Output {
    get async throws {
      let bridge = AsyncBridge<Output, Failure>()
      subscribe(bridge)
      guard let value = try await bridge.next().event.get() else { throw CancellationError() }
      return value
    }
  }
}
