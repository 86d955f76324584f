import SluiceWire

@_exported import struct SluiceWire.CursorInfo

// Requests about durable cursors: see also SubscriptionPlan.Cursor.
extension Client {
  /// A topic's durable cursors and groups, in byte order of their names.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``; ``ClientError/Code/requestTimeout``; why the client was closed;
  ///   ``ClientError/Code/cancelled``.
  public func cursors(of topic: String) async throws(ClientError) -> [CursorInfo] {
    try await Reply.wait { cursors(of: topic, completion: $0) }
  }

  public func cursors(of topic: String, completion: @escaping Completion<[CursorInfo]>) {
    pages({ (page: Cursors) in (page.cursors, page.more) }, completion) {
      CursorList(topic: topic, after: $0?.name ?? "", limit: Self.pageSize)
    }
  }

  /// Moves a durable cursor, or a group, forward or back in its topic; creates a cursor if there is none of that name. Its subscriptions end with
  /// ``ClientError/Code/cursorMoved``.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``, ``ClientError/Code/invalidTopic`` if the cursor's name is invalid;
  ///   ``ClientError/Code/limitReached``; ``ClientError/Code/requestTimeout``; why the client was closed; ``ClientError/Code/cancelled``.
  public func moveCursor(
    _ name: String, of topic: String, to start: SubscriptionPlan.Start
  ) async throws(ClientError) {
    try await Reply.wait { moveCursor(name, of: topic, to: start, completion: $0) }
  }

  public func moveCursor(
    _ name: String, of topic: String, to start: SubscriptionPlan.Start,
    completion: @escaping Completion<Void>
  ) {
    ask(CursorMove(topic: topic, name: name, to: Subscribe.Start(start)), completion)
  }

  /// Deletes a durable cursor, or a group. Its subscriptions end with ``ClientError/Code/cursorDeleted``.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``, ``ClientError/Code/unknownCursor``; ``ClientError/Code/requestTimeout``; why the client was closed;
  ///   ``ClientError/Code/cancelled``.
  public func deleteCursor(_ name: String, of topic: String) async throws(ClientError) {
    try await Reply.wait { deleteCursor(name, of: topic, completion: $0) }
  }

  public func deleteCursor(_ name: String, of topic: String, completion: @escaping Completion<Void>) {
    ask(CursorDelete(topic: topic, name: name), completion)
  }
}
