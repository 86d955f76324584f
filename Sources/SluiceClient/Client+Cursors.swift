import SluiceWire

@_exported import struct SluiceWire.CursorInfo

// Durable cursors, as requests: see also SubscriptionPlan.Cursor.
extension Client {
  /// A topic's durable cursors and groups, in byte order of their names.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func cursors(of topic: String) async throws(ClientError) -> [CursorInfo] {
    let reply = Reply<[CursorInfo]>()
    cursors(of: topic, completion: reply.complete)
    return try await reply.value()
  }

  public func cursors(
    of topic: String, completion: @escaping @Sendable (Result<[CursorInfo], ClientError>) -> Void
  ) {
    cursors(of: topic, behind: [], completion)
  }

  /// Asks page by page. Cursors that come and go meanwhile may be there or not.
  private func cursors(
    of topic: String, behind cursors: [CursorInfo],
    _ completion: @escaping @Sendable (Result<[CursorInfo], ClientError>) -> Void
  ) {
    let question = CursorList(topic: topic, after: cursors.last?.name ?? "", limit: 1_000)
    ask(.cursors(question)) { [weak self] result in
      let page: Cursors
      switch result {
      case .success(.cursors(let cursors)): page = cursors
      case .success: return completion(.failure(.oddAnswer))
      case .failure(let error): return completion(.failure(error))
      }
      let all = cursors + page.cursors
      guard page.more, !page.cursors.isEmpty else { return completion(.success(all)) }
      guard let self else { return completion(.failure(.closedHere)) }
      self.cursors(of: topic, behind: all, completion)
    }
  }

  /// Puts a durable cursor, or a group, elsewhere in its topic, forward or back; makes a cursor if there is none of that name. Whoever subscribes with it ends
  /// with ``ClientError/Code/cursorMoved``.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``, ``ClientError/Code/invalidTopic`` when the cursor's name can't be one;
  ///   ``ClientError/Code/limitReached``; ``ClientError/Code/requestTimeout``; why the client is over; ``ClientError/Code/cancelled``.
  public func moveCursor(
    _ name: String, of topic: String, to start: SubscriptionPlan.Start
  ) async throws(ClientError) {
    let reply = Reply<Void>()
    moveCursor(name, of: topic, to: start, completion: reply.complete)
    try await reply.value()
  }

  public func moveCursor(
    _ name: String, of topic: String, to start: SubscriptionPlan.Start,
    completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    let question = CursorMove(topic: topic, name: name, to: Subscribe.Start(start))
    ask(.moveCursor(question)) { completion($0.map { _ in }) }
  }

  /// Forgets a durable cursor, or a group. Whoever subscribes with it ends with ``ClientError/Code/cursorDeleted``.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``, ``ClientError/Code/unknownCursor``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func deleteCursor(_ name: String, of topic: String) async throws(ClientError) {
    let reply = Reply<Void>()
    deleteCursor(name, of: topic, completion: reply.complete)
    try await reply.value()
  }

  public func deleteCursor(
    _ name: String, of topic: String,
    completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    ask(.deleteCursor(CursorDelete(topic: topic, name: name))) { completion($0.map { _ in }) }
  }
}
