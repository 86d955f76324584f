import ReactiveCore

// Requests and replies over topics. A request is a record with two headers, `reply-to` and `correlation-id`; its reply is a record in
// the topic that the first names, with the second. So each client that can publish and subscribe can reply.
extension Client {
  /// Publishes a request and returns the reply to it.
  ///
  /// ```swift
  /// let reply = try await client.request("prices.quote", "ACME", timeout: .seconds(2))
  /// print(reply.string)
  /// ```
  ///
  /// A topic without subscribers, group members included, can't reply: the request isn't published then and fails at once with
  /// ``ClientError/Code/noResponders``.
  ///
  /// The first reply counts. The request is in its topic like any record, exactly once. The reply isn't stored: the broker keeps a
  /// disconnected client's inbox for 10 s by default; later replies are lost, and their requests time out. All requests of a client share one
  /// inbox, a topic `_inbox.…` that is deleted with the client.
  ///
  /// A task that is cancelled stops waiting; the request is still published.
  ///
  /// - Parameters:
  ///   - topic: the responders' topic.
  ///   - message: the request.
  ///   - timeout: how long to wait for the reply, also while there is no connection. Default: 5 s.
  /// - Throws: ``ClientError/Code/noResponders`` when the topic has no subscriber, or doesn't exist; ``ClientError/Code/requestTimeout`` when no reply came in time; ``ClientError/Code/replyFailed`` when the
  ///   responder fails; why it couldn't be published; ``ClientError/Code/cancelled``.
  public func request(
    _ topic: String, _ message: Message, timeout: Duration = .seconds(5)
  ) async throws(ClientError) -> TopicRecord {
    let reply = Reply<TopicRecord>()
    let requester = requester
    let number = requester.send(message, to: topic, timeout: timeout, with: self, reply.complete)
    return try await reply.value(onCancel: { requester.cancel(number, .waitCancelled) })
  }

  /// As ``request(_:_:timeout:)-(_,_,_)``, from any thread. The completion is called on the client's loop, once.
  public func request(
    _ topic: String, _ message: Message, timeout: Duration = .seconds(5),
    completion: @escaping Completion<TopicRecord>
  ) {
    _ = requester.send(message, to: topic, timeout: timeout, with: self, completion)
  }

  /// A publisher that publishes a request when it is subscribed to, once for each subscriber, and delivers the reply, on the client's loop.
  ///
  /// Cancelling drops the reply.
  public func publisher(
    requesting topic: String, _ message: Message, timeout: Duration = .seconds(5)
  ) -> AnyPublisher<TopicRecord, ClientError> {
    Deferred { [weak self] in
      Future { promise in
        guard let self else { return promise(.failure(.closedHere)) }
        self.request(topic, message, timeout: timeout, completion: promise)
      }
    }
    .eraseToAnyPublisher()
  }
}
