extension ClientError {
  /// Whether the same call can succeed later without a change of the program: the broker wasn't reached, it is stopping, a limit is reached, its storage
  /// is full.
  ///
  /// ```swift
  /// do {
  ///   try await client.createTopic("orders")
  /// } catch where error.isRetryable {
  ///   try await Task.sleep(for: .seconds(1))
  /// }
  /// ```
  ///
  /// The client retries lost connections and full storage by itself, see ``ReconnectPolicy``; it reports such an error when that has ended, or was turned off.
  public var isRetryable: Bool {
    switch code {
    case .connectionRefused, .connectFailed, .connectTimeout, .cutOff, .gaveUp, .keepaliveTimeout,
      .idleTimeout, .writeTimeout, .closedByOperator, .shuttingDown, .tooManyConnections, .tooManyAttempts,
      .requestTimeout, .noResponders, .limitReached, .topicMoved, .storageFull, .storageFailed:
      true
    // The server has closed the connection without an answer, as a broker that is stopping does.
    case .notSluice: brokerCode == nil
    default: false
    }
  }
}
