import SluiceWire

@_exported import struct SluiceWire.CursorInfo

// Requests about durable cursors: see also SubscriptionPlan.Cursor.
extension Client {
  /// A topic's durable cursors and groups, in byte order of their names.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func cursors(of topic: String) async throws(ClientError) -> [CursorInfo] {
    try await Reply.wait { cursors(of: topic, completion: $0) }
  }

  public func cursors(
    of topic: String, completion: @escaping @Sendable (Result<[CursorInfo], ClientError>) -> Void
  ) {
    cursors(of: topic, behind: [], completion)
  }

  /// Requests page by page. Cursors that are created or deleted meanwhile may be included or not.
  private func cursors(
    of topic: String, behind cursors: [CursorInfo],
    _ completion: @escaping @Sendable (Result<[CursorInfo], ClientError>) -> Void
  ) {
    let request = CursorList(topic: topic, after: cursors.last?.name ?? "", limit: 1_000)
    ask(.cursors(request)) { [weak self] result in
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

  /// Moves a durable cursor, or a group, forward or back in its topic; creates a cursor if there is none of that name. Its subscriptions end with
  /// ``ClientError/Code/cursorMoved``.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``, ``ClientError/Code/invalidTopic`` if the cursor's name is invalid;
  ///   ``ClientError/Code/limitReached``; ``ClientError/Code/requestTimeout``; why the client is over; ``ClientError/Code/cancelled``.
  public func moveCursor(
    _ name: String, of topic: String, to start: SubscriptionPlan.Start
  ) async throws(ClientError) {
    try await Reply.wait { moveCursor(name, of: topic, to: start, completion: $0) }
  }

  public func moveCursor(
    _ name: String, of topic: String, to start: SubscriptionPlan.Start,
    completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    let request = CursorMove(topic: topic, name: name, to: Subscribe.Start(start))
    ask(.moveCursor(request)) { completion($0.map { _ in }) }
  }

  /// Deletes a durable cursor, or a group. Its subscriptions end with ``ClientError/Code/cursorDeleted``.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``, ``ClientError/Code/unknownCursor``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func deleteCursor(_ name: String, of topic: String) async throws(ClientError) {
    try await Reply.wait { deleteCursor(name, of: topic, completion: $0) }
  }

  public func deleteCursor(
    _ name: String, of topic: String,
    completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    ask(.deleteCursor(CursorDelete(topic: topic, name: name))) { completion($0.map { _ in }) }
  }
}
