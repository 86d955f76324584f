import ReactiveCore

extension TopicSubject {
  /// Publishing a message as a step of a pipeline: publishes when it is subscribed to, once for each subscriber, delivers the receipt when
  /// the message is acknowledged, and finishes; or fails as ``publish(_:)`` does. Waits for room first, if the buffer is full.
  ///
  /// ```swift
  /// let published = orders
  ///   .flatMap(maxPublishers: .max(100)) { subject.publisher(publishing: Message($0)) }
  ///   .sink { print($0) } receiveValue: { print("published as record \($0.offset ?? 0)") }
  /// ```
  ///
  /// The receipt is delivered on the client's loop. Cancelling lets go of the receipt; the message is published all the same.
  public func publisher(publishing message: Message) -> AnyPublisher<Receipt, ClientError> {
    Deferred { [self] in
      Future { promise in self.publish(message, completion: promise) }
    }
    .eraseToAnyPublisher()
  }
}
