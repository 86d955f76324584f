/// A publisher that starts to deliver only when told to, so that all its subscribers can be in place first.
public protocol ConnectablePublisher<Output, Failure>: Publisher {
  /// Starts delivering.
  ///
  /// - Returns: What stops it again, for all subscribers, none of whom is told.
  func connect() -> any Cancellable
}
